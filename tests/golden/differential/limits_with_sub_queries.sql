!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT max(letters) FROM films) - 7
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT max(letters) FROM films) / 2 OFFSET (SELECT min(letters) FROM films) - 2
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT NULL)
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT '3')
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT greatest((SELECT 2), 3)

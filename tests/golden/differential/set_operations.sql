!SELECT id FROM reviews WHERE <pos> UNION ALL SELECT id FROM reviews WHERE <joke> ORDER BY id
!SELECT id FROM reviews WHERE <pos> UNION SELECT id FROM reviews WHERE <joke> ORDER BY id
!SELECT id FROM reviews WHERE <pos> INTERSECT SELECT id FROM reviews WHERE <joke> ORDER BY id
!SELECT id FROM reviews WHERE <pos> EXCEPT SELECT id FROM reviews WHERE <joke> ORDER BY id
!SELECT film FROM reviews WHERE <pos> INTERSECT ALL SELECT film FROM reviews WHERE <joke> ORDER BY 1
!SELECT film FROM reviews WHERE <pos> EXCEPT ALL SELECT film FROM reviews WHERE <joke> ORDER BY 1
!SELECT film FROM films EXCEPT SELECT film FROM reviews WHERE <joke> ORDER BY 1
!SELECT film, stars FROM reviews WHERE <pos> UNION ALL BY NAME SELECT stars, film FROM reviews WHERE <joke> ORDER BY ALL
!SELECT id FROM reviews WHERE <pos> UNION SELECT id FROM reviews WHERE <joke> EXCEPT SELECT id FROM reviews WHERE stars = 1 ORDER BY id
!(SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT 3) UNION ALL (SELECT id FROM reviews WHERE <joke> ORDER BY id DESC LIMIT 2) ORDER BY id
!SELECT <topic> AS t FROM reviews WHERE text IS NOT NULL UNION SELECT 'zzz' ORDER BY 1
!SELECT id, 'p' AS k FROM reviews WHERE <pos> UNION ALL SELECT id, 'j' FROM reviews WHERE <joke> ORDER BY id, k LIMIT 7
SELECT id FROM reviews WHERE <joke> UNION ALL (VALUES (99), (98)) UNION ALL (SELECT 1)
!SELECT id FROM reviews WHERE <joke> UNION (VALUES (99)) ORDER BY 1 DESC LIMIT 3
SELECT id FROM reviews WHERE <pos> EXCEPT (VALUES (0), (4))

!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT max(letters) FROM films) - 7
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT max(letters) FROM films) / 2 OFFSET (SELECT min(letters) FROM films) - 2
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT NULL)
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT (SELECT '3')
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT greatest((SELECT 2), 3)
!SELECT id, (SELECT max(i) FROM (SELECT id AS i, film AS f, text FROM reviews WHERE id < 20) AS v WHERE f = film AND <joke v.text>) AS x FROM reviews WHERE <pos> ORDER BY x DESC NULLS LAST, id LIMIT 3
!SELECT id FROM reviews WHERE <pos> ORDER BY (SELECT max(i) FROM (SELECT id AS i, film AS f, text FROM reviews WHERE id < 20) AS v WHERE f = film AND <joke v.text>) DESC NULLS LAST, id LIMIT 3
!SELECT id FROM reviews WHERE <pos> ORDER BY stars IN (SELECT stars FROM reviews WHERE <joke>), id LIMIT 4
!SELECT id FROM reviews WHERE <pos> ORDER BY EXISTS (SELECT 1 FROM reviews v WHERE v.film = reviews.film AND <joke v.text>), id LIMIT 4
!SELECT id FROM reviews WHERE <pos> AND stars IS NOT NULL ORDER BY (SELECT count(*) FROM reviews v WHERE v.stars = reviews.stars AND <joke v.text>) DESC, stars, id LIMIT 4
!SELECT film FROM reviews WHERE <pos> GROUP BY film ORDER BY (SELECT count(*) FROM reviews v WHERE v.film = reviews.film AND <joke v.text>) DESC, film LIMIT 2
!SELECT id FROM reviews ORDER BY (SELECT count(*) FROM reviews v WHERE v.film = reviews.film AND <joke v.text>) DESC, id LIMIT 2

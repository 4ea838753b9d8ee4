!SELECT "film" FROM reviews WHERE <pos> GROUP BY "film" ORDER BY "film"
!SELECT film AS "the film, please" FROM reviews WHERE <joke> ORDER BY "the film, please"
!SELECT r."film" FROM reviews r WHERE <joke> ORDER BY r."film"
!SELECT film AS stars, stars AS film FROM reviews WHERE <joke> ORDER BY ALL
!SELECT count(*) AS n FROM reviews AS "my table" WHERE <joke>
!SELECT "my table".id FROM reviews AS "my table" WHERE <joke> ORDER BY 1
!SELECT id, 'film' AS "film" FROM reviews WHERE <joke> ORDER BY id
!SELECT tags[1] AS t, count(*) FROM reviews WHERE <pos> GROUP BY t ORDER BY t
!SELECT meta.b, count(*) FROM reviews WHERE <pos> GROUP BY meta.b ORDER BY 1
!SELECT list_aggregate([stars, 1, 2], 'sum') AS s FROM reviews WHERE <pos> ORDER BY 1
!SELECT id, list_transform([1, 2], lambda x: x + stars) AS l FROM reviews WHERE <pos> ORDER BY id
!SELECT id, list_filter(<tags>::VARCHAR[], lambda x: x <> 'jokes') AS l FROM reviews ORDER BY id
!SELECT id, array_length(list_filter(tags, lambda t: t = film)) AS l FROM reviews WHERE <pos> ORDER BY id
!SELECT id, (<tags>::VARCHAR[])[-1] AS x, (<name>)[1:2] AS y FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, greatest(<rating>, 5) AS y, least(<rating>, stars) AS z, coalesce(<rating>, 0) AS w FROM reviews ORDER BY id
!SELECT arg_max(id, <rating>) AS y, min_by(id, <anger>) AS z FROM reviews WHERE text IS NOT NULL AND id < 6
!SELECT id, ifnull(<name>, '-') AS y FROM reviews ORDER BY id
!SELECT id FROM reviews WHERE stars IN (SELECT max(stars) FROM reviews WHERE <pos> GROUP BY film) ORDER BY id
!SELECT meta.*, id FROM reviews WHERE <pos> ORDER BY id
!SELECT meta.* EXCLUDE (a), <rating>::INTEGER AS r FROM reviews ORDER BY id
SELECT <topic> AS "the main topic", count(*) FROM reviews GROUP BY "the main topic"
SELECT <topic> AS "The Main Topic", id FROM reviews WHERE <pos>
WITH "a b" AS (SELECT id, <topic> AS "the main topic" FROM reviews) SELECT "the main topic", count(*) FROM "a b" GROUP BY 1
SELECT id, rowid FROM reviews WHERE <pos> AND rowid % 2 = 0
! SELECT a.rowid, b.rowid FROM reviews a JOIN films b ON a.film = b.film WHERE <pos a.text> ORDER BY a.rowid DESC, b.rowid LIMIT 5
SELECT film, max(rowid), list(rowid ORDER BY rowid) FROM reviews WHERE <joke> GROUP BY film
SELECT r::INTEGER + 1, b::BOOLEAN FROM (SELECT <rating> AS r, <pos> AS b FROM reviews)

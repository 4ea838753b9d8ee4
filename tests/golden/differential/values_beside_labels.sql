-- a text that is returned is not narrowed to the labels that it is compared with; numbers of sub-queries; NULLS FIRST
!SELECT <name> AS who, count(*) AS n FROM reviews WHERE who <> 'Ada' GROUP BY who ORDER BY n DESC, who
!SELECT <name> AS who, id FROM reviews WHERE who <> 'Ada' ORDER BY id
!SELECT <name> AS who, id FROM reviews WHERE who IN ('Ada', 'Bo') ORDER BY id
!SELECT <name> AS who, id FROM reviews WHERE who NOT IN ('Ada', 'Bo') ORDER BY who, id
!SELECT id, <name> AS who, CASE who WHEN 'Ada' THEN 1 ELSE 0 END AS a FROM reviews ORDER BY id
!SELECT <topic> AS t, count(*) AS n FROM reviews GROUP BY t HAVING t <> 'plot' ORDER BY t
!SELECT <topic> AS t, count(*) AS n FROM reviews WHERE <topic> = 'plot' OR stars = 5 GROUP BY t ORDER BY t
!SELECT id FROM reviews WHERE <rating> > ALL (SELECT <rating> FROM reviews WHERE film = 'Brazil' AND text IS NOT NULL AND <joke>) ORDER BY id
!SELECT id FROM reviews WHERE stars > (SELECT <rating> FROM reviews WHERE id = 5) ORDER BY id
!SELECT id FROM reviews WHERE stars IN (SELECT <rating> FROM reviews WHERE id < 5) ORDER BY id
!SELECT id, COLUMNS(* EXCLUDE (id, text, tags, meta)) FROM reviews WHERE <joke> ORDER BY id
!SELECT id, <topic> AS t FROM reviews ORDER BY t = 'plot' DESC, id
!SELECT id FROM reviews WHERE <pos> ORDER BY <anger> NULLS FIRST LIMIT 8 ### SELECT id FROM reviews WHERE <pos> ORDER BY anger(text) NULLS FIRST, id LIMIT 8
!SELECT <anger> IS NULL AS u FROM reviews ORDER BY <anger> NULLS FIRST LIMIT 8
!SELECT <anger> IS NULL AS u FROM reviews ORDER BY <anger> DESC NULLS FIRST LIMIT 8 OFFSET 2
SELECT id FROM reviews WHERE <pos> = 'yes'
SELECT id FROM reviews WHERE (<pos> <> 'true' OR <joke> = 'no') AND stars > 1
SELECT id, <pos> = 'no' AS p FROM reviews
SELECT <pos> = 'no' AS p, count(*) FROM reviews GROUP BY p
SELECT count(*) FILTER (<pos> = 'true'), count(*) FILTER (<pos> = 'false') FROM reviews
SELECT CASE <pos> WHEN 'yes' THEN 1 ELSE 0 END FROM reviews
SELECT id FROM reviews WHERE <pos> = 'yes' AND <pos> AND NOT <joke>
-- among the values of a sub-query: a label where they are words, true or false where they are numbers or days, or the text is cast
SELECT id, <rating>::INTEGER IN (SELECT stars FROM reviews WHERE stars IS NOT NULL) AS i FROM reviews
SELECT id, <rating> = ANY (SELECT stars FROM reviews WHERE id < 9) AS i FROM reviews
SELECT <rating>::INTEGER IN (SELECT stars FROM reviews) AS i, count(*) FROM reviews GROUP BY i
SELECT id, <written>::DATE IN (SELECT day - INTERVAL 1 YEAR FROM reviews) AS i FROM reviews
SELECT id, <name>::VARCHAR IN (SELECT 'Ada' UNION SELECT 'Cy') AS i FROM reviews
SELECT id, <name> IN (SELECT n FROM (VALUES ('Ada'), ('Cy')) v(n) WHERE n < film) AS i FROM reviews
SELECT id, upper(<name>) AS n, <name> IN (SELECT 'Ada' UNION SELECT 'Cy') AS i FROM reviews ### SELECT id, upper(name(text)) AS n, CASE WHEN name(text) IN ('Ada', 'Cy') THEN name(text) WHEN name(text) IS NOT NULL THEN 'none of these' END AS i FROM reviews

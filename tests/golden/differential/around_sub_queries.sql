-- statements of DuckDB's own around sub-queries with texts
!PIVOT (SELECT film, <topic>::ENUM('plot','acting','music') AS t FROM reviews WHERE text IS NOT NULL) ON t USING count(*) ORDER BY film
!SELECT * FROM (SELECT film, <pos>::BOOLEAN AS p FROM reviews) PIVOT (count(*) FOR p IN (true, false)) ORDER BY film
!UNPIVOT (SELECT id, stars::DOUBLE AS stars, <rating>::DOUBLE AS rating FROM reviews WHERE id < 4) ON stars, rating INTO NAME k VALUE v ORDER BY ALL
!SUMMARIZE SELECT id, <rating>::DOUBLE AS r FROM reviews
!DESCRIBE SELECT id, <rating>::INTEGER AS r, <topic>::ENUM('plot','acting','music') AS t FROM reviews
!SELECT a.id, b.id FROM (SELECT id, day FROM reviews WHERE <pos>) a ASOF JOIN (SELECT id, day FROM reviews WHERE <joke>) b ON a.day >= b.day ORDER BY 1, 2
!SELECT a.id, l.k FROM (SELECT id, <rating>::DOUBLE AS r FROM reviews WHERE <joke>) a, LATERAL (SELECT a.r * 2 AS k) l ORDER BY 1
!WITH RECURSIVE t(n) AS (SELECT min(id) FROM (SELECT id FROM reviews WHERE <pos>) UNION ALL SELECT n + 1 FROM t WHERE n < 5) SELECT * FROM t ORDER BY n
!SELECT id FROM reviews POSITIONAL JOIN (SELECT id AS k FROM reviews WHERE <pos> ORDER BY id) p WHERE k IS NOT NULL ORDER BY id
-- recursion, which is DuckDB's
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT r.id, i FROM n JOIN reviews r ON r.stars = n.i WHERE <pos r.text>
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4), p AS (SELECT id FROM reviews JOIN n ON i = stars WHERE <pos>) SELECT count(*) FROM p JOIN reviews r USING (id) WHERE <joke r.text>
WITH RECURSIVE m AS (SELECT 3 AS k), n AS (SELECT k AS i FROM m UNION SELECT (i * 2) % 11 FROM n) SELECT count(*) FROM (SELECT id FROM reviews WHERE <pos> AND id IN (SELECT i FROM n))
WITH RECURSIVE p AS (SELECT min(id) AS i FROM reviews WHERE <pos>), n AS (SELECT i FROM p UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n
SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 4) SELECT r.id FROM n JOIN reviews r ON r.id = n.i WHERE <pos r.text>)
SUMMARIZE (SELECT id FROM reviews WHERE <pos>)
VALUES ((((SELECT count(*) FROM reviews WHERE <pos>))), 2)
VALUES (1), ((SELECT count(*) FROM reviews WHERE <pos>))
!WITH RECURSIVE r(k, v) USING KEY (k) AS (SELECT 1, 10 UNION SELECT k % 3 + 1, v + 1 FROM r WHERE v < 14) SELECT id, v FROM reviews JOIN r ON r.k = stars WHERE <pos> ORDER BY ALL
!WITH RECURSIVE r USING KEY (k) AS MATERIALIZED (SELECT 1 AS k, 10 AS v UNION SELECT k % 3 + 1, v + 1 FROM r WHERE v < 14) SELECT v, (SELECT count(*) FROM reviews WHERE <joke> AND stars = k) AS n FROM r ORDER BY ALL

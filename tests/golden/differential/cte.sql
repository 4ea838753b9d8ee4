!WITH p AS (SELECT * FROM reviews WHERE <pos>) SELECT a.id, b.id FROM p a JOIN p b ON a.id + 1 = b.id ORDER BY 1
!WITH p AS (SELECT * FROM reviews WHERE <pos>), q AS (SELECT film, count(*) AS n FROM p GROUP BY film) SELECT p.id, q.n FROM p JOIN q USING (film) WHERE q.n > 3 ORDER BY 1
!WITH p(k, f) AS (SELECT id, film FROM reviews WHERE <pos>) SELECT k, f FROM p ORDER BY k
!WITH p AS (SELECT id, <topic> AS t FROM reviews) SELECT t, count(*) FROM p GROUP BY t ORDER BY ALL
!WITH p AS (SELECT id, text FROM reviews WHERE stars > 2), q AS (SELECT id FROM p WHERE <pos>) SELECT count(*) FROM q
!WITH p AS (SELECT id, text FROM reviews WHERE stars > 2) SELECT (SELECT count(*) FROM p WHERE <pos>) AS a, (SELECT count(*) FROM p WHERE <joke>) AS b
!WITH p AS MATERIALIZED (SELECT id FROM reviews WHERE <pos>) SELECT count(*) FROM p
!WITH p AS (SELECT id FROM reviews WHERE <pos>), q AS (SELECT id FROM reviews WHERE <joke>) SELECT id FROM p UNION SELECT id FROM q ORDER BY id
!WITH reviews AS (SELECT * FROM reviews WHERE stars > 3) SELECT id FROM reviews WHERE <pos> ORDER BY id

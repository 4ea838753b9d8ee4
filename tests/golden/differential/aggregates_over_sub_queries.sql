-- aggregates over sub-queries that choose rows
!WITH p AS (SELECT * FROM reviews WHERE <pos>) SELECT film, count(*) AS n, sum(stars) AS s, max(<rating>) AS m FROM p GROUP BY film ORDER BY film
!WITH p AS (SELECT id, film AS movie, stars * 2 AS dbl FROM reviews WHERE <pos> AND id > 3) SELECT movie, sum(dbl), count(*) FILTER (WHERE dbl > 4) FROM p WHERE movie <> 'Alien' GROUP BY movie HAVING count(*) > 1 ORDER BY movie
!SELECT count(*), sum(r), min(t) FROM (SELECT <rating>::INTEGER AS r, <topic>::VARCHAR AS t FROM reviews WHERE <joke>) x
!SELECT t, count(*), avg(r) FROM (SELECT <rating>::INTEGER AS r, <topic> AS t FROM reviews WHERE NOT <joke>) x GROUP BY t ORDER BY t
!SELECT a.film, count(*), count(DISTINCT b.id) FROM (SELECT * FROM reviews WHERE <pos>) a JOIN (SELECT * FROM reviews WHERE <joke>) b ON a.film = b.film AND a.id < b.id GROUP BY a.film ORDER BY 1
!SELECT f.film, count(p.id) AS n, sum(p.stars) AS s FROM films f LEFT JOIN (SELECT * FROM reviews WHERE <pos>) p ON p.film = f.film GROUP BY f.film ORDER BY 1
!SELECT p.film, count(f.letters) AS n FROM (SELECT * FROM reviews WHERE <pos>) p LEFT JOIN films f ON p.film = f.film AND f.letters > 5 GROUP BY p.film ORDER BY 1
!WITH p AS (SELECT * FROM reviews WHERE <pos>) SELECT count(*) FROM p a JOIN p b ON a.film = b.film AND a.id < b.id
!WITH p AS (SELECT * FROM reviews WHERE <pos>), q AS (SELECT * FROM p WHERE <joke>), z AS (SELECT film FROM q WHERE stars IS NOT NULL OR stars IS NULL) SELECT film, count(*) FROM z GROUP BY film ORDER BY film
!WITH p AS (SELECT * FROM reviews WHERE <pos>) SELECT (SELECT count(*) FROM p) AS a, (SELECT sum(stars) FROM p WHERE film = 'Brazil') AS b, (SELECT max(id) FROM p) AS c
!WITH p AS (SELECT * FROM reviews WHERE <pos>) SELECT count(*) FROM p WHERE <joke p.text> OR stars > 3 ### WITH p AS (SELECT * FROM reviews WHERE <pos>) SELECT count(*) FROM p WHERE <joke> OR stars > 3
!WITH p AS (SELECT id, text FROM reviews WHERE <pos>) SELECT count(*) FILTER (WHERE <joke>) AS j, count(*) AS n, avg(<rating>) AS r FROM p
!WITH p AS (SELECT id, text AS body, film FROM reviews WHERE <pos>) SELECT film, count(*) FROM p GROUP BY film ORDER BY film
!SELECT film, n FROM (SELECT film, count(*) AS n FROM (SELECT * FROM reviews WHERE <pos>) x GROUP BY film) y WHERE n > 4 ORDER BY film
!SELECT max(n) - min(n) AS d FROM (SELECT film, count(*) AS n FROM (SELECT * FROM reviews WHERE <pos>) x GROUP BY film) y
!SELECT count(*) FROM (SELECT DISTINCT film, stars FROM reviews WHERE <pos>) x
!SELECT count(*) FROM (SELECT film, unnest(tags) AS u FROM reviews WHERE <pos>) x
!SELECT count(*), sum(k) FROM (SELECT id, row_number() OVER (PARTITION BY film ORDER BY id) AS k FROM reviews WHERE <pos>) x
!SELECT count(*) FROM (SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT 5 OFFSET 2) x
!SELECT film, count(*) FROM (SELECT * FROM reviews WHERE <pos> ORDER BY id DESC) x GROUP BY ROLLUP (film) ORDER BY ALL
!SELECT r.film, count(*) FROM reviews r SEMI JOIN (SELECT film FROM reviews WHERE <joke>) j ON r.film = j.film GROUP BY r.film ORDER BY 1
!SELECT r.film, count(*) FROM (SELECT * FROM reviews WHERE <pos>) r ANTI JOIN (SELECT film FROM reviews WHERE <joke> AND stars = 1) j ON r.film = j.film GROUP BY r.film ORDER BY 1
!SELECT count(*) FROM (SELECT * FROM reviews WHERE <pos>) p WHERE EXISTS (SELECT 1 FROM films f WHERE f.film = p.film AND f.letters > 5)
!SELECT count(*) FROM (SELECT * FROM reviews WHERE <pos>) p WHERE p.stars > (SELECT avg(stars) FROM reviews q WHERE q.film = p.film)
!SELECT count(*) FROM (SELECT * FROM reviews WHERE <pos>) p WHERE p.id IN (SELECT id FROM reviews WHERE <joke>)
!SELECT x.film, count(*) FROM (SELECT a.film, a.id FROM reviews a JOIN films f USING (film) WHERE <pos a.text> AND f.letters > 5) x GROUP BY x.film ORDER BY 1
!SELECT count(*) FROM (SELECT a.id FROM reviews a JOIN reviews b ON a.film = b.film AND a.id < b.id AND b.id < 12 AND <agree a.text b.text>) x
!SELECT x.film, count(*) AS n FROM (SELECT a.film FROM reviews a JOIN reviews b ON a.id = b.id - 1 AND <agree a.text b.text> WHERE <pos a.text>) x GROUP BY x.film ORDER BY 1
!SELECT count(*) FROM (SELECT * FROM reviews WHERE <pos>) reviews
!SELECT reviews.film, count(*) FROM (SELECT * FROM reviews WHERE <pos>) reviews JOIN films ON reviews.film = films.film GROUP BY 1 ORDER BY 1
!SELECT count(*) FROM (SELECT * FROM reviews WHERE <pos>) a, (SELECT * FROM reviews WHERE <joke>) b WHERE a.id = b.id
!SELECT string_agg(id, ',' ORDER BY id) FROM (SELECT * FROM reviews WHERE <joke>) x
!SELECT sum(d) FROM (SELECT CASE WHEN <pos> THEN stars ELSE 0 END AS d FROM reviews) x
!SELECT k, count(*) FROM (SELECT CASE WHEN <pos> THEN 'p' ELSE 'n' END AS k FROM reviews) x GROUP BY k ORDER BY k
!SELECT year, count(*) FROM (SELECT year(<written>::DATE) AS year FROM reviews WHERE <pos>) x GROUP BY year ORDER BY year
!SELECT t, sum(c) FROM (SELECT <topic> AS t, 1 AS c FROM reviews UNION ALL SELECT <name>, 2 FROM reviews) x GROUP BY t ORDER BY t
!SELECT count(*) AS n FROM (SELECT * FROM nothing WHERE <pos>) x
!SELECT count(*), count(s) FROM (SELECT stars AS s FROM reviews WHERE <pos> IS NULL) x
!SELECT 'p' AS k, count(*) AS n, avg(stars) AS a FROM reviews WHERE <pos> UNION ALL SELECT 'j', count(*), avg(stars) FROM reviews WHERE <joke> UNION ALL SELECT 'all', count(*), avg(stars) FROM reviews ORDER BY n DESC
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film UNION SELECT film, count(*) FROM reviews WHERE <joke> GROUP BY film ORDER BY n, film
!SELECT x.film, x.n, y.n, x.n * 1.0 / y.n AS r FROM (SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film) x FULL JOIN (SELECT film, count(*) AS n FROM reviews WHERE <joke> GROUP BY film) y USING (film) ORDER BY 1
!SELECT f.film, (SELECT count(*) FROM (SELECT * FROM reviews r WHERE <pos r.text>) p WHERE p.film = f.film) AS n FROM films f ORDER BY 1
!SELECT avg(n) FROM (SELECT f.film, count(r.id) AS n FROM films f LEFT JOIN reviews r ON r.film = f.film AND <pos r.text> GROUP BY f.film) x
!SELECT film, CASE WHEN count(*) FILTER (WHERE <pos>) * 2 > count(*) THEN 'liked' ELSE 'not' END AS v FROM reviews GROUP BY film ORDER BY film
!SELECT id, lag(<pos>::BOOLEAN) OVER (PARTITION BY film ORDER BY id) AS c FROM reviews ORDER BY id
!SELECT x.id, y.k FROM (SELECT id, film, <topic> AS t FROM reviews WHERE id < 10) x JOIN (SELECT t, count(*) AS k FROM (SELECT <topic> AS t FROM reviews) z GROUP BY t) y ON x.t = y.t ORDER BY 1
!SELECT film, list({'id': id, 't': <topic>} ORDER BY id) AS l FROM reviews WHERE <joke> GROUP BY film ORDER BY film
!SELECT MAP {'p': <pos>::BOOLEAN, 'j': <joke>::BOOLEAN}['j'] AS j, id FROM reviews ORDER BY id

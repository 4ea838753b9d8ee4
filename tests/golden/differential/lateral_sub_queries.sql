-- sub-queries, VALUES and lists that read columns of the tables before them
SELECT r.id, l.n FROM reviews r, LATERAL (SELECT r.id + 1 AS n) l WHERE <pos r.text>
SELECT r.id, f.letters FROM reviews r, LATERAL (SELECT * FROM films f WHERE f.film = r.film) f WHERE <pos r.text>
SELECT f.film, x.id FROM films f, LATERAL (SELECT id FROM reviews r WHERE r.film = f.film AND <pos r.text> ORDER BY id LIMIT 2) x
SELECT f.film, x.n FROM films f LEFT JOIN LATERAL (SELECT count(*) AS n FROM reviews r WHERE r.film = f.film AND <joke r.text>) x ON true
SELECT f.film, x.n FROM films f CROSS JOIN LATERAL (SELECT count(*) AS n, avg(<rating r.text>) AS a FROM reviews r WHERE r.film = f.film) x
SELECT f.film, x.id, x.p FROM films f JOIN LATERAL (SELECT id, <topic r.text> AS p FROM reviews r WHERE r.film = f.film AND r.stars > 4) x ON true
SELECT r.id, l.m FROM reviews r JOIN LATERAL (SELECT max(b.id) AS m FROM reviews b WHERE b.film = r.film AND b.id < r.id) l ON l.m > 3 WHERE <pos r.text>
SELECT r.id, l.u FROM reviews r, LATERAL (SELECT upper(r.film) AS u) l WHERE <joke r.text> AND l.u LIKE 'A%'
SELECT count(*), max(l.n) FROM reviews r, LATERAL (SELECT r.stars * 2 AS n) l WHERE <pos r.text>
SELECT r.id, l.k FROM reviews r LEFT JOIN LATERAL (SELECT letters AS k FROM films f WHERE f.film = r.film AND f.letters > 5) l ON true WHERE <pos r.text>
SELECT l.u, count(*) FROM reviews r, LATERAL (SELECT r.film || '!' AS u) l WHERE <pos r.text> GROUP BY l.u
SELECT id, n FROM reviews, LATERAL (SELECT id * 2 AS n) WHERE <pos>
SELECT id, n FROM reviews, (SELECT id * 2 AS n) WHERE <pos>
SELECT r.id, a.n, b.m FROM reviews r, LATERAL (SELECT r.id + 1 AS n) a, LATERAL (SELECT a.n * 2 AS m) b WHERE <pos r.text>
SELECT r.id, x.v FROM reviews r, LATERAL (VALUES (r.id), (r.stars)) x(v) WHERE <joke r.text>
SELECT r.id, x.t FROM reviews r, LATERAL (SELECT unnest(r.tags) AS t) x WHERE <joke r.text>
SELECT f.film, x.t, x.n FROM films f, LATERAL (SELECT <topic r.text> AS t, count(*) AS n FROM reviews r WHERE r.film = f.film GROUP BY t) x ORDER BY ALL
SELECT f.film, x.best FROM films f, LATERAL (SELECT max(<rating r.text>) AS best FROM reviews r WHERE r.film = f.film) x
SELECT a.id, b.id, l.s FROM reviews a JOIN reviews b ON b.id = a.id + 1, LATERAL (SELECT a.stars + b.stars AS s) l WHERE <pos a.text> AND l.s > 4
SELECT a.id, f.letters, l.s FROM reviews a LEFT JOIN films f ON f.film = a.film AND f.letters > 5, LATERAL (SELECT coalesce(f.letters, 0) + a.id AS s) l WHERE <pos a.text>
SELECT film, r.id, l.n FROM reviews r JOIN films f USING (film), LATERAL (SELECT count(*) AS n FROM reviews b WHERE b.film = r.film AND b.stars > f.letters - 6) l WHERE <pos r.text>
SELECT film, r.id, l.n FROM reviews r FULL JOIN films f USING (film), LATERAL (SELECT upper(film) || r.id AS n) l WHERE <pos r.text>
SELECT f.film, x.id FROM films f JOIN LATERAL (SELECT id, text FROM reviews r WHERE r.film = f.film) x ON <pos x.text>
SELECT f.film, x.id FROM films f LEFT JOIN LATERAL (SELECT id, text FROM reviews r WHERE r.film = f.film) x ON <joke x.text> AND f.letters > 5
SELECT f.film, x.id FROM films f, LATERAL (SELECT id, text FROM reviews r WHERE r.film = f.film) x WHERE <joke x.text>
SELECT f.film, count(*) AS n FROM films f, LATERAL (SELECT id, text FROM reviews r WHERE r.film = f.film) x WHERE <joke x.text> GROUP BY f.film
SELECT f.film, x.id, y.k FROM films f, LATERAL (SELECT id FROM reviews r WHERE r.film = f.film AND <joke r.text>) x, LATERAL (SELECT count(*) AS k FROM reviews b WHERE b.id < x.id AND b.film = f.film AND <pos b.text>) y
SELECT f.film, x.id FROM films f, LATERAL (SELECT r.id FROM reviews r, LATERAL (SELECT r.stars + f.letters AS t) y WHERE y.t > 8 AND r.film = f.film AND <pos r.text>) x
WITH g AS (SELECT film FROM films WHERE letters > 4) SELECT g.film, x.m FROM g, LATERAL (SELECT max(<rating r.text>) AS m, min(<rating r.text>) AS n FROM reviews r WHERE r.film = g.film) x WHERE x.n < 5
SELECT * FROM (SELECT f.film, x.id AS best FROM films f, LATERAL (SELECT id FROM reviews r WHERE r.film = f.film AND <pos r.text> ORDER BY <rating r.text> DESC, id LIMIT 1) x) WHERE best > 3
SELECT id FROM reviews r WHERE id IN (SELECT x.m FROM films f, LATERAL (SELECT max(id) AS m FROM reviews b WHERE b.film = f.film AND <joke b.text>) x)
SELECT r.id, x.* FROM reviews r, LATERAL (SELECT r.id AS id, r.film AS film) x WHERE <joke r.text>
SELECT * EXCLUDE (text, tags, meta, day) FROM reviews r, LATERAL (SELECT 1 AS one, r.id + 1 AS id) x WHERE <joke r.text>
SELECT f.film, t.a, t.b FROM films f, LATERAL (SELECT letters + 1, film) t(a, b) JOIN reviews r ON r.film = t.b WHERE <joke r.text>
SELECT r.id, v.x FROM reviews r LEFT JOIN LATERAL (SELECT t AS x FROM unnest(r.tags) u(t) WHERE t LIKE 'x4') v ON true WHERE <pos r.text>
SELECT f.film, x.p, x.n FROM films f LEFT JOIN LATERAL (SELECT <pos r.text>::BOOLEAN AS p, count(*) AS n FROM reviews r WHERE r.film = f.film GROUP BY p) x ON x.p
SELECT x.t, sum(x.n) FROM films f, LATERAL (SELECT <topic r.text> AS t, count(*) AS n FROM reviews r WHERE r.film = f.film GROUP BY t) x GROUP BY x.t
SELECT f.film, max(x.r) FROM films f, LATERAL (SELECT <rating r.text> AS r FROM reviews r WHERE r.film = f.film) x GROUP BY f.film
SELECT f.film, x.r + 1 FROM films f, LATERAL (SELECT <rating r.text> AS r FROM reviews r WHERE r.film = f.film AND r.stars = 5) x
SELECT a.id, b.id FROM reviews a, LATERAL (SELECT id FROM reviews r WHERE r.film = a.film AND r.id < a.id AND <agree a.text r.text> ORDER BY id LIMIT 1) b WHERE a.id < 9
SELECT t.a, u.x FROM (SELECT id AS a, tags || ['z'] AS l, text FROM reviews) t, unnest(t.l) AS u(x) WHERE <joke t.text>
SELECT a.id, u.x FROM reviews a JOIN reviews b ON a.id = b.id + 1, unnest(a.tags || b.tags) AS u(x) WHERE <joke a.text>
SELECT a.id, u.x FROM reviews a LEFT JOIN films f ON f.film = a.film AND f.letters > 5, unnest(coalesce([f.film], ['none'])) AS u(x) WHERE <joke a.text>
SELECT r.id, x.v, x.w FROM reviews r LEFT JOIN LATERAL (VALUES (r.id, 'a'), (r.stars, 'b')) x(v, w) ON true WHERE <joke r.text>
SELECT r.id, x.v FROM reviews r, (VALUES (r.id), (r.stars)) x(v) WHERE <joke r.text> AND x.v > 3
SELECT f.film, x.a, y.b FROM films f, LATERAL (SELECT letters AS a) x, LATERAL (SELECT x.a * 2 AS b) y WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.film = f.film AND <joke r.text> AND r.id > y.b)
SELECT r.id, (SELECT l.z FROM films f, LATERAL (SELECT f.letters + r.id AS z) l WHERE f.film = r.film) AS q FROM reviews r WHERE <joke r.text>
SELECT q.id, l.film FROM quiet q, LATERAL (SELECT film FROM films WHERE letters > q.id + 4) l WHERE <pos q.text> IS NULL
SELECT n.id FROM nothing n, LATERAL (SELECT n.id + 1 AS z) l WHERE <pos n.text>
SELECT f.film, x.id FROM films f, LATERAL (SELECT id FROM reviews r WHERE r.film = f.film AND <pos r.text> UNION ALL SELECT -letters) x
SELECT f.film, x.id FROM films f POSITIONAL JOIN good g, LATERAL (SELECT r.id FROM reviews r WHERE r.film = f.film AND r.stars > g.stars AND <joke r.text>) x
SELECT r.id, l.n FROM reviews r SEMI JOIN films f ON f.film = r.film AND f.letters > 5, LATERAL (SELECT r.id * 2 AS n) l WHERE <joke r.text>
SELECT DISTINCT ON (f.film) f.film, x.id FROM films f, LATERAL (SELECT id FROM reviews r WHERE r.film = f.film AND <pos r.text>) x ORDER BY f.film, x.id

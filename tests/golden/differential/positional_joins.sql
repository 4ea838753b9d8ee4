-- rows side by side, by their places
SELECT r.id, f.film FROM reviews r POSITIONAL JOIN films f WHERE <pos r.text>
SELECT count(*) FROM reviews r POSITIONAL JOIN films f WHERE <pos r.text>
SELECT r.id, f.film, <topic r.text> AS t FROM reviews r POSITIONAL JOIN films f WHERE f.film IS NOT NULL
SELECT r.id, p.k FROM reviews r POSITIONAL JOIN (SELECT id AS k FROM reviews WHERE <pos> ORDER BY id) p WHERE <joke r.text>
SELECT a.id, b.id FROM (SELECT id FROM reviews WHERE <pos> ORDER BY id) a POSITIONAL JOIN (SELECT id FROM reviews WHERE NOT <pos> ORDER BY id) b
SELECT a.id, b.id, c.film FROM reviews a POSITIONAL JOIN good b POSITIONAL JOIN films c WHERE <pos a.text>
SELECT f.film, count(*) FILTER (<pos r.text>) FROM films f POSITIONAL JOIN reviews r GROUP BY f.film
SELECT a.id, b.film FROM reviews a POSITIONAL JOIN films b WHERE <pos a.text> AND b.film IS NOT NULL
SELECT a.id, b.film FROM reviews a JOIN good g USING (id) POSITIONAL JOIN films b WHERE <pos a.text> AND b.letters > 4
SELECT a.id, b.film FROM films b POSITIONAL JOIN reviews a WHERE a.stars > 2 AND (<pos a.text> OR b.film = 'Dune')
WITH p AS (SELECT id FROM reviews WHERE <pos> ORDER BY id DESC) SELECT a.id, p.id FROM p POSITIONAL JOIN reviews a
SELECT count(*) FROM (SELECT id FROM reviews WHERE <pos> ORDER BY id DESC LIMIT 3) a POSITIONAL JOIN (SELECT id FROM reviews WHERE <joke> ORDER BY id) b WHERE a.id > b.id
SELECT a.id, f.film, c.id FROM reviews a POSITIONAL JOIN films f LEFT JOIN good c ON c.id = a.id AND <pos c.text> WHERE a.id < 9
SELECT a.id, f.film, c.id FROM reviews a POSITIONAL JOIN films f JOIN good c ON c.id = a.id AND <pos c.text>
SELECT a.id, a.film, f.film FROM (reviews a POSITIONAL JOIN films f) WHERE <pos a.text> AND f.film = a.film
SELECT a.id, c.id FROM (reviews a JOIN reviews b ON a.id = b.id AND <pos a.text>) ASOF JOIN reviews c ON b.day > c.day

!SELECT film FROM films f WHERE f.film IN (SELECT r.film FROM reviews r WHERE r.stars > f.letters - 3 AND <joke r.text>) ORDER BY 1
!SELECT film FROM films f WHERE f.film NOT IN (SELECT r.film FROM reviews r WHERE r.film = f.film AND <joke r.text>) ORDER BY 1
!SELECT r.id FROM reviews r WHERE <name r.text> IN (SELECT 'Ada' FROM films f WHERE f.film = r.film) ORDER BY 1
!SELECT r.id FROM reviews r WHERE <topic r.text> IN (SELECT CASE WHEN f.letters = 5 THEN 'plot' ELSE 'music' END FROM films f WHERE f.film = r.film) ORDER BY 1
!SELECT film, (SELECT count(*) FROM (SELECT * FROM reviews WHERE <pos>) p WHERE p.film = f.film) AS n FROM films f ORDER BY 1
!SELECT film FROM films f WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.film = f.film AND <joke r.text> UNION ALL SELECT 1 FROM reviews r WHERE r.film = f.film AND r.stars = 5) ORDER BY 1
!SELECT film FROM films f WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.film = f.film AND <joke r.text> INTERSECT SELECT 1 FROM reviews r WHERE r.film = f.film AND r.stars = 3) ORDER BY 1
!SELECT film, (SELECT count(*) FROM (SELECT id FROM reviews r WHERE r.film = f.film AND <pos r.text> UNION SELECT id FROM reviews r WHERE r.film = f.film AND <joke r.text>)) AS n FROM films f ORDER BY 1
!SELECT film FROM films f WHERE EXISTS (SELECT 1 FROM reviews a WHERE a.film = f.film AND <joke a.text> AND EXISTS (SELECT 1 FROM reviews b WHERE b.film = a.film AND b.id <> a.id AND <pos b.text>)) ORDER BY 1
!SELECT film FROM films f WHERE EXISTS (SELECT 1 FROM reviews a WHERE a.film = f.film AND <joke a.text> AND a.id IN (SELECT id FROM reviews b WHERE <pos b.text>)) ORDER BY 1
!SELECT film, (SELECT count(b.id) FROM reviews a LEFT JOIN reviews b ON a.id + 1 = b.id AND <pos b.text> WHERE a.film = f.film) AS n FROM films f ORDER BY 1
!SELECT film, (SELECT count(*) FROM reviews a ANTI JOIN reviews b ON a.id + 1 = b.id AND <pos b.text> WHERE a.film = f.film) AS n FROM films f ORDER BY 1
!SELECT film, (SELECT t FROM (SELECT <topic r.text> AS t, count(*) AS n FROM reviews r WHERE r.film = f.film AND r.text IS NOT NULL GROUP BY t ORDER BY n DESC, t LIMIT 1)) AS t FROM films f ORDER BY 1
!SELECT film, (SELECT max(n) FROM (SELECT count(*) AS n FROM reviews r WHERE r.film = f.film GROUP BY <topic r.text>::ENUM('plot','acting','music'))) AS t FROM films f ORDER BY 1
!SELECT count(*) FROM reviews WHERE <topic> IN (SELECT CASE film WHEN 'Alien' THEN 'plot' ELSE 'music' END FROM films)
!SELECT id FROM reviews WHERE <topic> NOT IN (SELECT 'plot' UNION ALL SELECT 'music') ORDER BY 1
!SELECT id, <topic> IN (SELECT 'plot') AS k FROM reviews ORDER BY 1 ### SELECT id, CASE WHEN <topic> = 'plot' THEN 'plot' WHEN <topic> IS NOT NULL THEN 'none of these' END AS k FROM reviews ORDER BY 1
!SELECT id FROM reviews WHERE <rating> IN (SELECT stars FROM reviews WHERE stars IS NOT NULL) ORDER BY 1
!SELECT id FROM reviews WHERE <rating> > (SELECT avg(<rating>) FROM reviews) ORDER BY 1
!SELECT id FROM reviews a WHERE <rating a.text> > (SELECT avg(<rating b.text>) FROM reviews b WHERE b.film = a.film) ORDER BY 1
!SELECT a.id FROM reviews a WHERE EXISTS (SELECT 1 FROM reviews b WHERE b.film = a.film AND b.id > a.id AND b.id < a.id + 9 AND <agree a.text b.text>) AND a.id < 15 ORDER BY 1
!SELECT id FROM reviews WHERE EXISTS (SELECT 1 FROM films WHERE films.film = reviews.film AND letters > 5) AND <pos> ORDER BY 1
!SELECT id, EXISTS (SELECT 1 FROM reviews b WHERE b.id = a.id + 1 AND <joke b.text>) AS e FROM reviews a WHERE <pos a.text> ORDER BY 1
!SELECT film, count(*) AS n FROM reviews r WHERE EXISTS (SELECT 1 FROM reviews b WHERE b.film = r.film AND b.id = r.id - 1 AND <pos b.text>) GROUP BY film ORDER BY 1
!SELECT film FROM films f ORDER BY (SELECT count(*) FROM reviews r WHERE r.film = f.film AND <pos r.text>) DESC, film
!SELECT film FROM films f GROUP BY film HAVING (SELECT count(*) FROM reviews r WHERE r.film = f.film AND <pos r.text>) > 5 ORDER BY 1
SELECT id, (SELECT max((SELECT count(*) FROM films f WHERE f.letters > c.stars)) FROM reviews c WHERE c.stars = b.stars AND <plot c.text>) AS n FROM reviews b
SELECT id FROM reviews b WHERE <rating b.text> IN (SELECT (SELECT max(f.letters) FROM films f WHERE f.letters > c.stars AND f.film <> b.film) FROM reviews c WHERE c.stars = b.stars AND <plot c.text>)
SELECT id, (SELECT c.id FROM reviews c WHERE c.stars = b.stars AND <plot c.text> ORDER BY (SELECT f.letters FROM films f WHERE f.film = c.film) DESC, c.id LIMIT 1) AS first FROM reviews b
SELECT id FROM reviews WHERE EXISTS (SELECT 1 FROM (SELECT film AS f, text FROM reviews) AS v WHERE f = film AND <joke v.text>)
SELECT id FROM reviews r WHERE EXISTS (SELECT 1 FROM (SELECT film AS f, text FROM reviews r) AS v WHERE v.f = r.film AND <joke v.text>)
SELECT id, (SELECT count(*) FROM (SELECT film AS f, text FROM reviews r WHERE r.stars > 2) AS v WHERE v.f = r.film AND <joke v.text>) AS n FROM reviews r
SELECT id, (SELECT count(*) FROM (SELECT film AS f, text FROM reviews r WHERE r.stars > 2) AS v WHERE v.f = r.film) AS n FROM reviews r WHERE <pos r.text>
SELECT id FROM reviews WHERE <pos> AND EXISTS (SELECT 1 FROM (SELECT film AS f FROM films) AS v WHERE f = film)
SELECT r.id, x.n FROM reviews r, LATERAL (SELECT count(*) AS n FROM (SELECT film AS f, text FROM reviews r) v WHERE v.f = r.film AND <joke v.text>) x
SELECT id FROM reviews r WHERE r.film IN (SELECT v.f FROM (SELECT r.film AS f, r.text FROM reviews r WHERE <pos r.text>) v WHERE v.f = r.film AND <joke v.text>)
SELECT r.id FROM reviews r WHERE EXISTS (SELECT 1 FROM films f WHERE f.film = r.film AND f.letters IN (SELECT length(r.film) FROM reviews r WHERE <joke r.text> AND r.film = f.film))
SELECT r.id FROM reviews r WHERE <pos r.text> AND r.stars > (SELECT avg(v.s) FROM (SELECT r.stars AS s, r.film AS f FROM reviews r WHERE r.stars IS NOT NULL) v WHERE v.f = r.film)
SELECT r.id FROM reviews r WHERE r.stars > (SELECT avg(v.s) FROM (SELECT r.stars AS s, r.film AS f FROM reviews r WHERE <joke r.text>) v WHERE v.f = r.film)
WITH v AS (SELECT film AS f, text FROM reviews) SELECT id FROM reviews WHERE EXISTS (SELECT 1 FROM v WHERE f = film AND <joke v.text>)
WITH v AS (SELECT film AS f, <joke>::BOOLEAN AS j FROM reviews) SELECT id FROM reviews WHERE EXISTS (SELECT 1 FROM v WHERE f = film AND j)
SELECT id FROM reviews WHERE true OR EXISTS (SELECT 1 FROM (SELECT film AS f, text FROM reviews) AS v WHERE f = film AND <joke v.text>)
SELECT id FROM reviews WHERE <pos> AND (true OR EXISTS (SELECT 1 FROM (SELECT film AS f, text FROM reviews) AS v WHERE f = film AND <joke v.text>))
SELECT film FROM reviews WHERE <pos> EXCEPT SELECT film FROM reviews WHERE true OR EXISTS (SELECT 1 FROM (SELECT film AS f, text FROM reviews) AS v WHERE f = film AND <joke v.text>)
SELECT film FROM reviews WHERE true OR EXISTS (SELECT 1 FROM reviews v WHERE v.film = reviews.film AND <joke v.text>)
SELECT film FROM reviews WHERE <pos> AND (false AND EXISTS (SELECT 1 FROM reviews v WHERE v.film = reviews.film AND <joke v.text>))
SELECT id, CASE WHEN true THEN id ELSE (SELECT count(*) FROM reviews v WHERE v.film = reviews.film AND <joke v.text>) END AS k FROM reviews
SELECT id FROM reviews WHERE <pos> AND (true OR id IN (SELECT id FROM reviews WHERE <joke>))
SELECT film, count(*) FROM reviews GROUP BY film HAVING film IN (SELECT film FROM reviews WHERE <joke>) AND count(*) FILTER (<pos>) > 3
SELECT film, count(*) FROM reviews r GROUP BY film HAVING EXISTS (SELECT 1 FROM reviews v WHERE v.film = r.film AND <joke v.text>) AND count(*) > 3
SELECT film, count(*) FROM reviews r GROUP BY film HAVING true OR EXISTS (SELECT 1 FROM reviews v WHERE v.film = r.film AND <joke v.text>)
SELECT id FROM reviews r WHERE false OR (<pos r.text> AND NOT (true AND EXISTS (SELECT 1 FROM reviews v WHERE v.id = r.id + 1 AND <joke v.text>)))

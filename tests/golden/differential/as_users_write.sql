-- statements in the manner of users of several systems
!SELECT id FROM reviews WHERE <pos> AND id IN (SELECT id FROM reviews WHERE <plot> AND stars > (SELECT avg(stars) FROM reviews WHERE <joke> OR <pos>)) ORDER BY id
!WITH p AS (SELECT id, film, <topic> AS t FROM reviews) SELECT t, count(*), count(DISTINCT film) FROM p GROUP BY t ORDER BY t
!SELECT a.id, b.id FROM reviews a JOIN reviews b ON a.film = b.film AND a.id < b.id AND <agree a.text b.text> JOIN films f ON f.film = a.film WHERE f.letters > 5 AND a.id < 12 ORDER BY 1, 2
!SELECT id, row_number() OVER (PARTITION BY <topic>::ENUM('plot','acting','music') ORDER BY <rating> DESC, id) AS k FROM reviews ORDER BY id
!SELECT id, sum(<rating>) OVER (PARTITION BY film ORDER BY id ROWS BETWEEN 1 PRECEDING AND CURRENT ROW) AS s FROM reviews ORDER BY id
!SELECT id, first_value(<name>) OVER (PARTITION BY film ORDER BY id) AS f, last_value(<name>) OVER (PARTITION BY film ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND UNBOUNDED FOLLOWING) AS l FROM reviews ORDER BY id
!SELECT id, <pos>::BOOLEAN AS p FROM reviews WHERE p ORDER BY id
!SELECT id, <rating> AS r FROM reviews WHERE r > 5 ORDER BY r DESC, id
!SELECT upper(<name>) AS who, min(stars) AS lo FROM reviews WHERE text IS NOT NULL GROUP BY who ORDER BY who
!SELECT CASE WHEN <pos> THEN 'good' WHEN <joke> THEN 'joke' ELSE 'bad' END AS c, count(*) AS n FROM reviews GROUP BY c ORDER BY c
!SELECT film, count(*) FILTER (<pos>) / count(*) AS share FROM reviews GROUP BY film ORDER BY film
!SELECT string_agg(<name>, ', ' ORDER BY id) AS l FROM reviews WHERE id < 5
!SELECT count(*) FROM nothing WHERE <pos>
!SELECT avg(<rating>), max(<rating>), list(<name>) FROM nothing
!SELECT count(*) FROM reviews r LEFT JOIN nothing n ON r.film = n.film AND <agree r.text n.text>
!SELECT id FROM reviews WHERE <pos> AND id IN (SELECT id FROM nothing WHERE <joke>) ORDER BY id
!SELECT id, <pos>::BOOLEAN AS p FROM quiet ORDER BY id
!SELECT count(*) FROM quiet q JOIN reviews r ON <agree q.text r.text>
!SELECT text, count(*) AS n FROM reviews WHERE <pos> GROUP BY text HAVING count(*) > 1 ORDER BY text
!SELECT DISTINCT <topic> AS t, <pos>::BOOLEAN AS p FROM reviews ORDER BY t, p
!SELECT id FROM reviews WHERE <pos> UNION SELECT id FROM reviews WHERE <joke> ORDER BY id DESC LIMIT 5
!SELECT r.id, (SELECT count(*) FROM reviews x WHERE x.film = r.film AND <joke x.text>) AS jokes FROM reviews r WHERE <pos r.text> ORDER BY 1
!SELECT r.id FROM reviews r, films f WHERE r.film = f.film AND f.letters < 6 AND <pos r.text> ORDER BY 1
!SELECT f.film, r.id FROM films f LEFT JOIN (SELECT * FROM reviews WHERE <joke>) r ON r.film = f.film ORDER BY 1, 2
!SELECT f.film FROM films f WHERE f.film NOT IN (SELECT film FROM reviews WHERE <joke>) ORDER BY 1
!SELECT id FROM reviews ORDER BY <pos>::BOOLEAN DESC, <rating> DESC, id LIMIT 7
!SELECT id FROM good WHERE <pos> AND NOT <joke> ORDER BY id
!SELECT date_trunc('month', <written>::DATE) AS m, count(*) AS n, sum(<rating>) AS s FROM reviews GROUP BY m ORDER BY m
!SELECT id, <rating>::INTEGER % 3 AS k, CASE WHEN <rating> > 5 THEN 'hi' ELSE 'lo' END AS c FROM reviews ORDER BY id
!SELECT id, t FROM (SELECT id, unnest(<tags>::VARCHAR[]) AS t FROM reviews) WHERE t <> 'jokes' ORDER BY id, t
!SELECT ROUND(100.0 * COUNT(*) FILTER (WHERE <pos>) / NULLIF(COUNT(*), 0), 1) AS pct FROM reviews
!SELECT id FROM reviews WHERE NOT EXISTS (SELECT 1 FROM reviews b WHERE b.text = reviews.text AND b.id < reviews.id) AND <pos> ORDER BY id
!SELECT film FROM reviews GROUP BY film HAVING count(*) FILTER (<pos>) > count(*) FILTER (NOT <pos>) ORDER BY film
!SELECT film FROM reviews GROUP BY film HAVING avg(<rating>) > (SELECT avg(<rating>) FROM reviews) ORDER BY film
!SELECT id FROM reviews WHERE <pos> ORDER BY id OFFSET 3
!SELECT id FROM reviews WHERE <pos> AND stars = 99 ORDER BY id
!SELECT film, stars, count(*) FROM reviews WHERE <pos> GROUP BY CUBE (film, stars) ORDER BY ALL
!SELECT id, stars FROM reviews WHERE <pos> AND stars IN (SELECT unnest([1,2])) ORDER BY id
!SELECT id FROM reviews WHERE <name> IN ('Ada', 'Bo') OR <topic> IN ('plot') ORDER BY id
!SELECT id, <name> = 'Ada' AS is_ada, <rating> > 5 AS high, <pos> AND <joke> AS both FROM reviews ORDER BY id ### SELECT id, CASE WHEN <name> = 'Ada' THEN 'Ada' WHEN <name> IS NOT NULL THEN 'none of these' END AS is_ada, <rating> > 5, <pos> AND <joke> FROM reviews ORDER BY id
!SELECT id FROM reviews ORDER BY film, <rating> DESC, id LIMIT 9
!SELECT a.id, b.id FROM reviews a LEFT JOIN reviews b ON a.id + 1 = b.id AND <pos a.text> AND <joke b.text> WHERE a.id < 9 ORDER BY 1, 2
!SELECT id, <rating> BETWEEN 3 AND 7 AS m, <rating> IS NOT NULL AS k FROM reviews ORDER BY id
!SELECT CASE WHEN <rating> >= 8 THEN 'high' WHEN <rating> >= 4 THEN 'mid' ELSE 'low' END AS band, count(*) AS n, list(id ORDER BY id) AS ids FROM reviews GROUP BY band ORDER BY n, band
!SELECT strftime(day, '%m') AS m, count(*) FILTER (WHERE <pos>) AS p, count(*) AS n FROM reviews GROUP BY ALL ORDER BY ALL
!SELECT id FROM reviews WHERE <pos> AND id % 2 = 0 EXCEPT ALL SELECT id FROM reviews WHERE <joke> ORDER BY id
!SELECT id FROM reviews a WHERE <pos a.text> AND (SELECT count(*) FROM reviews b WHERE b.film = a.film AND b.id < a.id AND <pos b.text>) < 2 ORDER BY id
!SELECT id FROM reviews WHERE film IN (SELECT film FROM reviews WHERE <joke> GROUP BY film HAVING count(*) >= 2) AND <pos> ORDER BY id
!SELECT r.film, f.letters, count(*) FROM reviews r JOIN films f ON r.film = f.film WHERE <pos r.text> GROUP BY ALL ORDER BY 1
!SELECT id FROM reviews WHERE CASE WHEN <joke> THEN stars > 2 ELSE <pos> END ORDER BY id
!SELECT id FROM reviews WHERE <rating> + <anger> > 10 ORDER BY id
!SELECT id, abs(<rating> - stars) AS d FROM reviews WHERE stars IS NOT NULL ORDER BY d, id LIMIT 5
!SELECT <name> || '/' || <topic> AS k, count(*) FROM reviews GROUP BY k ORDER BY k
!SELECT unnest([<name>, film]) AS u, count(*) FROM reviews WHERE id < 5 GROUP BY u ORDER BY u
!SELECT id, md5(<name>) AS h, hash(film) IS NOT NULL AS k, uuid()::VARCHAR IS NOT NULL AS u FROM reviews WHERE id < 4 ORDER BY id
!SELECT id FROM reviews WHERE <name> = E'A\x64a' OR film = $$Brazil$$ AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE <name> ^@ 'A' ORDER BY id
!SELECT id, <rating>::DOUBLE PRECISION AS d, film::CHARACTER VARYING AS v, [stars]::INTEGER[1] AS a, MAP {'a': 1}::MAP(VARCHAR, DOUBLE PRECISION) AS m FROM reviews ORDER BY id
!SELECT id FROM reviews WHERE <name> SIMILAR TO '[AB].*' ORDER BY id
!SELECT id FROM reviews WHERE <name> NOT GLOB 'A*' ORDER BY id
!SELECT r.id, r.film, COUNT(*) OVER (PARTITION BY r.film) AS n FROM reviews r WHERE <pos r.text> ORDER BY r.film, r.id LIMIT 5
!SELECT film, array_agg(<name> ORDER BY id) AS l FROM reviews WHERE id < 9 GROUP BY film ORDER BY film
!SELECT film, count(*) FILTER (WHERE <topic> = 'plot') AS p, count(*) FILTER (WHERE <topic> = 'music') AS m FROM reviews GROUP BY film ORDER BY film
!SELECT film, sum((<topic> = 'plot')::INT) AS p FROM reviews GROUP BY film ORDER BY film
!SELECT film, IFNULL(max(<rating>), 0) AS m, NULLIF(min(<rating>), 1) AS n FROM reviews GROUP BY film ORDER BY film
!SELECT id FROM reviews WHERE <pos> = TRUE AND <joke> = FALSE ORDER BY id
!SELECT id FROM reviews WHERE <pos> OR NULL ORDER BY id
!SELECT x.id, x.p FROM (SELECT id, <pos>::BOOLEAN AS p FROM reviews) x LEFT JOIN (SELECT id, <joke>::BOOLEAN AS j FROM reviews) y USING (id) WHERE y.j IS NOT TRUE ORDER BY 1
!SELECT t, count(*) FROM (SELECT id, <topic> AS t FROM reviews) WHERE t <> 'plot' GROUP BY t ORDER BY t
!SELECT id FROM reviews WHERE <rating>::VARCHAR LIKE '1%' ORDER BY id
!SELECT id FROM reviews WHERE <written> >= '2023-05-01' ORDER BY id
!SELECT id FROM reviews WHERE year(<written>::DATE) = 2023 AND month(<written>::DATE) IN (3, 4) ORDER BY id
!SELECT id, <written>::DATE > day AS late FROM reviews ORDER BY id
!SELECT generate_series AS g, count(r.id) FROM generate_series(0, 3) g LEFT JOIN reviews r ON r.id = g.generate_series AND <pos r.text> GROUP BY 1 ORDER BY 1
!WITH a AS MATERIALIZED (SELECT id FROM reviews WHERE <pos>), b AS (SELECT id FROM a WHERE id > 5) SELECT (SELECT count(*) FROM a) AS x, (SELECT count(*) FROM b) AS y
!SELECT a.id FROM reviews a WHERE a.id = (SELECT min(b.id) FROM reviews b WHERE b.film = a.film AND <pos b.text>) ORDER BY 1
!SELECT count(*) c, sum(stars) s FROM reviews WHERE <pos> HAVING c > 3
!SELECT mode(<topic>) AS m, entropy(<topic>) AS e FROM reviews
!SELECT quantile_cont(<rating>, 0.5) AS q, quantile_cont(<rating>, [0.25, 0.75]) AS r FROM reviews
!SELECT id, sum(<rating>) OVER w AS s, avg(<rating>) OVER w AS a FROM reviews WINDOW w AS (PARTITION BY film ORDER BY id) ORDER BY id
!SELECT film, sum(sum(<rating>)) OVER () AS s, avg(<rating>) AS a FROM reviews GROUP BY film ORDER BY film

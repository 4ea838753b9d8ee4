!SELECT * EXCLUDE (text, tags, meta) FROM reviews WHERE <pos> ORDER BY id
!SELECT * EXCLUDE text FROM reviews WHERE <pos> ORDER BY id
!SELECT * REPLACE (stars + 1 AS stars) FROM reviews WHERE <pos> ORDER BY id
!SELECT * EXCLUDE (text) REPLACE (upper(film) AS film) FROM reviews WHERE <pos> ORDER BY id
!SELECT * RENAME (film AS movie) FROM reviews WHERE <pos> ORDER BY id
!SELECT r.* EXCLUDE (text) FROM reviews r WHERE <pos> ORDER BY id
!SELECT *, <topic> AS t FROM reviews ORDER BY id
!SELECT id, COLUMNS('st.*') FROM reviews WHERE <pos> ORDER BY id
!SELECT min(COLUMNS(['id', 'stars'])) FROM reviews WHERE <pos>
!SELECT * LIKE 's%', id FROM reviews WHERE <pos> ORDER BY id
!SELECT * NOT LIKE '%t%', <topic> AS t FROM reviews ORDER BY id
!SELECT r.* ILIKE '%$T%' ESCAPE '$' FROM reviews r WHERE <pos> ORDER BY r.id
!SELECT * EXCLUDE (stars) SIMILAR TO '(s|f).*', id FROM reviews WHERE <pos> ORDER BY id
!SELECT * NOT SIMILAR TO 't.*' FROM reviews WHERE <pos> ORDER BY id
!SELECT * GLOB 'f*' AS 'the_\0' FROM reviews WHERE <pos> ORDER BY the_film
!SELECT * !~~ 't%' FROM reviews WHERE <pos> ORDER BY id
!SELECT COLUMNS('^(.)(ilm|tars)$') AS '\2_\1\3', id FROM reviews WHERE <pos> ORDER BY id
!SELECT COLUMNS('^(.)(ilm|tars)$') AS "\2_\1", id FROM reviews WHERE <pos> ORDER BY id
!SELECT max(COLUMNS(* EXCLUDE (text, tags, meta))) AS 'most \0' FROM reviews WHERE <pos>
!SELECT film AS 'the film', count(*) AS 'n' FROM reviews WHERE <pos> GROUP BY film ORDER BY n, film
!FROM reviews SELECT id WHERE <pos> ORDER BY id
!FROM reviews WHERE <pos> ORDER BY id
!FROM one
!FROM (FROM reviews WHERE <pos>) SELECT count(*)
!SELECT id, film, FROM reviews WHERE <pos> ORDER BY id
!SELECT film, count(*), FROM reviews WHERE <pos> GROUP BY film, ORDER BY film
!SELECT id FROM reviews WHERE stars IN (1, 2, 3,) AND <pos> ORDER BY id
!SELECT k: id, f: film FROM reviews WHERE <pos> ORDER BY k
!SELECT id, meta.b AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id, meta['b'] AS b, tags[1] AS t, tags[1:1] AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, [x || '!' FOR x IN tags] AS l FROM reviews WHERE <pos> ORDER BY id
!SELECT id, list_transform(tags, lambda x: upper(x)) AS l FROM reviews WHERE <pos> ORDER BY id
!SELECT id, {'a': stars, 'b': <topic>} AS s FROM reviews WHERE id < 9 ORDER BY id
!SELECT id, struct_pack(a := stars, b := <topic>) AS s FROM reviews WHERE id < 9 ORDER BY id
!SELECT id, [film, <topic>] AS s FROM reviews WHERE id < 6 ORDER BY id
!SELECT id, MAP {'a': stars} AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, film.upper() AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, film.lower().length() AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, extract(month FROM day) AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, substring(film FROM 1 FOR 2) AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, film[1:2] AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, trim(BOTH 'A' FROM film) AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, trim(BOTH ('A') FROM film) AS s, trim(LEADING (left(film, 1)) FROM film) AS l FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE day >= DATE '2024-03-01' AND day < '2024-07-01'::DATE AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE day BETWEEN '2024-02-01' AND '2024-05-31' AND <pos> ORDER BY id
!SELECT id, strftime(day, '%Y-%m') AS m FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews TABLESAMPLE 100% WHERE <pos> ORDER BY id
!SELECT id FROM reviews USING SAMPLE 100% (bernoulli) WHERE <pos> ORDER BY id ### SELECT id FROM reviews WHERE <pos> ORDER BY id
!SELECT count(*) FROM (SELECT * FROM reviews USING SAMPLE 1000 ROWS) WHERE <pos>
!SELECT id FROM "reviews" WHERE <pos> AND "stars" > 2 ORDER BY "id"
!SELECT "id" AS "the number of it" FROM reviews WHERE <pos> ORDER BY "the number of it"
!SELECT "the id", "select", "group" FROM "odd names" WHERE "select" > 3 ORDER BY 1
!SELECT "the id" FROM "odd names" WHERE <pos> ORDER BY 1 ### SELECT "the id" FROM "odd names" WHERE pos("the text") ORDER BY 1
!SELECT o."the id" FROM "odd names" o WHERE <pos> ORDER BY 1 ### SELECT "the id" FROM "odd names" WHERE pos("the text") ORDER BY 1
!SELECT id FROM good WHERE <pos> ORDER BY id
!SELECT id FROM main.reviews WHERE <pos> ORDER BY id
!SELECT main.reviews.id FROM main.reviews WHERE <pos> ORDER BY id
!SELECT reviews.id FROM reviews WHERE <pos> ORDER BY reviews.id
!SELECT R.ID FROM Reviews R WHERE <pos> ORDER BY R.Id
!SELECT id FROM reviews WHERE film = "Alien" AND <pos> ORDER BY id ### SELECT id FROM reviews WHERE film = 'Alien' AND <pos> ORDER BY id
!SELECT id, stars::VARCHAR || '*' AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, <name> || ' on ' || film AS s FROM reviews ORDER BY id
!SELECT id, concat(<name>, '/', stars) AS s FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, length(<name>) AS s FROM reviews ORDER BY id
!SELECT id, round(<rating> / 3, 2) AS s FROM reviews ORDER BY id
!SELECT id, greatest(<rating>, stars) AS s FROM reviews ORDER BY id
!SELECT id, stars ** 2 AS s, 2 ^ 3 AS t FROM reviews WHERE <pos> ORDER BY id
!SELECT id, 7 // 2 AS a, 7 / 2 AS b, 7 % 2 AS c, -7 // 2 AS d FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE film NOT SIMILAR TO 'A.*' AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE film !~ 'A.*' AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE film ~~ 'A%' AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE stars ISNULL AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE stars NOTNULL AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE stars IS NOT DISTINCT FROM NULL AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE 'Alien' IN tags AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE list_has_any(tags, ['Alien', 'x3']) AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE (film, stars) IN (('Alien', 3), ('Brazil', 2)) AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE (film, stars) = ('Alien', 3) AND <pos> ORDER BY id
!SELECT id, '{"a": 1}'::JSON -> 'a' AS j, '{"a": 1}'::JSON ->> '$.a' AS k FROM reviews WHERE <pos> ORDER BY id
!SELECT id, CAST(film AS VARCHAR(10)) AS v, stars::NUMERIC AS n FROM reviews WHERE <pos> ORDER BY id
!SELECT count(*) AS "count", max(id) AS "max" FROM reviews WHERE <pos>
!SELECT id AS value, film AS key FROM reviews WHERE <pos> ORDER BY value
!SELECT r.id AS from_id FROM reviews AS r WHERE <pos> ORDER BY from_id
!SELECT id FROM reviews AS r(id, movie) WHERE <pos> ORDER BY movie, id
!SELECT t.k FROM (SELECT id, film FROM reviews WHERE <pos>) AS t(k, f) ORDER BY t.f, k
!SELECT id FROM reviews WHERE <pos> -- comment
!SELECT /* c */ id FROM reviews WHERE <pos> ORDER BY id;
!SELECT id FROM reviews WHERE (((<pos>))) ORDER BY id
!SELECT ALL id FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE <pos> GROUP BY id ORDER BY id
!SELECT * FROM (PIVOT (SELECT film, stars FROM reviews) ON film USING count(*) GROUP BY stars) ORDER BY stars
!PIVOT reviews ON film USING count(*) GROUP BY stars ORDER BY stars
!SELECT unnest([1,2,3]) AS u FROM one WHERE <pos> OR NOT <pos> ORDER BY u
!SELECT * FROM generate_series(1, 3) g(n) JOIN reviews r ON r.id = g.n WHERE <pos r.text> ORDER BY n
!SELECT id, generate_subscripts(tags, 1) AS g FROM reviews WHERE <joke> ORDER BY ALL
!SELECT id FROM reviews WHERE <pos> AND id NOT IN (SELECT id FROM reviews WHERE stars = 3) ORDER BY id
!SELECT film, list(id ORDER BY id)[1:2] AS l FROM reviews WHERE <pos> GROUP BY film ORDER BY film
!SELECT film, (count(*) * 100.0 / sum(count(*)) OVER ())::DECIMAL(5,1) AS share FROM reviews WHERE <pos> GROUP BY film ORDER BY film
!SELECT film, quantile_cont(stars, 0.5) AS q, percentile_cont(0.5) WITHIN GROUP (ORDER BY stars) AS p FROM reviews WHERE <pos> GROUP BY film ORDER BY film
!SELECT histogram(<topic>) AS h FROM reviews
!SELECT approx_count_distinct(film) AS h, any_value(film) IS NOT NULL AS k FROM reviews WHERE <pos>
!SELECT corr(<rating>, stars) AS h, covar_pop(<rating>, stars) AS k FROM reviews
!SELECT max(id, 3) AS l, min_by(id, stars) AS m FROM reviews WHERE <pos>
!SELECT id FROM reviews WHERE starts_with(film, 'A') AND contains(film, 'l') AND <pos> ORDER BY id
!SELECT current_date IS NOT NULL AS d, now() IS NOT NULL AS n, id FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE text LIKE '%plot%' AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE length(text) > 10 AND <pos> ORDER BY id
!SELECT id FROM reviews r1 WHERE <pos> AND EXISTS (SELECT 1 FROM films WHERE film = r1.film AND letters > 5) ORDER BY id
!SELECT id, (SELECT letters FROM films f WHERE f.film = r.film) AS l FROM reviews r WHERE <pos> ORDER BY id
!SELECT COLUMNS(['stars', 'id']) FROM reviews WHERE <pos> ORDER BY id
!SELECT * RENAME film AS f FROM reviews WHERE <pos> ORDER BY id
!SELECT id, [1, 2, 3][:-1:2] AS a, film[:2] AS b FROM reviews WHERE <pos> ORDER BY id
SELECT count(*) FROM reviews WHERE <pos> GROUP BY ()
!SELECT film, count(*) FROM reviews WHERE <pos> GROUP BY film, () ORDER BY film
!SELECT a.id FROM (reviews a JOIN films f USING (film)) a WHERE <pos a.text> ORDER BY 1
SELECT id FROM reviews WHERE <pos> USING SAMPLE 100% (bernoulli, 3)
!SELECT * EXCLUDE (f.film, a.text) FROM reviews a, films f WHERE f.film = a.film AND <pos a.text> ORDER BY id
!SELECT * EXCLUDE (a.film, a.text) FROM reviews a JOIN films f USING (film) WHERE <pos a.text> ORDER BY id

-- functions in FROM that give rows for each row of a table before them
SELECT id, u.tag FROM reviews, unnest(tags) AS u(tag) WHERE <pos>
SELECT u.tag, count(*) AS n FROM reviews r, unnest(r.tags) AS u(tag) WHERE <pos r.text> GROUP BY u.tag
SELECT tag, <topic> AS t, count(*), avg(stars) FROM reviews CROSS JOIN unnest(tags) AS u(tag) GROUP BY ALL
SELECT id, x FROM reviews LEFT JOIN unnest(CASE WHEN stars > 2 THEN tags END) AS u(x) ON TRUE WHERE <plot>
SELECT id, x FROM reviews JOIN unnest(tags) AS u(x) ON true WHERE <pos> AND x LIKE 'x%'
SELECT r.id, f.letters, tag FROM reviews r JOIN films f USING (film), unnest(r.tags) AS u(tag) WHERE <pos r.text> AND letters > 5
SELECT r.id, f.letters, tag FROM reviews r LEFT JOIN films f ON f.film = r.film AND f.letters > 6, unnest(r.tags) AS u(tag) WHERE <pos r.text>
SELECT id, x, y FROM reviews, unnest(tags) AS u(x), unnest([x, 'end']) AS v(y) WHERE <joke> OR <plot>
SELECT id, g FROM reviews, generate_series(1, stars) AS s(g) WHERE <pos> AND g > 2
SELECT id, range FROM reviews, range(stars) WHERE <pos>
SELECT reviews.id, u.id AS item FROM reviews, unnest(tags) AS u(id) WHERE <pos>
SELECT u.* FROM reviews r, unnest(r.tags) AS u WHERE <pos r.text>
SELECT * EXCLUDE (text, day, tags, meta) FROM reviews, unnest(tags) WHERE <pos>
SELECT * FROM (SELECT id, tags, text FROM reviews) v, unnest(v.tags) AS u(tag) WHERE <pos v.text>
WITH c AS (SELECT id, tags FROM reviews WHERE <pos>) SELECT tag, count(*) FROM c, unnest(c.tags) AS u(tag) GROUP BY tag
SELECT id FROM reviews WHERE <pos> AND EXISTS (SELECT 1 FROM unnest(tags) AS u(x) WHERE x = 'x4')
SELECT id, (SELECT max(x) FROM unnest(reviews.tags) AS u(x)) AS last FROM reviews WHERE <pos>
SELECT id, s FROM reviews, unnest(<tags>) AS u(s) ### SELECT id, unnest(<tags>) AS s FROM reviews
SELECT s, count(*) FROM reviews, unnest(<tags>) AS u(s) WHERE id < 30 GROUP BY s ### SELECT s, count(*) FROM (SELECT id, unnest(<tags>) AS s FROM reviews WHERE id < 30) GROUP BY s
SELECT id FROM reviews WHERE list_contains(<tags>, 'jokes')
SELECT id, list_distinct(<tags>) AS s FROM reviews WHERE list_has_any(<tags>, ['plot', 'jokes'])
SELECT id, m.k FROM (SELECT id, text, MAP {'k': film} AS m FROM reviews) r WHERE <pos r.text> AND m.k <> 'Alien'
SELECT id, u.item.b FROM (SELECT id, text, [meta] AS l FROM reviews) r, unnest(r.l) AS u(item) WHERE <pos r.text>

!SELECT r.id, f.letters FROM reviews r ASOF JOIN films f ON r.id >= f.letters WHERE <pos r.text> ORDER BY 1
!SELECT r.id, f.letters FROM reviews r ASOF LEFT JOIN films f ON r.id >= f.letters WHERE <pos r.text> OR f.letters IS NULL ORDER BY 1
!SELECT r.id, s.id FROM reviews r ASOF LEFT OUTER JOIN (SELECT id, film, stars FROM reviews WHERE <joke>) s ON r.film = s.film AND r.id > s.id WHERE s.id IS NULL OR <plot r.text> ORDER BY 1
!SELECT count(*), min(s.id) FROM reviews r ASOF JOIN (SELECT id, film FROM reviews WHERE <joke>) s USING (film, id) WHERE NOT <pos r.text>
!SELECT r.id, s.k FROM (SELECT * FROM reviews WHERE <joke>) r ASOF JOIN (SELECT film, id AS k FROM reviews) s ON r.film = s.film AND r.id > s.k ORDER BY 1
SELECT id FROM reviews WHERE <pos> UNION ALL VALUES (1000), (1001)
!SELECT id, film FROM reviews WHERE <joke> UNION VALUES (1, 'x'), (8, NULL) ORDER BY id DESC, film LIMIT 4
SELECT id FROM reviews WHERE <pos> EXCEPT VALUES (0), (4)
WITH v(a) AS (VALUES (0), (4), (3)) SELECT id FROM reviews JOIN v ON a = id WHERE <pos>
WITH v AS MATERIALIZED (VALUES (0, 'x'), (4, 'y')) SELECT id, col1 FROM reviews JOIN v ON col0 = id WHERE <pos>
SELECT id FROM reviews WHERE <pos> AND (id, stars) IN (VALUES (0, 5), (4, 1), (12, 3))
SELECT id FROM reviews WHERE <pos> AND id NOT IN (VALUES (0), (4))
SELECT id, v.b FROM reviews JOIN (VALUES (0, 'x'), (4, 'y')) AS v(a, b) ON a = id WHERE <pos>
SELECT id, {'a': id, 'b': 2}.a AS k, ({'a': film}).a AS f FROM reviews WHERE <pos>
SELECT {'s': {'f': film}}.s.f AS f, count(*) FROM reviews WHERE <pos> GROUP BY f
VALUES (1) UNION ALL SELECT id FROM reviews WHERE <joke>
VALUES (1, 'a'), (2, 'b') UNION SELECT id, film FROM reviews WHERE <joke>
!VALUES (1) UNION ALL SELECT id FROM reviews WHERE <joke> ORDER BY 1 LIMIT 3
WITH v AS (VALUES (1) UNION ALL SELECT id FROM reviews WHERE <joke>) SELECT count(*) FROM v
SELECT * FROM (VALUES (1) EXCEPT SELECT id FROM reviews WHERE <joke>)
VALUES (1) INTERSECT SELECT id FROM reviews WHERE <pos>

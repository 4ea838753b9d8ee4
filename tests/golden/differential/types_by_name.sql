SELECT max(r), min(r), sum(r), avg(r) FROM (SELECT <rating> AS r FROM reviews) ### SELECT max(r), min(r), sum(r), avg(r) FROM (SELECT rating(text) AS r FROM reviews)
SELECT film, max(r) - min(r) FROM (SELECT film, <rating> AS r FROM reviews) GROUP BY film
WITH a AS (SELECT id, <rating> AS r FROM reviews), b AS (SELECT id, r FROM a) SELECT id FROM b WHERE r > 4 OR r + 1 < 3
WITH a AS (SELECT id, <rating> AS r FROM reviews) SELECT a.id FROM a JOIN reviews b ON a.id = b.id WHERE a.r > b.stars
SELECT id FROM (SELECT id, <rating> AS r FROM reviews) WHERE r BETWEEN 3 AND 10
SELECT id, coalesce(r, 0) FROM (SELECT id, <rating> AS r FROM reviews)
SELECT id FROM (SELECT id, <written> AS d, day FROM reviews) WHERE d > DATE '2023-04-01' ### SELECT id FROM reviews WHERE written(text)::DATE > DATE '2023-04-01'
SELECT id FROM (SELECT id, film, <name> AS n FROM reviews) WHERE film < n AND n > 'B'
SELECT max(n) FROM (SELECT <name>::VARCHAR AS n FROM reviews)
SELECT film, sum(g) FROM (SELECT film, <pos> AS g FROM reviews) GROUP BY film
SELECT x.id FROM (SELECT id, <rating>::DOUBLE AS r FROM reviews) x JOIN (SELECT id, <anger>::DOUBLE AS a FROM reviews) y USING (id) WHERE x.r > y.a
SELECT <pos>::BOOLEAN AS p, id FROM (SELECT *, <rating>::DOUBLE AS r FROM reviews) AS q WHERE r > 3 OR 1.5 IS NOT NULL
SELECT id FROM (SELECT id, text, <rating> AS r FROM reviews) AS q WHERE <joke> AND (r > 3 OR 2 = 2)
SELECT TRY_CAST(t AS INTEGER) FROM (SELECT <topic> AS t FROM reviews)
SELECT r::INTEGER % 2, w::DATE + 1 FROM (SELECT <rating> AS r, <written> AS w FROM reviews)
SELECT sum(b::INTEGER), max(a::INT) FROM (SELECT <joke> AS b, <anger> AS a FROM reviews)

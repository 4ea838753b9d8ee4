-- fields of structs as columns
SELECT unnest({'a': id, 'b': film}) FROM reviews WHERE <pos>
SELECT unnest(meta) FROM reviews WHERE <pos>
SELECT id, unnest({'r': <rating>::INTEGER, 't': <topic>::VARCHAR}) FROM reviews
SELECT id, unnest({'r': <rating>::INTEGER, 't': {'x': film, 'y': meta}}, recursive := true) FROM reviews
SELECT id, unnest({'r': <rating>::INTEGER, 't': {'x': film, 'y': meta}}, max_depth := 2) FROM reviews
SELECT * FROM (SELECT unnest({'a': id, 'b': film}) FROM reviews WHERE <pos>) WHERE a > 10
SELECT b, count(*) FROM (SELECT unnest(meta) FROM reviews WHERE <pos>) GROUP BY b
SELECT id, unnest(meta), film FROM reviews WHERE <joke> ORDER BY id
WITH q AS (SELECT unnest(meta), stars FROM reviews WHERE <pos>) SELECT a, stars FROM q WHERE stars > 2
SELECT film, unnest({'n': count(*) FILTER (<pos>), 'm': max(<rating>)}) FROM reviews GROUP BY film
SELECT a.id, unnest(b.meta) FROM reviews a JOIN reviews b ON a.id = b.id + 1 WHERE <pos a.text>
SELECT s.* FROM (SELECT unnest([{'a': id, 'b': film}]) AS s FROM reviews WHERE <joke>)

-- a text without a type has the type of its column's other side
SELECT max(x) FROM (SELECT <rating> AS x FROM reviews UNION ALL SELECT stars FROM reviews)
SELECT max(x), min(x), sum(x) FROM (SELECT stars AS x FROM reviews UNION ALL SELECT <rating> FROM reviews)
SELECT x FROM (SELECT <rating> AS x FROM reviews UNION ALL SELECT 10) WHERE x > 5
SELECT avg(x) FROM (SELECT <rating> AS x FROM reviews EXCEPT SELECT 3.0)
SELECT <rating> AS x FROM reviews UNION SELECT stars FROM reviews
SELECT <written> AS x FROM reviews UNION ALL SELECT day FROM reviews ### SELECT written(text)::DATE AS x FROM reviews UNION ALL SELECT day FROM reviews
SELECT <pos> AS x FROM reviews UNION ALL SELECT stars > 3 FROM reviews
SELECT <pos> AS x, id FROM reviews UNION ALL SELECT stars, id FROM reviews
SELECT <topic> AS x FROM reviews UNION ALL SELECT film FROM films
SELECT id, <rating> AS x FROM reviews UNION ALL BY NAME SELECT letters AS x FROM films
SELECT sum(x) FROM (SELECT <rating> AS x FROM reviews UNION ALL SELECT <anger> FROM reviews UNION ALL SELECT stars FROM reviews)
WITH a AS (SELECT <rating> AS x FROM reviews), b AS (SELECT x FROM a UNION ALL SELECT 1) SELECT max(x) FROM b
SELECT <rating> AS x FROM reviews INTERSECT SELECT stars FROM reviews
!SELECT <rating> AS x FROM reviews WHERE text IS NOT NULL UNION ALL SELECT stars FROM reviews WHERE stars IS NOT NULL ORDER BY x DESC

-- FETCH FIRST, #n, position, trim, substring … FOR, overlay; fields in parentheses
!SELECT id FROM reviews WHERE <pos> ORDER BY id FETCH FIRST 3 ROWS ONLY
!SELECT id FROM reviews WHERE <pos> ORDER BY id FETCH FIRST ROW ONLY
!SELECT id FROM reviews WHERE <pos> ORDER BY id OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY
!SELECT id FROM reviews WHERE <pos> ORDER BY id OFFSET 1 ROW FETCH NEXT 1 ROW ONLY
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT 2 OFFSET 3 ROWS
!SELECT overlay(film PLACING 'zz' FROM 2 FOR 3) AS o, overlay(film PLACING <name> FROM 1) AS p FROM reviews WHERE <pos> ORDER BY id
!SELECT id, film FROM reviews WHERE <pos> ORDER BY #2, #1
!SELECT film, #1 FROM reviews WHERE <pos> AND #3 > 2 ORDER BY #2
!SELECT r.film, #1, #8 FROM reviews r JOIN films f ON r.film = f.film WHERE <joke r.text> ORDER BY #2
!SELECT id FROM reviews WHERE <pos> UNION SELECT id FROM reviews WHERE <joke> ORDER BY #1 DESC
!SELECT position('a' IN film) AS p, position(<name> IN film) AS q FROM reviews WHERE <joke> ORDER BY id
!SELECT trim(LEADING FROM film) AS a, trim(TRAILING 'l' FROM film) AS b, trim('A' FROM film) AS c, trim(BOTH FROM film) AS d FROM reviews WHERE <joke> ORDER BY id
!SELECT substring(film FOR 2) AS a, substring(film FROM 2) AS b, substring(<name> FROM 1 FOR 1) AS c FROM reviews WHERE <joke> ORDER BY id
!SELECT id, (TRY <rating>::INTEGER).value AS x FROM reviews ORDER BY id ### SELECT id, <rating>::INTEGER AS x FROM reviews ORDER BY id
!SELECT (meta).b AS b, ({'x': {'y': id}}).x.y AS y FROM reviews WHERE <joke> ORDER BY id
-- numbers beside texts say that the text is a number
!SELECT id, CASE WHEN id < 10 THEN <rating> ELSE 0 END AS r FROM reviews ORDER BY id
!SELECT id, CASE WHEN id < 10 THEN -1 ELSE <rating> END AS r FROM reviews ORDER BY id
!SELECT id, if(id < 10, <rating>, -1) AS r, ifnull(<rating>, -1) AS i FROM reviews ORDER BY id
!SELECT id, CASE WHEN <pos> THEN <topic> ELSE 'none' END AS r FROM reviews ORDER BY id
!SELECT id FROM reviews WHERE <pos> QUALIFY <rating> = max(<rating>) OVER (PARTITION BY film) ORDER BY id
!SELECT id FROM reviews QUALIFY <rating> > avg(<rating>) OVER (PARTITION BY film) ORDER BY id
!SELECT id, <topic> AS t FROM reviews WHERE id < 5 UNION BY NAME SELECT <name> AS nm, id FROM reviews WHERE id > 38 ORDER BY id
!SELECT <topic> AS t, count(*) FROM quiet GROUP BY t
!SELECT id, [<topic>, NULL][2] AS n, NULL AS m FROM reviews WHERE <joke> ORDER BY id

!SELECT film, <pos>::BOOLEAN AS p, count(*) AS n, sum(stars) AS s FROM reviews GROUP BY CUBE (film, p) ORDER BY ALL
!SELECT film, stars, count(*) AS n FROM reviews WHERE <pos> GROUP BY film, ROLLUP (stars) ORDER BY ALL
!SELECT film, stars, count(*) AS n, grouping(film, stars) AS g FROM reviews WHERE <pos> GROUP BY GROUPING SETS ((film, stars), (film), ()) ORDER BY ALL
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film) HAVING count(*) > 4 ORDER BY ALL
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film) HAVING film = 'Alien' ORDER BY ALL
!SELECT film, avg(<rating>) AS n FROM reviews GROUP BY ROLLUP (film) ORDER BY ALL
!SELECT * FROM (SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film)) WHERE film = 'Alien'
!SELECT film AS a, film AS b, count(*) AS n FROM reviews WHERE <pos> GROUP BY CUBE (a, b) ORDER BY ALL
!SELECT film AS a, film AS b, upper(film) AS c, grouping(a) AS d, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (a, b) HAVING film IS NULL ORDER BY ALL
!SELECT film AS a, reviews.film, count(*) AS n FROM reviews WHERE <pos> GROUP BY GROUPING SETS ((1), (2), (reviews.film)) ORDER BY ALL
!SELECT <topic> AS a, <topic> AS b, count(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY CUBE (a, b) ORDER BY ALL
!SELECT 'kind' AS k, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP ('kind') ORDER BY ALL NULLS FIRST LIMIT 1 OFFSET 1
!SELECT 'kind' AS k, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (k) ORDER BY k NULLS FIRST
!SELECT DATE '2024-05-06' AS d, 'kind' AS k, count(*) FROM reviews WHERE <pos> GROUP BY CUBE (DATE '2024-05-06', k) ORDER BY 1, k COLLATE NOCASE NULLS FIRST LIMIT 1

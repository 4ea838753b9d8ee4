!SELECT film, <pos>::BOOLEAN AS p, count(*) AS n, sum(stars) AS s FROM reviews GROUP BY CUBE (film, p) ORDER BY ALL
!SELECT film, stars, count(*) AS n FROM reviews WHERE <pos> GROUP BY film, ROLLUP (stars) ORDER BY ALL
!SELECT film, stars, count(*) AS n, grouping(film, stars) AS g FROM reviews WHERE <pos> GROUP BY GROUPING SETS ((film, stars), (film), ()) ORDER BY ALL
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film) HAVING count(*) > 4 ORDER BY ALL
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film) HAVING film = 'Alien' ORDER BY ALL
!SELECT film, avg(<rating>) AS n FROM reviews GROUP BY ROLLUP (film) ORDER BY ALL
!SELECT * FROM (SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film)) WHERE film = 'Alien'

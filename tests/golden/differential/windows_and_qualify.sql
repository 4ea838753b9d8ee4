!SELECT film, id, <rating>::INT AS r FROM reviews WHERE text IS NOT NULL QUALIFY rank() OVER (PARTITION BY film ORDER BY r DESC) = 1 ORDER BY id
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film QUALIFY row_number() OVER (ORDER BY n DESC, film) <= 2 ORDER BY film
!SELECT DISTINCT film FROM reviews WHERE <pos> QUALIFY count(*) OVER (PARTITION BY film) > 4 ORDER BY film
!SELECT id FROM reviews WHERE <pos> QUALIFY row_number() OVER (ORDER BY id) > 2 ORDER BY id LIMIT 4 OFFSET 1
!SELECT id, sum(<rating>) OVER (ORDER BY id ROWS 2 PRECEDING) AS s FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, avg(stars) OVER (ORDER BY day RANGE BETWEEN INTERVAL 30 DAYS PRECEDING AND CURRENT ROW) AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT id, count(*) FILTER (WHERE <joke>) OVER (PARTITION BY film) AS s FROM reviews ORDER BY id
!SELECT id, lead(<name>) OVER (ORDER BY id) AS s FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, row_number() OVER w AS a, count(*) OVER w AS b FROM reviews WHERE <pos> WINDOW w AS (PARTITION BY film ORDER BY id) ORDER BY id LIMIT 5
!SELECT * FROM (SELECT id, row_number() OVER (PARTITION BY film ORDER BY id) AS k FROM reviews WHERE <pos>) WHERE k <= 2 ORDER BY id
!SELECT DISTINCT ON (film, stars) film, stars, id FROM reviews WHERE <pos> ORDER BY film, stars, id
!SELECT DISTINCT ON (1) film, id FROM reviews WHERE <pos> ORDER BY 1, 2 LIMIT 2

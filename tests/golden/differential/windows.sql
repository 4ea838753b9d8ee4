!SELECT id, row_number() OVER (ORDER BY <rating> DESC, id) AS k FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, rank() OVER (PARTITION BY <topic> ORDER BY stars) AS k FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, sum(stars) OVER (PARTITION BY film ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND CURRENT ROW) AS k FROM reviews WHERE <pos> ORDER BY id
!SELECT id, avg(<rating>) OVER (PARTITION BY film) AS k FROM reviews ORDER BY id
!SELECT id, lag(id) OVER (ORDER BY id) AS k FROM reviews WHERE <pos> ORDER BY id
!SELECT id, film FROM reviews WHERE <pos> QUALIFY row_number() OVER (PARTITION BY film ORDER BY id) = 1 ORDER BY id
!SELECT id, film FROM reviews QUALIFY row_number() OVER (PARTITION BY film ORDER BY <rating> DESC NULLS LAST, id) <= 2 ORDER BY id
!SELECT id, film, row_number() OVER (PARTITION BY film ORDER BY id) AS k FROM reviews WHERE <pos> QUALIFY k = 2 ORDER BY id
!SELECT id, film FROM reviews QUALIFY count(*) FILTER (WHERE <pos>) OVER (PARTITION BY film) > 5 ORDER BY id
!SELECT film, count(*) AS n, rank() OVER (ORDER BY count(*) DESC) AS k FROM reviews WHERE <pos> GROUP BY film ORDER BY film
!SELECT id, count(*) OVER w AS n FROM reviews WHERE <pos> WINDOW w AS (PARTITION BY film) ORDER BY id
!SELECT id, ntile(4) OVER (ORDER BY <rating>, id) AS k FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, first_value(id) OVER (PARTITION BY film ORDER BY <anger> DESC, id) AS k FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, sum(stars) OVER (w ORDER BY id) AS s FROM reviews WHERE <pos> WINDOW w AS (PARTITION BY film) ORDER BY id
!SELECT id, sum(stars) OVER (w ROWS 1 PRECEDING) AS s FROM reviews WHERE <pos> WINDOW w AS (PARTITION BY film ORDER BY id) ORDER BY id
!SELECT id, count(*) OVER (b) AS n FROM reviews WHERE <pos> WINDOW a AS (PARTITION BY film), b AS (a ORDER BY id) ORDER BY id

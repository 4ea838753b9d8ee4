!SELECT id, count(*) OVER () AS n FROM reviews WHERE <pos> ORDER BY id LIMIT 3
!SELECT id, row_number() OVER (ORDER BY stars DESC NULLS LAST, id) AS n FROM reviews WHERE <pos> ORDER BY id LIMIT 3
!SELECT id, rank() OVER (ORDER BY <rating> DESC) AS n FROM reviews WHERE text IS NOT NULL ORDER BY id LIMIT 3
!SELECT id, unnest(tags) AS n FROM reviews WHERE <pos> ORDER BY id, n LIMIT 3
!SELECT DISTINCT row_number() OVER (PARTITION BY film ORDER BY id) AS n FROM reviews WHERE <pos> ORDER BY n LIMIT 3
!SELECT unnest(tags) AS n FROM reviews WHERE <joke>
!SELECT film, unnest(list(id ORDER BY id)) AS n FROM reviews WHERE <joke> GROUP BY film ORDER BY ALL
!SELECT max(<name>::VARCHAR) FROM reviews
!SELECT count(*) FROM reviews WHERE <pos> AND random() >= 0
!SELECT film, n FROM (SELECT film, count(*) AS n, row_number() OVER (ORDER BY count(*) DESC, film) AS k FROM reviews WHERE <pos> GROUP BY film) WHERE k = 1
!SELECT id FROM reviews WHERE <pos> AND film = (SELECT film FROM films WHERE letters = 5) ORDER BY id

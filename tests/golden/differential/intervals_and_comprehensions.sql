-- a number before a unit of time is cut to a whole one, but for seconds and milliseconds; a list with the place of each item
!SELECT id, INTERVAL 1.5 DAY AS a, INTERVAL '1.5' HOURS AS b, INTERVAL 1.5 SECOND AS c, INTERVAL 2.7 MILLISECONDS AS d, INTERVAL '-1.7' YEAR AS e FROM reviews WHERE <pos> ORDER BY id
!SELECT id, INTERVAL (stars * 1.5) DAY AS a, INTERVAL (stars + 0.7) HOUR AS b, INTERVAL (-1.7) WEEKS AS c, INTERVAL (stars * 0.5) SECOND AS d FROM reviews WHERE <pos> ORDER BY id
!SELECT id, INTERVAL (<rating>::INTEGER + 0.5) MONTHS AS a FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT id, INTERVAL 2 DECADE AS a, INTERVAL '1' CENTURY AS b, INTERVAL (stars) MILLENNIA AS c, INTERVAL 3 CENTURIES AS d FROM reviews WHERE <pos> ORDER BY id
!SELECT id, [x || i FOR x, i IN ['a', 'b', 'c']] AS a, [x * i FOR x, i IN [5, 6, 7, 8] IF i % 2 = 0] AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id, [y + i FOR y, i IN [<rating>::INTEGER, stars] IF y > 3] AS a FROM reviews WHERE text IS NOT NULL ORDER BY id

-- casts of casts, and comparisons of a text with another that is cast
!SELECT id, <pos>::BOOLEAN::VARCHAR || '' AS w, typeof(<rating>::INTEGER::VARCHAR) AS t, typeof(<rating>::DOUBLE::DECIMAL(6,2)) AS u, typeof(<written>::DATE::TIMESTAMP) AS d FROM reviews WHERE id < 5 ORDER BY id
!SELECT typeof(x) AS t FROM (SELECT <pos>::BOOLEAN::INTEGER AS x FROM reviews WHERE id = 2)
!SELECT typeof(x) AS t FROM (SELECT TRY_CAST(<rating>::INTEGER AS VARCHAR) AS x FROM reviews WHERE id = 2)
!SELECT typeof(x) AS t, max(x) FROM (SELECT <topic>::ENUM('plot','acting','music')::VARCHAR AS x FROM reviews WHERE id < 9) GROUP BY t
!SELECT count(*), count(*) FILTER (<pos> = true), count(*) FILTER (<pos> = false), count(*) FILTER (<pos> <> <joke>::BOOLEAN) FROM reviews
!SELECT id FROM reviews WHERE <pos> = <joke>::BOOLEAN ORDER BY id
!SELECT id FROM reviews WHERE <rating> > <anger>::INTEGER ORDER BY id
!SELECT id FROM reviews WHERE <rating> = <anger>::INTEGER ORDER BY id
!SELECT id FROM reviews WHERE <name> = <topic>::VARCHAR OR <name> < <topic>::VARCHAR ORDER BY id
!SELECT id FROM reviews WHERE <name>::VARCHAR < <topic>::VARCHAR ORDER BY id
!SELECT id FROM reviews WHERE <topic> = <topic>::ENUM('plot','acting','music') ORDER BY id
!SELECT sum(<pos>::BOOLEAN::INTEGER) AS s, avg(<pos>::BOOLEAN::DOUBLE) AS a FROM reviews
!SELECT film, sum(<pos>::BOOLEAN::INTEGER) AS s FROM reviews GROUP BY film ORDER BY film
!SELECT <rating>::INTEGER::VARCHAR AS r, count(*) FROM reviews GROUP BY r ORDER BY r
SELECT id, <pos>::VARCHAR AS a, <pos>::INTEGER AS b FROM reviews
SELECT <joke>::VARCHAR AS a, sum(<joke>::INTEGER) AS b FROM reviews GROUP BY 1

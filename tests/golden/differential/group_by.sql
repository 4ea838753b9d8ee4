!SELECT film, stars, count(*) AS n FROM reviews WHERE <pos> GROUP BY film, stars ORDER BY ALL
!SELECT <topic> AS t, <name> AS m, count(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY ALL ORDER BY ALL
!SELECT film, count(*) FROM reviews WHERE <pos> GROUP BY ALL ORDER BY ALL
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY ROLLUP (film) ORDER BY ALL
!SELECT film, stars, count(*) AS n FROM reviews WHERE <pos> GROUP BY CUBE (film, stars) ORDER BY ALL
!SELECT film, stars, count(*) AS n FROM reviews WHERE <pos> GROUP BY GROUPING SETS ((film), (stars), ()) ORDER BY ALL
!SELECT <topic> AS t, film, count(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY ROLLUP (t, film) ORDER BY ALL
!SELECT film, count(*) FILTER (WHERE <pos>) AS p, count(*) FILTER (WHERE NOT <pos>) AS q, count(*) AS n FROM reviews GROUP BY film ORDER BY film
!SELECT film, avg(stars) FILTER (WHERE <pos>) - avg(stars) FILTER (WHERE NOT <pos>) AS d FROM reviews GROUP BY film ORDER BY film
!SELECT film, sum(<rating>) FILTER (<pos>) AS d FROM reviews GROUP BY film ORDER BY film
!SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film HAVING n > 5 ORDER BY film
!SELECT film FROM reviews GROUP BY film HAVING count(*) FILTER (WHERE <pos>) >= 6 AND avg(stars) > 2 ORDER BY film
!SELECT film, count(*) AS n FROM reviews GROUP BY film HAVING avg(<rating>) > 5 OR bool_or(<joke>) ORDER BY film
!SELECT film, bool_and(<pos>) AS a, bool_or(<joke>) AS o FROM reviews GROUP BY film ORDER BY film
!SELECT film, count_if(<pos>) AS a FROM reviews GROUP BY film ORDER BY film
!SELECT film, string_agg(<name>, ',' ORDER BY id) AS s FROM reviews GROUP BY film ORDER BY film
!SELECT film, list(<name> ORDER BY id) AS s FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film
!SELECT film, arg_max(id, <rating>) AS s FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film ### SELECT film, arg_max(id, <rating>) AS s FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film
!SELECT film, mode(<topic>) AS s FROM reviews WHERE id < 9 GROUP BY film ORDER BY film
!SELECT year(day) AS y, month(day) AS m, count(*) FROM reviews WHERE <pos> GROUP BY y, m ORDER BY ALL
!SELECT date_trunc('month', day) AS m, count(*) AS n FROM reviews WHERE <pos> GROUP BY 1 ORDER BY 1
!SELECT stars IS NULL AS k, count(*) FROM reviews WHERE <pos> GROUP BY k ORDER BY k
!SELECT upper(<topic>) AS k, count(*) FROM reviews WHERE text IS NOT NULL GROUP BY 1 ORDER BY 1
!SELECT <rating>::INTEGER // 3 AS k, count(*) FROM reviews GROUP BY k ORDER BY k
!SELECT <rating>::INTEGER > 5 AS k, count(*) FROM reviews GROUP BY k ORDER BY k
!SELECT film, count(*) AS n FROM reviews GROUP BY film ORDER BY count(*) FILTER (WHERE <pos>) DESC, film
!SELECT film, max(<rating>) AS n FROM reviews GROUP BY film ORDER BY n DESC, film LIMIT 2
!SELECT count(*) AS n, film FROM reviews WHERE <pos> GROUP BY 2 ORDER BY n DESC, film LIMIT 1 OFFSET 1
!SELECT <pos>::BOOLEAN AS p, <joke>::BOOLEAN AS j, count(*) FROM reviews GROUP BY p, j ORDER BY ALL
!SELECT film, <topic> AS t, count(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY film, t HAVING n > 2 ORDER BY ALL
!SELECT grouping(film) AS g, film, count(*) FROM reviews WHERE <pos> GROUP BY ROLLUP (film) ORDER BY ALL
!SELECT count(*) FROM reviews GROUP BY film, <pos>::BOOLEAN ORDER BY 1
!SELECT sum(n) FROM (SELECT <topic> AS t, count(*) AS n FROM reviews GROUP BY t)
!SELECT count(*) FROM reviews WHERE <pos> HAVING count(*) > 1000
!SELECT sum(stars) FROM nothing WHERE <pos>
!SELECT count(*) FROM nothing WHERE <pos>
!SELECT film, count(*) FROM nothing WHERE <pos> GROUP BY film
!SELECT t, count(*) FROM nothing GROUP BY <topic> AS t ### SELECT 'a', 1 WHERE false
!SELECT avg(<rating>) FROM nothing
!SELECT id FROM nothing WHERE <pos> ORDER BY <anger> LIMIT 3
!SELECT id FROM one WHERE <pos> OR NOT <pos>
!SELECT id, <topic> AS t FROM one ORDER BY <anger> DESC
!SELECT id FROM quiet WHERE <pos> ### SELECT id FROM quiet WHERE false
!SELECT id FROM quiet WHERE <pos> IS NULL ORDER BY 1
!SELECT count(<rating>), sum(<rating>) FROM quiet ### SELECT 0, NULL
!SELECT film, count(*) AS n, count(*) FILTER (<pos>) AS k, k / n AS share FROM reviews GROUP BY ALL ORDER BY ALL
!SELECT stars // 2 AS b, sum(id) AS s, s * 2 AS d, b + 1 AS c FROM reviews WHERE <pos> GROUP BY ALL ORDER BY ALL
!SELECT unnest(tags) AS tag, count(*) AS n, avg(stars) AS a FROM reviews WHERE <pos> GROUP BY tag ORDER BY n DESC, tag
!SELECT unnest(tags) AS tag, count(*) FILTER (<pos>) AS n FROM reviews r GROUP BY 1 HAVING count(*) > 2 ORDER BY 1
!SELECT film, unnest(r.tags) AS tag, count(*) AS n FROM reviews r WHERE <joke> AND r.stars > 1 GROUP BY film, tag ORDER BY ALL
!SELECT unnest(<tags>::VARCHAR[]) AS tag, count(*) AS n FROM reviews WHERE <pos> GROUP BY tag ORDER BY ALL ### SELECT unnest(tags(text)) AS tag, count(*) AS n FROM reviews WHERE <pos> GROUP BY tag ORDER BY ALL
!SELECT 'x' AS k, 1 + 1 AS j, count(*) FROM nothing WHERE <pos> GROUP BY ALL
!SELECT CAST(2 AS BIGINT) AS k, count(*), max(<rating>) FROM reviews GROUP BY ALL

-- MIN and MAX of a text take the type of what they are compared with, or cast to; else it is a number
!SELECT min(<name>) = 'Ada' AS a, max(<name>) IN ('Di', 'Eve') AS b, min(<topic>) <> 'music' AS c FROM reviews WHERE text IS NOT NULL
!SELECT film, min(<name>) > 'B' AS a, max(<name>) BETWEEN 'A' AND 'Cx' AS b FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film
!SELECT max(<written>) > DATE '2023-05-01' AS a, min(<written>)::DATE AS b FROM reviews WHERE text IS NOT NULL ### SELECT max(<written>::DATE) > DATE '2023-05-01', min(<written>::DATE) FROM reviews WHERE text IS NOT NULL
!SELECT film FROM reviews WHERE text IS NOT NULL GROUP BY film HAVING max(<joke>) ORDER BY film
!SELECT film, max(<rating>) >= '10' AS a, max(<rating>) = '9' AS b, 'most: ' || max(<rating>)::INTEGER AS c, max(<rating>)::INTEGER AS d FROM reviews GROUP BY film ORDER BY film
!SELECT id FROM reviews WHERE <rating> > '9' AND text IS NOT NULL ORDER BY id ### SELECT id FROM reviews WHERE <rating> > 9 AND text IS NOT NULL ORDER BY id
!SELECT min(n) = 'Ada' AS a FROM (SELECT <name> AS n FROM reviews WHERE text IS NOT NULL) x
!SELECT id, max(<name>) OVER (PARTITION BY film) > 'B' AS a FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT film, upper(min(<name>)) AS u FROM reviews GROUP BY film ORDER BY film
!SELECT upper(max(<topic>)) AS u, length(min(<name>)) AS l FROM reviews
!SELECT film, coalesce(max(<name>), 'none') AS u FROM reviews WHERE <joke> GROUP BY film ORDER BY film
!SELECT film, substring(max(<name>), 1, 1) AS u, min(<topic>).reverse() AS v FROM reviews GROUP BY film ORDER BY film
!SELECT film, lower(coalesce(max(<name>), 'None')) AS u FROM reviews WHERE <joke> GROUP BY film ORDER BY film
!SELECT film, CASE WHEN count(*) > 3 THEN upper(min(<name>)) ELSE 'few' END AS u FROM reviews GROUP BY film ORDER BY film
!SELECT film, coalesce(max(<rating>), 0) AS u FROM reviews WHERE <joke> GROUP BY film ORDER BY film
!SELECT film FROM reviews GROUP BY film HAVING upper(min(<name>)) = 'ADA' ORDER BY film
!SELECT id, upper(max(<name>) OVER (PARTITION BY film)) AS u FROM reviews ORDER BY id
!SELECT film, upper(any_value(<topic>)) IS NOT NULL AS u FROM reviews GROUP BY film ORDER BY film
!SELECT film, upper(first(<topic> ORDER BY id)) AS u FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film
!SELECT film, upper(arg_min(<name>, id)) AS u FROM reviews WHERE text IS NOT NULL GROUP BY film ORDER BY film
!SELECT film, min(<name>) || '!' AS u, concat('to ', max(<name>)) AS v FROM reviews GROUP BY film ORDER BY film
!SELECT concat_ws('-', min(<name>), max(<topic>)) AS u, min(<name>) LIKE 'A%' AS v, max(<name>)::VARCHAR AS w FROM reviews WHERE <joke>
!SELECT avg(<rating>) AS a, concat(max(<rating>)::INTEGER, ' of 10') AS b, coalesce(min(<rating>), 0)::INTEGER || ' of 10' AS c FROM reviews
!SELECT film, CASE WHEN count(*) > 3 THEN max(<rating>) ELSE 0 END::INTEGER || '' AS b FROM reviews GROUP BY film ORDER BY film

-- an ENUM sorts as it was declared
!SELECT id, CASE <topic>::ENUM('plot','acting','music') WHEN 'plot' THEN 1 WHEN 'music' THEN 2 ELSE 0 END AS a FROM reviews ORDER BY id
!SELECT id, <topic>::ENUM('plot','acting','music') AS a FROM reviews ORDER BY a, id
!SELECT id FROM reviews WHERE text IS NOT NULL ORDER BY <topic>::ENUM('plot','acting','music') DESC, id
!SELECT <topic>::ENUM('plot','acting','music') AS a, count(*) FROM reviews GROUP BY a ORDER BY a
!SELECT max(<topic>::ENUM('plot','acting','music')) AS a, min(<topic>::ENUM('plot','acting','music')) AS b FROM reviews
!SELECT id FROM reviews WHERE <topic>::ENUM('plot','acting','music') > 'plot' ORDER BY id
!SELECT id, row_number() OVER (ORDER BY <topic>::ENUM('plot','acting','music'), id) AS k FROM reviews ORDER BY id
!SELECT id, film::ENUM('Casablanca','Brazil','Alien') AS a FROM reviews WHERE <pos> ORDER BY a, id
!WITH t AS (SELECT id, <topic>::ENUM('plot','acting','music') AS k, <rating> AS r FROM reviews) SELECT k, count(*), avg(r::DOUBLE) FROM t GROUP BY k ORDER BY k
!WITH t AS (SELECT id, <topic>::ENUM('music','plot','acting') AS k FROM reviews WHERE text IS NOT NULL) SELECT id FROM t ORDER BY k, id LIMIT 6
!SELECT k FROM (SELECT <topic>::ENUM('music','plot','acting') AS k FROM reviews) GROUP BY k ORDER BY k DESC
!SELECT <topic>::ENUM('music','plot','acting') AS k FROM reviews WHERE <pos> UNION SELECT <topic>::ENUM('music','plot','acting') FROM reviews WHERE <joke> ORDER BY k
!SELECT DISTINCT <topic>::ENUM('music','plot','acting') AS k FROM reviews ORDER BY k
!SELECT DISTINCT ON (film) film, <topic>::ENUM('music','plot','acting') AS k, id FROM reviews WHERE text IS NOT NULL ORDER BY film, k, id
!SELECT r.id FROM reviews r WHERE <topic r.text>::ENUM('plot','acting','music') = (SELECT <topic x.text>::ENUM('plot','acting','music') FROM reviews x WHERE x.id = 0) ORDER BY 1
!SELECT a.id, b.id FROM reviews a JOIN reviews b ON <topic a.text>::ENUM('plot','acting','music') = <topic b.text>::ENUM('plot','acting','music') AND a.id < b.id WHERE b.id < 8 ORDER BY 1, 2

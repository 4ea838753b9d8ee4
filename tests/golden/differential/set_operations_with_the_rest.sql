!SELECT count(*) FROM (SELECT id FROM reviews WHERE <pos> EXCEPT SELECT id FROM reviews WHERE <joke>)
!SELECT film, count(*) FROM (SELECT film, id FROM reviews WHERE <pos> UNION SELECT film, id FROM reviews WHERE <joke>) GROUP BY film ORDER BY 1
!SELECT id FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos> INTERSECT SELECT id FROM reviews WHERE <joke>) ORDER BY 1
!WITH a AS (SELECT id FROM reviews WHERE <pos>), b AS (SELECT id FROM reviews WHERE <joke>) (SELECT id FROM a EXCEPT SELECT id FROM b) UNION ALL (SELECT id FROM b EXCEPT SELECT id FROM a) ORDER BY 1
!SELECT film, <topic> AS t FROM reviews WHERE text IS NOT NULL INTERSECT SELECT 'Alien', 'plot' ORDER BY 1
!SELECT <rating>::INTEGER AS r FROM reviews WHERE text IS NOT NULL EXCEPT SELECT stars FROM reviews ORDER BY 1
!SELECT id FROM reviews WHERE <pos> UNION ALL SELECT id FROM reviews WHERE <pos> ORDER BY 1
!SELECT id FROM reviews WHERE <pos> UNION ALL (SELECT id FROM reviews WHERE <joke> INTERSECT SELECT id FROM reviews WHERE stars = 3) ORDER BY 1
!SELECT NULL AS x, id FROM reviews WHERE <joke> UNION SELECT film, id FROM reviews WHERE <joke> ORDER BY id, x

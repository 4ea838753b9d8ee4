-- a text whose value is computed with is extracted, though it is compared with labels elsewhere
!SELECT id, upper(<name>) AS n FROM reviews WHERE <name> <> 'Ada' ORDER BY id
!SELECT id, upper(<name>) AS n FROM reviews WHERE <name> <> 'Ada' OR stars = 3 ORDER BY id
!SELECT id FROM reviews WHERE <name> LIKE '%a' OR <name> = 'Cy' ORDER BY id
!SELECT id, <name> || '!' AS n FROM reviews WHERE <name> NOT IN ('Ada', 'Bo') ORDER BY id
!SELECT id, length(<name>) AS n, CASE <name> WHEN 'Ada' THEN 1 END AS c FROM reviews ORDER BY id
!SELECT list(<name> ORDER BY id), count(*) FILTER (<name> IN ('Bo')) AS a FROM reviews
!SELECT id FROM reviews WHERE <name> > 'B' AND <name> <> 'Di' ORDER BY id
!SELECT concat(<name>, '-', film) AS n FROM reviews WHERE <name> IN ('Ada', 'Di') ORDER BY id
!SELECT id, <name> || '!' AS n, <name> IN ('Ada', 'Bo') AS i FROM reviews ORDER BY id ### SELECT id, name(text) || '!' AS n, CASE WHEN name(text) IN ('Ada','Bo') THEN name(text) WHEN name(text) IS NOT NULL THEN 'none of these' END AS i FROM reviews ORDER BY id
!SELECT id, <name> AS n, <name> IN ('Ada', 'Bo') AS i FROM reviews ORDER BY i, id ### SELECT id, name(text) AS n, CASE WHEN name(text) IN ('Ada','Bo') THEN name(text) WHEN name(text) IS NOT NULL THEN 'none of these' END AS i FROM reviews ORDER BY i, id
!SELECT <name> IN ('Ada', 'Bo') AS i, count(*), max(upper(<name>)) FROM reviews GROUP BY i ORDER BY i ### SELECT CASE WHEN name(text) IN ('Ada','Bo') THEN name(text) WHEN name(text) IS NOT NULL THEN 'none of these' END AS i, count(*), max(upper(name(text))) FROM reviews GROUP BY i ORDER BY i
!SELECT <name>::VARCHAR AS n, id FROM reviews WHERE <name> <> 'Ada' ORDER BY id
!SELECT max(<name>::VARCHAR) AS n FROM reviews WHERE <name> <> 'Ada' AND <name> <> 'Di'
!SELECT if(<joke>, 3, NULL) AS k, <name>::VARCHAR AS a FROM reviews WHERE <rating> > 4 OR <name> <> 'Ada' ORDER BY id

!SELECT id, <rating>::INTEGER AS x FROM reviews ORDER BY id
!SELECT id, <rating>::BIGINT * 2 AS x FROM reviews ORDER BY id
!SELECT id, <rating>::DECIMAL(10,2) AS x FROM reviews ORDER BY id
!SELECT id, CAST(<rating> AS DOUBLE) / 3 AS x FROM reviews ORDER BY id
!SELECT id, <written>::DATE AS x FROM reviews ORDER BY id
!SELECT id, <written>::DATE + INTERVAL 1 DAY AS x FROM reviews ORDER BY id
!SELECT id FROM reviews WHERE <written>::DATE > DATE '2023-05-01' ORDER BY id
!SELECT id FROM reviews WHERE <written> > DATE '2023-05-01' ORDER BY id ### SELECT id FROM reviews WHERE <written>::DATE > DATE '2023-05-01' ORDER BY id
!SELECT id FROM reviews WHERE day > <written>::DATE + INTERVAL '200 days' ORDER BY id
!SELECT year(<written>::DATE) AS y, count(*) FROM reviews GROUP BY y ORDER BY ALL
!SELECT id, <written>::TIMESTAMP AS x FROM reviews ORDER BY id
!SELECT id, <tags>::VARCHAR[] AS x FROM reviews ORDER BY id
!SELECT id, (<tags>::VARCHAR[])[1] AS x FROM reviews ORDER BY id
!SELECT id, len(<tags>::VARCHAR[]) AS x FROM reviews ORDER BY id
!SELECT id FROM reviews WHERE list_contains(<tags>::VARCHAR[], 'jokes') ORDER BY id
!SELECT id, unnest(<tags>::VARCHAR[]) AS x FROM reviews WHERE text IS NOT NULL ORDER BY ALL
!SELECT x, count(*) FROM (SELECT unnest(<tags>::VARCHAR[]) AS x FROM reviews) GROUP BY x ORDER BY ALL
!SELECT id, <pos>::BOOLEAN AS x FROM reviews ORDER BY id
!SELECT id, <pos>::INTEGER AS x FROM reviews ORDER BY id ### SELECT id, <pos>::INTEGER AS x FROM reviews ORDER BY id
!SELECT id, TRY_CAST(<rating> AS INTEGER) AS x FROM reviews ORDER BY id
!SELECT id, <topic>::ENUM('plot','acting','music') AS x FROM reviews ORDER BY id
!SELECT id, CAST(<topic> AS ENUM('plot','acting','music')) AS x FROM reviews ORDER BY id
!SELECT id FROM reviews WHERE <topic> IN ('plot', 'music') ORDER BY id
!SELECT id FROM reviews WHERE <topic> NOT IN ('plot', 'music') ORDER BY id
!SELECT id FROM reviews WHERE <topic> = 'plot' AND <topic> <> 'music' ORDER BY id
!SELECT id FROM reviews WHERE <topic> LIKE 'p%' ORDER BY id
!SELECT id FROM reviews WHERE <name> ILIKE 'a%' ORDER BY id
!SELECT id FROM reviews WHERE <name> NOT LIKE '%a' ORDER BY id
!SELECT id FROM reviews WHERE <name> SIMILAR TO 'A.*' ORDER BY id
!SELECT id FROM reviews WHERE <name> GLOB 'A*' ORDER BY id
!SELECT id FROM reviews WHERE <name> ~ 'A.*' ORDER BY id
!SELECT id FROM reviews WHERE regexp_matches(<name>, '^[AB]') ORDER BY id
!SELECT id FROM reviews WHERE <rating> BETWEEN 3 AND 5 ORDER BY id
!SELECT id FROM reviews WHERE <rating> NOT BETWEEN 3 AND 5 ORDER BY id
!SELECT id FROM reviews WHERE <rating> = stars ORDER BY id
!SELECT id FROM reviews WHERE <rating> IN (1, 2, 3) ORDER BY id
!SELECT id FROM reviews WHERE <rating> IS DISTINCT FROM stars ORDER BY id
!SELECT id FROM reviews WHERE <rating> % 2 = 0 ORDER BY id
!SELECT id FROM reviews WHERE <rating> ** 2 > 50 ORDER BY id
!SELECT id FROM reviews WHERE <rating> ^ 2 > 50 ORDER BY id
!SELECT id FROM reviews WHERE abs(<rating> - 5) <= 1 ORDER BY id
!SELECT id FROM reviews WHERE -<rating> < -5 ORDER BY id
!SELECT id FROM reviews WHERE <pos> IS NULL ORDER BY id
!SELECT id FROM reviews WHERE <pos> IS NOT NULL ORDER BY id
!SELECT id FROM reviews WHERE <pos> IS NOT TRUE ORDER BY id
!SELECT id FROM reviews WHERE (<pos>) IS FALSE ORDER BY id
!SELECT id FROM reviews WHERE <pos> = false ORDER BY id
!SELECT id FROM reviews WHERE NOT (<pos> OR <joke>) ORDER BY id
!SELECT id FROM reviews WHERE NOT <pos> AND NOT <joke> ORDER BY id
!SELECT id FROM reviews WHERE <pos> AND (stars > 3 OR <joke> AND stars IS NOT NULL) ORDER BY id
!SELECT id FROM reviews WHERE <pos> OR stars IS NULL ORDER BY id
!SELECT id FROM reviews WHERE NOT (<pos> AND stars > 3) ORDER BY id
!SELECT id FROM reviews WHERE (<pos> AND <joke>) OR (<plot> AND stars = 3) ORDER BY id
!SELECT id FROM reviews WHERE true AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE NULL AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE NULL OR <pos> ORDER BY id
!SELECT id FROM reviews WHERE coalesce(<pos>, true) ORDER BY id
!SELECT id FROM reviews WHERE CASE WHEN stars > 3 THEN <pos> ELSE <joke> END ORDER BY id
!SELECT id FROM reviews WHERE <pos>::INTEGER = 1 ORDER BY id
!SELECT id FROM reviews WHERE (<pos>)::INT + (<joke>)::INT >= 1 ORDER BY id
-- one type by several names
SELECT id, <pos>::INT AS i, <pos>::INT4 AS j, <pos>::INTEGER AS k FROM reviews WHERE <pos>::BOOL
SELECT <pos>::BOOL AS a, <pos>::LOGICAL AS b, CAST(<pos> AS BOOLEAN) AS c, <name>::STRING AS d, <name>::TEXT AS e FROM reviews WHERE <pos>::BOOL = true OR <joke>::BOOL
SELECT sum(<pos>::INT) AS i, count(*) FILTER (<pos>) AS k, sum(<rating>::NUMERIC(5,1)) AS n, max(<rating>::REAL) AS r, min(<rating>::INT8) AS l FROM reviews

-- INTERVAL, ROW, HUGEINT and DECIMAL come back as DuckDB gives them
!SELECT id, INTERVAL '3 days' AS a, INTERVAL 2 MONTH AS b, day - DATE '2024-01-01' AS c, age(TIMESTAMP '2024-03-01', TIMESTAMP '2024-01-01') AS d FROM reviews WHERE <pos> ORDER BY id
!SELECT id, ROW(id, film) AS a, (id, film) AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id, <written>::DATE - DATE '2023-01-01' AS a, <written>::TIMESTAMP - TIMESTAMP '2023-01-01' AS b FROM reviews ORDER BY id
!SELECT id, stars::DECIMAL(10,2) AS a, <rating>::DECIMAL(6,1) AS b FROM reviews ORDER BY id
!SELECT sum(<rating>::DECIMAL(6,1)) AS a, avg(<rating>::DECIMAL(6,1)) AS b FROM reviews
!SELECT id, <rating>::TINYINT AS a, <rating>::UBIGINT AS b, <rating>::HUGEINT AS c, <rating>::REAL AS d FROM reviews ORDER BY id
!SELECT id, [<name>, <topic>] AS l, {'n': <name>, 'r': <rating>::INTEGER} AS s, (id, film) AS t, MAP {'k': <name>} AS m FROM reviews WHERE id < 5 ORDER BY id
!SELECT id, INTERVAL 1 DAY * <rating>::INTEGER AS i, <written>::DATE + INTERVAL 1 MONTH AS d FROM reviews WHERE id < 9 ORDER BY id
!SELECT id, to_days(<rating>::INTEGER) AS i, [INTERVAL 1 DAY] AS l FROM reviews WHERE id < 9 ORDER BY id
!SELECT sum(<rating>::HUGEINT) AS h, sum(<rating>::INTEGER) AS i, sum(<rating>::DECIMAL(5,2)) AS d FROM reviews

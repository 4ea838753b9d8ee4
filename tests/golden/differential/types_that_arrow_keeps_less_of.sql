-- bits, times with an offset, numbers from 2^127 on, members of a UNION
!SELECT id, b'0101' AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id, B'0101' AS b, x'41' AS x FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE <pos> AND ('01' || '11')::BIT = b'0111' ORDER BY id
!SELECT id, bit_count(b'0111') AS n, b'01' & b'11' AS m FROM reviews WHERE <joke> ORDER BY id
!SELECT id, b'01' FROM reviews WHERE <joke> ORDER BY id
!SELECT b'01' AS b, 1 AS id
!SELECT id, TIMETZ '10:20:30+05:30' AS t, [TIMETZ '23:00:00-08', NULL] AS u FROM reviews WHERE <pos> ORDER BY id
!SELECT id, {'a': TIMETZ '10:20:30+05:30', 'b': 340282366920938463463374607431768211000::UHUGEINT} AS s FROM reviews WHERE <pos> ORDER BY id
!SELECT max(TIMETZ '10:20:30+05:30') AS t, 340282366920938463463374607431768211000::UHUGEINT AS h, count(*) AS n FROM reviews WHERE <joke>
!SELECT TIMETZ '10:20:30+05:30' AS t, count(*) AS n FROM reviews WHERE <joke> GROUP BY t
!SELECT DISTINCT TIMETZ '10:20:30+05:30' AS t FROM reviews WHERE <joke>
!SELECT TIMETZ '10:20:30+05:30' AS t FROM reviews WHERE <joke> UNION SELECT TIMETZ '10:20:30+06:30' FROM reviews WHERE <pos> ORDER BY t
!SELECT id FROM (SELECT id, text, TIMETZ '10:20:30+05:30' AS t FROM reviews) WHERE <pos> AND t > TIMETZ '10:20:30+06:30' ORDER BY id
!SELECT t, id FROM (SELECT id, TIMETZ '10:20:30+05:30' AS t FROM reviews WHERE <pos>) ORDER BY t, id
!WITH a AS (SELECT id, TIMETZ '10:20:30+05:30' AS t, 5::UHUGEINT AS h, b'01' AS b FROM reviews WHERE <pos>) SELECT id, t, h + 1 AS h, b FROM a WHERE h = 5 AND b = b'01' AND t < TIMETZ '11:20:30+05:30' ORDER BY id
!SELECT id, u.num AS n, union_tag(u) AS t, u.str AS s FROM (SELECT id, text, CASE WHEN id % 2 = 0 THEN union_value(num := id) ELSE union_value(str := film)::UNION(num INTEGER, str VARCHAR) END AS u FROM reviews) WHERE <pos> ORDER BY id
!SELECT id, u FROM (SELECT id, text, union_value(num := id) AS u FROM reviews) WHERE <pos> ORDER BY id

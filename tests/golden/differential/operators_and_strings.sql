-- operators on bits and lists, strings of other kinds, types of several words
!SELECT id FROM reviews WHERE stars & 1 = 1 AND <pos> ORDER BY id
!SELECT id, stars | 8 AS a, stars << 2 AS b, stars >> 1 AS c, ~stars AS d, xor(stars, 3) AS e FROM reviews WHERE <pos> ORDER BY id
!SELECT id, <rating>::INTEGER & 3 AS a, <rating>::INTEGER << 1 AS b FROM reviews ORDER BY id
!SELECT id FROM reviews WHERE (<rating>::INTEGER & 1) = 0 ORDER BY id
!SELECT id FROM reviews WHERE film = $$Alien$$ AND <pos> ORDER BY id
!SELECT id, $tag$it's "so"$tag$ AS a FROM reviews WHERE <pos> ORDER BY id
!SELECT id, E'a\tb\n\'x\'' AS a FROM reviews WHERE <pos> ORDER BY id
!SELECT id, E'\303\251\xc3\xA9\101é\é' AS a FROM reviews WHERE <pos> ORDER BY id
!SELECT id, stars::DOUBLE PRECISION AS a FROM reviews WHERE <pos> ORDER BY id
!SELECT id, <rating>::DOUBLE PRECISION AS a FROM reviews ORDER BY id
!SELECT id, CAST(<rating> AS DOUBLE PRECISION) AS a FROM reviews ORDER BY id
!SELECT id, day::TIMESTAMP WITHOUT TIME ZONE AS a, '10:00'::TIME WITHOUT TIME ZONE AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id, film::CHARACTER VARYING AS a FROM reviews WHERE <pos> ORDER BY id
!SELECT id, film::CHARACTER VARYING(10) AS a, film::CHAR(3) AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id, [stars]::INT[1] AS a FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE <pos> ORDER BY film COLLATE NOCASE, id
!SELECT id FROM reviews WHERE film COLLATE NOCASE = 'alien' AND <pos> ORDER BY id
!SELECT id FROM reviews WHERE <name> COLLATE NOCASE = 'ada' ORDER BY id
!SELECT id, stars::VARCHAR COLLATE NOCASE AS a FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE film ^@ 'A' AND <pos> ORDER BY id
!SELECT id, tags && ['x3'] AS a, tags @> ['x3'] AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE film !~~ 'A%' AND film !~~* 'b%' AND <pos> ORDER BY id
!SELECT id, current_timestamp IS NOT NULL AS a, today() IS NOT NULL AS b FROM reviews WHERE <pos> ORDER BY id
!SELECT id FROM reviews WHERE <name> ~ '^[AB]' AND film !~ 'z' ORDER BY id
!SELECT id FROM reviews WHERE <name> ~* 'D' OR film !~* 'A' ORDER BY id
!SELECT id FROM reviews WHERE film ~~~ 'A*' AND <pos> ORDER BY id
SELECT id, 'a' || 1 | 2 AS a, 1 || 2 << 1 AS b, 7 & ~1 AS c, 'x' || ~id AS d, ~ ~id AS e, 5 | ~1 + 1 AS f FROM reviews WHERE <pos>
!SELECT id, 1 % ~stars AS a, 2 * ~id + 1 AS b, 3 - ~2 - 1 AS c, 2 ** ~1 AS d, - ~id AS e FROM reviews WHERE <pos> ORDER BY id
!SELECT id, position('a' IN <name>) AS a, position(left(film, 1) IN <name>) AS b FROM reviews WHERE text IS NOT NULL ORDER BY id
!SELECT x'41' AS a, X'00fF' AS b, x'' AS c FROM reviews WHERE <pos> LIMIT 1
!SELECT id /* a /* comment */ in one */ FROM reviews /* /* "the review is a joke" */ ; */ WHERE <pos> ORDER BY id
!SELECT 'a b'.split(' ')[1].upper() AS a, [stars, 3].list_max() AS b, (film || 'x').upper().lower() AS c, {'a': id}.struct_extract('a') AS d, (film).length() AS e FROM reviews WHERE <pos> ORDER BY id
!SELECT greatest(*COLUMNS('id|stars')) AS a, [*COLUMNS(['film', 'text'])] AS b, struct_pack(*COLUMNS('^(id|film)$')) AS c FROM reviews WHERE <pos> ORDER BY id

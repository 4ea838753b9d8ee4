-- what DuckDB has since 2.0
!SELECT id FROM reviews WHERE <pos> ORDER BY id DESCENDING NULLS LAST
!SELECT id FROM reviews WHERE <pos> ORDER BY id ASCENDING OFFSET 2 ROWS FETCH NEXT 3 ROWS ONLY
!SELECT * EXCEPT (text, day) FROM reviews WHERE <pos> ORDER BY id
!SELECT id, r.id + 1 AS n FROM r: reviews WHERE <pos r.text> AND stars NOT NULL ORDER BY id
!SELECT r.id FROM r: (SELECT * FROM reviews WHERE id < 20) JOIN f: films USING (film) WHERE <pos r.text> ORDER BY ALL
!SELECT i, id FROM reviews JOIN range(3) i ON i = stars WHERE <pos> ORDER BY ALL
!SELECT *, i FROM (SELECT id, text FROM reviews WHERE id < 9) r, generate_series(1, 2) i WHERE <pos r.text> ORDER BY ALL
!SELECT v, v.unnest + 1 AS w FROM unnest([1, 2]) v WHERE v IN (SELECT stars FROM reviews WHERE <pos>) ORDER BY v
!SELECT id, v FROM reviews, VALUES (1), (2) AS x(v) WHERE <pos> ORDER BY ALL
!SELECT t.a, id FROM VALUES (1, 'x') t(a, b) JOIN reviews ON stars = a WHERE <pos> ORDER BY ALL

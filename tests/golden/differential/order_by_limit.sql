!SELECT id FROM reviews WHERE text IS NOT NULL AND id < 10 ORDER BY <anger> DESC, id LIMIT 4
!SELECT id FROM reviews WHERE text IS NOT NULL AND id < 10 ORDER BY film, <anger>, id
!SELECT id FROM reviews WHERE id < 10 ORDER BY <anger> DESC NULLS FIRST, id ### SELECT id FROM reviews WHERE id < 10 ORDER BY <anger> DESC NULLS FIRST, id
!SELECT id FROM reviews ORDER BY <pos>, id ### SELECT id FROM reviews ORDER BY <pos> NULLS LAST, id
!SELECT id, <topic> AS t FROM reviews WHERE t = 'plot' ORDER BY t, id LIMIT 3 OFFSET 1
!SELECT id FROM reviews WHERE <pos> ORDER BY id LIMIT 0
!SELECT id FROM reviews WHERE <pos> ORDER BY id OFFSET 12
!SELECT id FROM reviews WHERE <pos> ORDER BY id DESC LIMIT 3
!SELECT id FROM reviews WHERE <pos> ORDER BY -id LIMIT 3
!SELECT id FROM reviews WHERE <pos> ORDER BY stars DESC NULLS LAST, id ASC LIMIT 5
!SELECT id, film FROM reviews WHERE <pos> ORDER BY ALL DESC LIMIT 4
!SELECT film, id FROM reviews WHERE <pos> ORDER BY ALL LIMIT 4
!SELECT 'happy' AS d, id FROM reviews WHERE <pos> ORDER BY d COLLATE NOCASE, id DESC
!SELECT id FROM reviews WHERE text IS NOT NULL ORDER BY <name> COLLATE NOCASE DESC, id LIMIT 5
!SELECT id, <name> AS n FROM reviews WHERE text IS NOT NULL ORDER BY <name> COLLATE NOCASE, id LIMIT 5
!SELECT id, <name> AS n FROM reviews WHERE text IS NOT NULL ORDER BY n COLLATE NOCASE, id LIMIT 5
!SELECT id, film AS f FROM reviews WHERE <pos> ORDER BY "f" COLLATE NOCASE DESC, 1 LIMIT 5

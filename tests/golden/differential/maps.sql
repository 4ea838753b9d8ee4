-- a name before a colon is a column in a map, and the name of a field in a struct
!SELECT id, MAP {film: <name>}[film] AS m, MAP {id: film, stars: 'x'}[id] AS k FROM reviews WHERE text IS NOT NULL AND stars IS NOT NULL AND stars <> id ORDER BY id
!SELECT id, MAP {<topic>::VARCHAR: stars, 'film': 2} AS m, {film: film, 'b': <name>} AS s FROM reviews WHERE text IS NOT NULL ORDER BY id

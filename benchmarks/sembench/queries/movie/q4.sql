SELECT AVG(CASE WHEN positive THEN 1.0 ELSE 0.0 END) FROM r WHERE movie = 'taken_3'

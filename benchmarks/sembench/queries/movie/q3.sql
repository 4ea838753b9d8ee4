SELECT COUNT(*) FROM r WHERE movie = 'taken_3' AND positive

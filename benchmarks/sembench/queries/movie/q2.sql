SELECT id FROM r WHERE movie = 'taken_3' AND positive

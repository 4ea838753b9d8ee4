SELECT a.movie, a.id, b.id FROM r AS a JOIN r AS b ON a.movie = b.movie AND a.id <> b.id AND a.positive <> b.positive
WHERE a.movie = 'ant_man_and_the_wasp_quantumania'

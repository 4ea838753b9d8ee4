SELECT id, rating FROM r WHERE movie = 'ant_man_and_the_wasp_quantumania'

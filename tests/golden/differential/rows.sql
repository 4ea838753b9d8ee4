SELECT id FROM reviews WHERE (id, <pos>) IN (SELECT id, <joke> FROM reviews)
SELECT id FROM reviews WHERE (id, <pos>) IN (SELECT (id, <joke>) FROM reviews)
SELECT id FROM reviews WHERE (id, stars) IN (SELECT (id, stars) FROM reviews WHERE <pos>)
SELECT id FROM reviews WHERE (id, stars) NOT IN (SELECT (id, stars) FROM reviews WHERE <pos>)
SELECT id FROM reviews WHERE (id, stars) NOT IN (SELECT id, stars FROM reviews WHERE <pos>)
SELECT id FROM reviews WHERE (film, <rating>::INTEGER) NOT IN (SELECT film, stars FROM reviews WHERE stars IS NOT NULL)
SELECT id FROM reviews WHERE (film, <rating>) IN (SELECT (film, stars) FROM reviews)
SELECT id FROM reviews WHERE (film, <topic>) = ANY (SELECT film, <topic>::VARCHAR FROM reviews WHERE <joke>)
SELECT id FROM reviews WHERE (<topic>, <pos>) = ('plot', true)
SELECT id FROM reviews WHERE (<pos>, id) IN ((true, 1), (false, 2), (NULL, 6), (true, 3), (false, 4), (false, 5))
SELECT id FROM reviews WHERE (<pos>, stars) IS DISTINCT FROM (true, 3)
SELECT id, (<rating>, stars) > (5, 2) AS x FROM reviews
SELECT id FROM reviews WHERE (<rating>, id) BETWEEN (2, 3) AND (7, 30)
SELECT id FROM reviews WHERE (true, id) = (<pos>, 3)
SELECT id, (id, <joke>) IN (SELECT id, <pos> FROM reviews WHERE id < 9) AS x FROM reviews WHERE id < 14
SELECT id, (id, <pos>) IN (SELECT (id, <pos>) FROM reviews WHERE stars > 2) AS x FROM reviews
SELECT r.id FROM reviews r WHERE (r.id, <pos r.text>) IN (SELECT (b.id, <joke b.text>) FROM reviews b WHERE b.film = r.film)
SELECT id FROM reviews WHERE (stars, <pos>) <> (3, true)
SELECT id FROM reviews WHERE (film, (stars, <pos>)) IN (SELECT film, (stars, <joke>) FROM reviews)

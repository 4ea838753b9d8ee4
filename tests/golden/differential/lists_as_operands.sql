-- a list behind IN that is no name, and behind ANY and ALL
SELECT id FROM reviews WHERE 'jokes' IN <tags>::VARCHAR[]
SELECT id, 'a' IN string_split(film, 'l') AS k, film NOT IN list_value('Alien', 'Brazil') AS l, film IN tags::VARCHAR[] AS m FROM reviews WHERE <pos>
SELECT id FROM reviews WHERE <topic> = ANY (['plot', 'music'])
SELECT id FROM reviews WHERE <topic> <> ALL (['plot', 'music'])
SELECT id, stars > ALL ([1, 2]) AS a, stars = SOME ([3, NULL]) AS b, stars < ANY ([2, id]) AS c FROM reviews WHERE <pos>
SELECT id FROM reviews WHERE <rating> > ALL ([3, 5]) AND id IN (1, 2, 3, 4)
SELECT id, ARRAY[id, stars] AS l FROM reviews WHERE <pos>

-- rows chosen by a sub-query whose key is there once, or more than once
!SELECT count(*) AS n FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos>)
!SELECT count(*) AS n FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos>) AND <joke>
!SELECT count(*) AS n FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos>) AND id IN (SELECT id FROM reviews WHERE <joke> OR stars = 3)
!SELECT film, count(*) AS n, sum(stars) AS s FROM reviews r WHERE EXISTS (SELECT 1 FROM reviews b WHERE b.id = r.id AND <pos b.text>) GROUP BY film ORDER BY 1
!SELECT count(*) AS n FROM films WHERE film IN (SELECT film FROM reviews WHERE <pos>)
!SELECT count(*) AS n FROM reviews r WHERE id + 1 IN (SELECT b.id FROM reviews b WHERE <pos b.text> AND b.stars > 2) AND r.stars < 5
!SELECT count(*) AS n FROM reviews r WHERE id NOT IN (SELECT b.id FROM reviews b WHERE <pos b.text>)
!SELECT count(*) AS n FROM reviews r WHERE EXISTS (SELECT 1 FROM reviews b WHERE b.id = r.id + 1 AND b.stars > r.stars AND <pos b.text>)
!SELECT count(*) AS n FROM reviews r WHERE stars IN (SELECT b.id FROM reviews b WHERE <pos b.text>)
!SELECT avg(<rating>) AS n, count(*) FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos>)
!SELECT film, max(id) FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos> AND film <> 'Alien') GROUP BY film ORDER BY film
!SELECT count(*) FROM reviews WHERE film IN (SELECT f.film FROM films f JOIN reviews r USING (film) WHERE <joke r.text>)
!SELECT count(*) FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <name> = 'Ada') OR stars = 1
!SELECT count(*) FROM nothing WHERE id IN (SELECT id FROM reviews WHERE <pos>)
!SELECT count(*) FROM reviews WHERE id IN (SELECT id FROM nothing WHERE <pos>)
SELECT id FROM reviews WHERE <topic> IN (SELECT <topic b.text> FROM reviews b WHERE <joke b.text>)
SELECT id FROM reviews WHERE <topic> NOT IN (SELECT <topic b.text> FROM reviews b WHERE <joke b.text> AND id < 20)
SELECT id FROM reviews WHERE <topic> IN (SELECT film FROM reviews b WHERE <joke b.text> UNION ALL SELECT 'plot')
WITH c AS (SELECT <topic> AS k FROM reviews WHERE id < 3) SELECT id FROM reviews WHERE <topic> IN (SELECT k FROM c)

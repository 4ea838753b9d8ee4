!SELECT id FROM reviews WHERE film IN (SELECT film FROM films WHERE letters > 5) AND <pos> ORDER BY 1
!SELECT film FROM films WHERE film IN (SELECT film FROM reviews WHERE <joke>) ORDER BY 1
!SELECT film FROM films WHERE film NOT IN (SELECT film FROM reviews WHERE <joke>) ORDER BY 1
!SELECT id FROM reviews WHERE <pos> AND id IN (SELECT id FROM reviews WHERE <joke>) ORDER BY 1
!SELECT id FROM reviews WHERE <pos> OR id IN (SELECT id FROM reviews WHERE <joke>) ORDER BY 1
!SELECT film FROM films f WHERE EXISTS (SELECT 1 FROM reviews r WHERE r.film = f.film AND <joke r.text>) ORDER BY 1
!SELECT film FROM films f WHERE NOT EXISTS (SELECT * FROM reviews r WHERE r.film = f.film AND <joke r.text>) ORDER BY 1
!SELECT film, (SELECT count(*) FROM reviews r WHERE r.film = f.film AND <pos r.text>) AS n FROM films f ORDER BY 1
!SELECT film, (SELECT max(<rating r.text>) FROM reviews r WHERE r.film = f.film) AS n FROM films f ORDER BY 1
!SELECT film, (SELECT <name r.text> FROM reviews r WHERE r.film = f.film AND r.text IS NOT NULL ORDER BY r.id LIMIT 1) AS n FROM films f ORDER BY 1
!SELECT id FROM reviews a WHERE stars > (SELECT avg(stars) FROM reviews b WHERE b.film = a.film AND <pos b.text>) ORDER BY 1
!SELECT id FROM reviews WHERE stars > (SELECT avg(stars) FROM reviews WHERE <pos>) ORDER BY 1
!SELECT id, stars - (SELECT avg(stars) FROM reviews WHERE <pos>) AS d FROM reviews WHERE <joke> ORDER BY 1
!SELECT count(*) FROM (SELECT DISTINCT film FROM reviews WHERE <pos>)
!SELECT avg(n) FROM (SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film)
!SELECT id FROM (SELECT id, text FROM (SELECT * FROM reviews WHERE stars > 1) WHERE <pos>) ORDER BY 1
!SELECT film FROM films WHERE letters > ALL (SELECT stars FROM reviews WHERE <pos> AND stars IS NOT NULL) ORDER BY 1
!SELECT film FROM films WHERE film = ANY (SELECT film FROM reviews WHERE <joke>) ORDER BY 1
!SELECT id FROM reviews WHERE (film, stars) IN (SELECT film, max(stars) FROM reviews WHERE <pos> GROUP BY film) ORDER BY 1
!SELECT id FROM reviews WHERE id = (SELECT min(id) FROM reviews WHERE <joke>)
!SELECT film, CASE WHEN EXISTS (SELECT 1 FROM reviews r WHERE r.film = f.film AND <joke r.text>) THEN 'j' ELSE '-' END AS j FROM films f ORDER BY 1
!SELECT film FROM films f WHERE (SELECT count(*) FROM reviews r WHERE r.film = f.film AND <pos r.text>) > 5 ORDER BY 1
!SELECT ARRAY(SELECT id FROM reviews WHERE <joke> ORDER BY id) AS l

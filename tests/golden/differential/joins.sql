!SELECT r.id, f.letters FROM reviews r JOIN films f ON r.film = f.film WHERE <pos> ORDER BY r.id
!SELECT r.id, f.letters FROM reviews r JOIN films f USING (film) WHERE <pos> AND f.letters > 5 ORDER BY r.id
!SELECT r.id, film FROM reviews r NATURAL JOIN films WHERE <pos> ORDER BY r.id
!SELECT r.id, f.film FROM reviews r LEFT JOIN films f ON r.film = f.film AND <pos r.text> ORDER BY r.id
!SELECT r.id, f.film FROM films f LEFT JOIN reviews r ON r.film = f.film AND <pos r.text> ORDER BY f.film, r.id
!SELECT r.id, f.film FROM films f LEFT OUTER JOIN reviews r ON r.film = f.film WHERE <pos r.text> IS NOT TRUE ORDER BY f.film, r.id
!SELECT f.film FROM films f SEMI JOIN reviews r ON r.film = f.film AND <joke r.text> ORDER BY 1
!SELECT f.film FROM films f ANTI JOIN reviews r ON r.film = f.film AND <joke r.text> ORDER BY 1
!SELECT a.id, b.id FROM reviews a JOIN reviews b ON a.film = b.film AND a.id < b.id AND <agree a.text b.text> WHERE a.id < 12 AND b.id < 15 AND a.text IS NOT NULL AND b.text IS NOT NULL ORDER BY ALL
!SELECT a.id, b.id FROM reviews a, reviews b WHERE a.film = b.film AND a.id < b.id AND <agree a.text b.text> AND a.id < 12 AND b.id < 15 ORDER BY ALL
!SELECT a.id, count(*) AS n FROM reviews a JOIN reviews b ON a.film = b.film AND a.id <> b.id AND NOT <same a.text b.text> WHERE a.id < 8 GROUP BY a.id ORDER BY ALL
!SELECT a.id, b.id FROM reviews a FULL JOIN reviews b ON a.id = b.id + 1 AND <agree a.text b.text> WHERE coalesce(a.id, 0) < 6 AND coalesce(b.id, 0) < 6 ORDER BY ALL
!SELECT a.id, b.id FROM one a CROSS JOIN reviews b WHERE <agree a.text b.text> ORDER BY ALL
!SELECT count(*) FROM reviews a JOIN nothing b ON <agree a.text b.text>
!SELECT r.id, f.letters FROM (reviews r JOIN films f USING (film)) WHERE <pos r.text> ORDER BY 1
!SELECT x.id FROM (SELECT * FROM reviews WHERE <pos>) AS x JOIN (SELECT film FROM films WHERE letters > 5) AS y USING (film) ORDER BY 1
!SELECT r.id FROM reviews r INNER JOIN films f ON (r.film = f.film AND f.letters = 5) OR <joke r.text> ORDER BY 1, f.film
!SELECT r.id, f.film FROM reviews r RIGHT JOIN films f ON r.film = f.film AND <joke r.text> ORDER BY ALL
!SELECT v.film, count(*) FROM (VALUES ('Alien', 1), ('Brazil', 2)) v(film, k) JOIN reviews r ON r.film = v.film WHERE <pos r.text> GROUP BY ALL ORDER BY ALL
-- what two rows say is compared: each is asked on its own
!SELECT a.id, b.id FROM reviews a JOIN reviews b ON a.id = b.id + 1 WHERE <name a.text>::VARCHAR = <name b.text>::VARCHAR ORDER BY 1
!SELECT a.id FROM reviews a JOIN reviews b ON a.id = b.id + 1 AND <rating a.text>::INTEGER > <rating b.text>::INTEGER ORDER BY 1
!SELECT id FROM (VALUES ('Alien'), (NULL)) v(k) LEFT JOIN (SELECT id, film FROM reviews WHERE <joke>) r ON r.film = k ORDER BY id

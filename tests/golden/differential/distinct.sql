!SELECT DISTINCT film FROM reviews WHERE <pos> ORDER BY film
!SELECT DISTINCT ON (film) film, id FROM reviews WHERE <pos> ORDER BY film, id
!SELECT DISTINCT ON (<topic>) id FROM reviews WHERE text IS NOT NULL ORDER BY <topic>, id
!SELECT DISTINCT <topic> AS t, film FROM reviews WHERE text IS NOT NULL ORDER BY ALL
!SELECT DISTINCT <pos>::BOOLEAN AS t FROM reviews ORDER BY ALL
!SELECT count(DISTINCT <name>) FROM reviews
!SELECT count(DISTINCT film) FILTER (WHERE <pos>) FROM reviews
!SELECT DISTINCT film FROM reviews WHERE <pos> ORDER BY film DESC LIMIT 2
SELECT DISTINCT <rating>::INTEGER AS r FROM reviews ORDER BY film DESC, id
!SELECT DISTINCT stars FROM reviews WHERE <pos> ORDER BY id DESC NULLS FIRST, stars
!SELECT DISTINCT upper(<name>) AS n FROM reviews WHERE text IS NOT NULL ORDER BY id LIMIT 3
!SELECT DISTINCT film FROM reviews WHERE <pos> GROUP BY film, stars ORDER BY film || 'x' DESC

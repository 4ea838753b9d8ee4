!SELECT DISTINCT film FROM reviews WHERE <pos> ORDER BY film
!SELECT DISTINCT ON (film) film, id FROM reviews WHERE <pos> ORDER BY film, id
!SELECT DISTINCT ON (<topic>) id FROM reviews WHERE text IS NOT NULL ORDER BY <topic>, id
!SELECT DISTINCT <topic> AS t, film FROM reviews WHERE text IS NOT NULL ORDER BY ALL
!SELECT DISTINCT <pos>::BOOLEAN AS t FROM reviews ORDER BY ALL
!SELECT count(DISTINCT <name>) FROM reviews
!SELECT count(DISTINCT film) FILTER (WHERE <pos>) FROM reviews
!SELECT DISTINCT film FROM reviews WHERE <pos> ORDER BY film DESC LIMIT 2

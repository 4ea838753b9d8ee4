!SELECT id, CASE WHEN <pos> THEN 'good' WHEN <joke> THEN 'joke' ELSE 'bad' END AS k FROM reviews ORDER BY id
!SELECT id, CASE <topic> WHEN 'plot' THEN 1 WHEN 'music' THEN 2 ELSE 3 END AS k FROM reviews ORDER BY id
!SELECT id, CASE WHEN stars > 3 THEN <name> END AS k FROM reviews ORDER BY id
!SELECT count(*), CASE WHEN <pos> THEN 'g' ELSE 'b' END AS k FROM reviews GROUP BY k ORDER BY k
!SELECT sum(CASE WHEN <pos> THEN 1 ELSE 0 END) AS p, sum(if(<joke>, stars, 0)) AS j FROM reviews
!SELECT id, if(<pos>, 'y', 'n') AS k FROM reviews ORDER BY id
!SELECT id, CASE WHEN <pos> AND stars > 3 THEN 1 WHEN NOT <pos> THEN -1 ELSE 0 END AS k FROM reviews ORDER BY id
!SELECT id, coalesce(<name>, 'nobody') AS n FROM reviews ORDER BY id
!SELECT id, nullif(<topic>, 'plot') AS n FROM reviews ORDER BY id
!SELECT id, CASE WHEN <rating> >= 8 THEN 'hi' WHEN <rating> >= 4 THEN 'mid' ELSE 'lo' END AS k FROM reviews ORDER BY id
!SELECT id FROM reviews ORDER BY CASE WHEN <pos> THEN 0 ELSE 1 END, id
!SELECT id, coalesce(<joke>, stars > 2) AS k, CASE WHEN id > 5 THEN <pos> ELSE film = 'Alien' END AS l FROM reviews ORDER BY id
!SELECT id, if(id > 5, <joke>, stars IN (1, 2)) AS k, ifnull(<pos>, stars IS NULL) AS l, CASE WHEN id > 5 THEN film LIKE 'A%' AND stars > 1 ELSE <joke> END AS m FROM reviews ORDER BY id

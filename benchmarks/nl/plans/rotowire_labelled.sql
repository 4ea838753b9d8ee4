-- What the labels there are say, where they are of 60 % of the games: the reference of a question whose answer rests on reports.

-- question: rotowire-m2ex-060: Which team made the highest percentage of field goals in any game?
SELECT DISTINCT name, pct_field_goals FROM team_labels WHERE pct_field_goals IS NOT NULL
QUALIFY rank() OVER (ORDER BY pct_field_goals DESC) = 1;

-- question: rotowire-m2ex-083: Plot the highest number of three pointers made by players from each nationality.
SELECT DISTINCT ON (nationality) nationality, three_pointers_made FROM player_labels JOIN players USING (name)
WHERE nationality IS NOT NULL AND three_pointers_made IS NOT NULL ORDER BY nationality, three_pointers_made DESC;

-- question: rotowire-m2ex-106: Plot the lowest percentage of field goals made by teams from each division.
SELECT DISTINCT ON (division) division, pct_field_goals FROM team_labels JOIN teams USING (name)
WHERE pct_field_goals IS NOT NULL ORDER BY division, pct_field_goals ASC;

-- question: rotowire-valid-048: Who made the highest number of points in any game?
SELECT DISTINCT name, points FROM player_labels WHERE points IS NOT NULL
QUALIFY rank() OVER (ORDER BY points DESC) = 1;

-- question: rotowire-valid-049: Who made the highest number of assists in any game?
SELECT DISTINCT name, assists FROM player_labels WHERE assists IS NOT NULL
QUALIFY rank() OVER (ORDER BY assists DESC) = 1;

-- question: rotowire-valid-050: Who made the highest number of field goals in any game?
SELECT DISTINCT name, field_goals_made FROM player_labels WHERE field_goals_made IS NOT NULL
QUALIFY rank() OVER (ORDER BY field_goals_made DESC) = 1;

-- question: rotowire-valid-051: Who made the highest number of three pointers in any game?
SELECT DISTINCT name, three_pointers_made FROM player_labels WHERE three_pointers_made IS NOT NULL
QUALIFY rank() OVER (ORDER BY three_pointers_made DESC) = 1;

-- question: rotowire-valid-053: Who made the lowest number of points in any game?
SELECT DISTINCT name, points FROM player_labels WHERE points IS NOT NULL
QUALIFY rank() OVER (ORDER BY points ASC) = 1;

-- question: rotowire-valid-057: Who made the lowest number of rebounds in any game?
SELECT DISTINCT name, total_rebounds FROM player_labels WHERE total_rebounds IS NOT NULL
QUALIFY rank() OVER (ORDER BY total_rebounds ASC) = 1;

-- question: rotowire-valid-059: Which team made the highest number of points in 1st quarter in any game?
SELECT DISTINCT name, points_q1 FROM team_labels WHERE points_q1 IS NOT NULL
QUALIFY rank() OVER (ORDER BY points_q1 DESC) = 1;

-- question: rotowire-valid-060: Which team made the highest percentage of field goals in any game?
SELECT DISTINCT name, pct_field_goals FROM team_labels WHERE pct_field_goals IS NOT NULL
QUALIFY rank() OVER (ORDER BY pct_field_goals DESC) = 1;

-- question: rotowire-valid-061: Which team made the lowest number of total points in any game?
SELECT DISTINCT name, total_points FROM team_labels WHERE total_points IS NOT NULL
QUALIFY rank() OVER (ORDER BY total_points ASC) = 1;

-- question: rotowire-valid-066: For each player, what is the highest number of field goals they made in a game?
SELECT DISTINCT ON (name) name, field_goals_made FROM player_labels WHERE field_goals_made IS NOT NULL
ORDER BY name, field_goals_made DESC;

-- question: rotowire-valid-068: For each player, what is the highest number of rebounds they made in a game?
SELECT DISTINCT ON (name) name, total_rebounds FROM player_labels WHERE total_rebounds IS NOT NULL
ORDER BY name, total_rebounds DESC;

-- question: rotowire-valid-069: For each player, what is the lowest number of points they made in a game?
SELECT DISTINCT ON (name) name, points FROM player_labels WHERE points IS NOT NULL
ORDER BY name, points ASC;

-- question: rotowire-valid-073: For each player, what is the lowest number of rebounds they made in a game?
SELECT DISTINCT ON (name) name, total_rebounds FROM player_labels WHERE total_rebounds IS NOT NULL
ORDER BY name, total_rebounds ASC;

-- question: rotowire-valid-074: How many games did each team win?
WITH ranked AS (
  SELECT name, total_points, min(total_points) OVER (PARTITION BY game_id) AS loser,
    count(total_points) OVER (PARTITION BY game_id) AS sides FROM team_labels)
SELECT name, count(*) AS games FROM ranked WHERE sides = 2 AND total_points > loser GROUP BY name;

-- question: rotowire-valid-076: Plot the highest number of points made by players from each position.
SELECT DISTINCT ON (position) position, points FROM player_labels JOIN players USING (name)
WHERE position IS NOT NULL AND points IS NOT NULL ORDER BY position, points DESC;

-- question: rotowire-valid-078: Plot the highest number of assists made by players from each position.
SELECT DISTINCT ON (position) position, assists FROM player_labels JOIN players USING (name)
WHERE position IS NOT NULL AND assists IS NOT NULL ORDER BY position, assists DESC;

-- question: rotowire-valid-079: Plot the highest number of assists made by players from each nationality.
SELECT DISTINCT ON (nationality) nationality, assists FROM player_labels JOIN players USING (name)
WHERE nationality IS NOT NULL AND assists IS NOT NULL ORDER BY nationality, assists DESC;

-- question: rotowire-valid-083: Plot the highest number of three pointers made by players from each nationality.
SELECT DISTINCT ON (nationality) nationality, three_pointers_made FROM player_labels JOIN players USING (name)
WHERE nationality IS NOT NULL AND three_pointers_made IS NOT NULL ORDER BY nationality, three_pointers_made DESC;

-- question: rotowire-valid-084: Plot the highest number of rebounds made by players from each position.
SELECT DISTINCT ON (position) position, total_rebounds FROM player_labels JOIN players USING (name)
WHERE position IS NOT NULL AND total_rebounds IS NOT NULL ORDER BY position, total_rebounds DESC;

-- question: rotowire-valid-085: Plot the highest number of rebounds made by players from each nationality.
SELECT DISTINCT ON (nationality) nationality, total_rebounds FROM player_labels JOIN players USING (name)
WHERE nationality IS NOT NULL AND total_rebounds IS NOT NULL ORDER BY nationality, total_rebounds DESC;

-- question: rotowire-valid-087: Plot the lowest number of points made by players from each nationality.
SELECT DISTINCT ON (nationality) nationality, points FROM player_labels JOIN players USING (name)
WHERE nationality IS NOT NULL AND points IS NOT NULL ORDER BY nationality, points ASC;

-- question: rotowire-valid-088: Plot the lowest number of assists made by players from each position.
SELECT DISTINCT ON (position) position, assists FROM player_labels JOIN players USING (name)
WHERE position IS NOT NULL AND assists IS NOT NULL ORDER BY position, assists ASC;

-- question: rotowire-valid-089: Plot the lowest number of assists made by players from each nationality.
SELECT DISTINCT ON (nationality) nationality, assists FROM player_labels JOIN players USING (name)
WHERE nationality IS NOT NULL AND assists IS NOT NULL ORDER BY nationality, assists ASC;

-- question: rotowire-valid-094: Plot the lowest number of rebounds made by players from each position.
SELECT DISTINCT ON (position) position, total_rebounds FROM player_labels JOIN players USING (name)
WHERE position IS NOT NULL AND total_rebounds IS NOT NULL ORDER BY position, total_rebounds ASC;

-- question: rotowire-valid-095: Plot the lowest number of rebounds made by players from each nationality.
SELECT DISTINCT ON (nationality) nationality, total_rebounds FROM player_labels JOIN players USING (name)
WHERE nationality IS NOT NULL AND total_rebounds IS NOT NULL ORDER BY nationality, total_rebounds ASC;

-- question: rotowire-valid-096: Plot the highest number of total points made by teams from each division.
SELECT DISTINCT ON (division) division, total_points FROM team_labels JOIN teams USING (name)
WHERE total_points IS NOT NULL ORDER BY division, total_points DESC;

-- question: rotowire-valid-098: Plot the highest number of points in 1st quarter made by teams from each division.
SELECT DISTINCT ON (division) division, points_q1 FROM team_labels JOIN teams USING (name)
WHERE points_q1 IS NOT NULL ORDER BY division, points_q1 DESC;

-- question: rotowire-valid-099: Plot the highest number of points in 1st quarter made by teams from each conference.
SELECT DISTINCT ON (conference) conference, points_q1 FROM team_labels JOIN teams USING (name)
WHERE points_q1 IS NOT NULL ORDER BY conference, points_q1 DESC;

-- question: rotowire-valid-100: Plot the highest percentage of field goals made by teams from each division.
SELECT DISTINCT ON (division) division, pct_field_goals FROM team_labels JOIN teams USING (name)
WHERE pct_field_goals IS NOT NULL ORDER BY division, pct_field_goals DESC;

-- question: rotowire-valid-103: Plot the lowest number of total points made by teams from each conference.
SELECT DISTINCT ON (conference) conference, total_points FROM team_labels JOIN teams USING (name)
WHERE total_points IS NOT NULL ORDER BY conference, total_points ASC;

-- question: rotowire-valid-106: Plot the lowest percentage of field goals made by teams from each division.
SELECT DISTINCT ON (division) division, pct_field_goals FROM team_labels JOIN teams USING (name)
WHERE pct_field_goals IS NOT NULL ORDER BY division, pct_field_goals ASC;

SELECT movie, AVG(rating) FROM r GROUP BY movie

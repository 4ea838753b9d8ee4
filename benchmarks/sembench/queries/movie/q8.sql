SELECT sentiment, COUNT(*) FROM r WHERE movie = 'taken_3' GROUP BY sentiment

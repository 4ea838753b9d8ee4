-- What the labels there are say, where they are of 116 of 194 countries: the reference of a question that needs a value of theirs.

-- question: countries-021: Of the countries whose flag shows a star, which one has the largest area?
SELECT name FROM countries JOIN labels USING (code) WHERE flag_star = 'yes' ORDER BY area_km2 DESC LIMIT 1;

-- question: countries-022: Of the countries whose flag shows a star, which one has the largest population?
SELECT name FROM countries JOIN labels USING (code) WHERE flag_star = 'yes' ORDER BY population DESC LIMIT 1;

-- question: countries-025: Of the countries whose flag shows a crescent, which one has the largest area?
SELECT name FROM countries JOIN labels USING (code) WHERE flag_crescent = 'yes' ORDER BY area_km2 DESC LIMIT 1;

-- question: countries-038: Of the countries whose flag shows writing, which one has the largest area?
SELECT name FROM countries JOIN labels USING (code) WHERE flag_writing = 'yes' ORDER BY area_km2 DESC LIMIT 1;

-- question: countries-060: According to its profile text, in what year did Angola become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Angola';

-- question: countries-061: According to its profile text, in what year did Congo become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Congo';

-- question: countries-062: According to its profile text, in what year did Eritrea become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Eritrea';

-- question: countries-063: According to its profile text, in what year did Comoros become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Comoros';

-- question: countries-065: According to its profile text, in what year did Antigua and Barbuda become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Antigua and Barbuda';

-- question: countries-066: According to its profile text, in what year did Chile become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Chile';

-- question: countries-071: According to its profile text, in what year did Lebanon become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Lebanon';

-- question: countries-072: According to its profile text, in what year did Tajikistan become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Tajikistan';

-- question: countries-077: According to its profile text, in what year did Tuvalu become independent?
SELECT independence_year::INTEGER AS answer FROM countries JOIN labels USING (code) WHERE name = 'Tuvalu';

-- question: countries-121: Plot, for each region, the number of countries whose flag shows a crescent.
SELECT region, count(*) FILTER (flag_crescent = 'yes') AS n FROM countries LEFT JOIN labels USING (code) GROUP BY region;

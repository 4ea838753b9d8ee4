"""The grammar of a question holds the query that it means: questions of several databases beside what they ask for, in lines."""

from __future__ import annotations

import duckdb
from nl.meant import holding

from uql.nl.schema.discover import discover
from uql.nl.schema.foreign_keys import links_between
from uql.sources.catalog import Catalog


def records() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE albums AS SELECT i AS album_id, ['Night Train', 'Glass Moon', 'Slow River'][1 + i % 3] || ' ' || i AS title, "
        "['Miles Blue', 'Nina Storm'][1 + i % 2] AS artist, 1958 + i AS release_year, ['jazz', 'rock', 'folk'][1 + i % 3] AS genre, "
        "9.5 + i AS price, i % 5 AS stock FROM range(30) t(i)"
    )
    con.execute(
        "CREATE TABLE stores AS SELECT i AS store_id, ['Oslo', 'Lyon', 'Graz'][i] AS city, ['Tom Hale', 'Zoe Petit', 'Uwe Kern'][i] AS manager "
        "FROM range(1, 4) t(i)"
    )
    con.execute(
        "CREATE TABLE sales AS SELECT i AS sale_id, i % 28 AS album_id, 1 + i % 3 AS store_id, "
        "DATE '2022-01-01' + INTERVAL (i * 5) DAY AS sold_on, 1 + i % 4 AS quantity FROM range(150) t(i)"
    )
    con.execute(
        "CREATE TABLE reviews AS SELECT i % 25 AS album_id, ['anna', 'bob', 'carl'][1 + i % 3] AS reviewer, "
        "['The pressing crackles from the first minute to the last and I have sent it back to the shop twice.', "
        "'A wonderful record, the trumpet solos alone are worth the money and the drummer is a joy to hear.', "
        "'It arrived bent and with a torn sleeve; the music itself is fine but nobody answered my letters.'][1 + i % 3] || i AS review "
        "FROM range(80) t(i)"
    )
    return con


def races() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE runners AS SELECT i AS bib, ['Abel', 'Bea', 'Carl'][1 + i % 3] || ' ' || i AS runner, "
        "['Kenya', 'Spain', 'Peru'][1 + i % 3] AS country, ['Striders', NULL, 'Harriers'][1 + i % 3] AS club, 18 + i % 40 AS age, "
        "['f', 'm'][1 + i % 2] AS sex FROM range(60) t(i)"
    )
    con.execute(
        "CREATE TABLE races (race_id INTEGER, race VARCHAR, held DATE, distance_km DOUBLE, weather VARCHAR);"
        "INSERT INTO races VALUES (1, 'Fjord Run', '2023-05-14', 21.1, 'rain'), (2, 'City Marathon', '2023-10-01', 42.2, 'sun'), "
        "(3, 'Hill Ten', '2024-04-07', 10.0, 'wind')"
    )
    con.execute(
        "CREATE TABLE results AS SELECT 1 + i % 3 AS race_id, (i * 3) % 55 AS bib, 35.5 + i AS minutes, 1 + i // 3 AS place FROM range(150) t(i)"
    )
    con.execute(
        "CREATE TABLE reports (race_id INTEGER, report VARCHAR);"
        "INSERT INTO reports SELECT i, ['Heavy rain made the descent slippery and three runners had to be treated for bruises by doctors.', "
        "'A sunny day with thousands of spectators along the course, although the water ran out at the second station.', "
        "'The start was delayed by half an hour because the timing chips had not been delivered to the start area.'][i] FROM range(1, 4) t(i)"
    )
    return con


def hotels() -> duckdb.DuckDBPyConnection:
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE companies AS SELECT i AS id, ['Seaview', 'Old Mill', 'Plaza'][i] AS hotel_name, ['Poole', 'York', 'York'][i] AS town, "
        "2 + i AS stars, ['A', 'B', 'C'][i] AS class FROM range(1, 4) t(i)"
    )
    con.execute(
        "CREATE TABLE guests AS SELECT i AS guest_id, ['Ana', 'Bo', 'Cy'][1 + i % 3] || ' ' || i AS guest_name, "
        "['Italy', 'Spain', 'Japan'][1 + i % 3] AS country, i % 9 = 0 AS vip FROM range(50) t(i)"
    )
    con.execute(
        "CREATE TABLE bookings AS SELECT i AS booking_id, 1 + i % 3 AS company_id, (i * 7) % 45 AS guest_id, "
        "DATE '2022-01-01' + INTERVAL (i * 5) DAY AS arrival, 1 + i % 9 AS nights, 60 + i AS price, 1 + i % 6 AS delay_min, "
        "['confirmed', 'cancelled'][1 + i % 2] AS status FROM range(160) t(i)"
    )
    con.execute(
        "CREATE TABLE comments AS SELECT i AS booking_id, 1 + i % 5 AS rating, "
        "['The room was spotless and the breakfast was the best we have ever had, the staff could not do enough.', "
        "'Our room faced the main road and we could not sleep at all because of the noise, earplugs did not help.', "
        "'The shower was cold for three days and nobody came to repair it even though we called twice a day.'][1 + i % 3] || i AS comment "
        "FROM range(100) t(i)"
    )
    return con


DATABASES = {"records": records, "races": races, "hotels": hotels}
MEANT = """
records | How many albums cost more than 20 euros? | albums | WHERE price > 20; SELECT count(*)
records | Which albums are out of stock? | albums | WHERE stock = 0; SELECT title
records | What is the title of the cheapest jazz album? | albums | WHERE genre = 'jazz'; SELECT title; ORDER BY price ASC; LIMIT 1
records | Which genre is the most expensive on average? | albums | GROUP BY genre; SELECT avg(price); ORDER BY avg(price) DESC; LIMIT 1
records | Is jazz more expensive than folk? | albums | WHERE genre IN ('folk', 'jazz'); GROUP BY genre; SELECT avg(price)
records | Draw a line chart of the albums per decade. | albums | GROUP BY decade(release_year); SELECT count(*); PLOT line
records | How many records did the store in Oslo sell? | sales stores | WHERE city = 'Oslo'; SELECT sum(quantity)
records | Which album sells best? | albums sales | GROUP BY title; SELECT sum(quantity); ORDER BY sum(quantity) DESC; LIMIT 1
records | How many sales were there in 2023? | sales | WHERE year(sold_on) = 2023; SELECT count(*)
records | Who manages the store in Lyon? | stores | WHERE city = 'Lyon'; SELECT manager
records | How many reviews praise the drummer? | reviews | WHERE ask('praise the drummer'); SELECT count(*)
records | Which album gets the most complaints about a torn sleeve? | albums reviews | WHERE ask('complaints about a torn sleeve'); GROUP BY title; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
records | Which reviewer writes most about the sleeve? | reviews | WHERE ask('the sleeve'); GROUP BY reviewer; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1
records | What do reviewers dislike? | reviews | SELECT ask('What reviewers dislike') AS answer
races | Are there more women than men? | runners | WHERE sex IN ('f', 'm'); GROUP BY sex; SELECT count(*)
races | Which race is the longest? | races | SELECT race; ORDER BY distance_km DESC; LIMIT 1
races | How many women ran in 2024? | races results runners | WHERE sex = 'f' AND year(held) = 2024; SELECT count(*)
races | How many Spanish runners are there? | runners | WHERE country = 'Spain'; SELECT count(*)
races | How many races took place in the rain? | races | WHERE weather = 'rain'; SELECT count(*)
races | How many races were held on rainy days? | races | WHERE weather = 'rain'; SELECT count(*)
races | Who won the City Marathon? | races results runners | WHERE race = 'City Marathon' AND place = 1; SELECT runner
races | What was the fastest time in the Hill Ten? | races results | WHERE race = 'Hill Ten'; SELECT min(minutes)
races | Which club has the youngest runners on average? | runners | GROUP BY club; SELECT avg(age); ORDER BY avg(age) ASC; LIMIT 1
races | How many runners without a club are there? | runners | WHERE club IS NULL; SELECT count(*)
races | Which runners finished the Hill Ten in under 80 minutes? | races results runners | WHERE race = 'Hill Ten' AND minutes < 80; SELECT runner
races | What is the longest race? | races | SELECT race; ORDER BY distance_km DESC; LIMIT 1
races | In which races did runners slip? | races reports | WHERE ask('runners slip'); SELECT race
races | How many injured runners does the report of the Fjord Run mention? | races reports | WHERE race = 'Fjord Run'; SELECT ask_number('injured runners') AS answer
races | Compare the number of male and female runners in a pie chart. | runners | GROUP BY sex; SELECT count(*); PLOT arc
hotels | Which guests complained about noise? | bookings comments guests | WHERE ask('complained about noise'); SELECT guest_name
hotels | How many guests from Spain stayed in York? | bookings companies guests | WHERE country = 'Spain' AND town = 'York'; SELECT count(DISTINCT guest_name)
hotels | How many Italian guests are there? | guests | WHERE country = 'Italy'; SELECT count(*)
hotels | What was the longest stay? | bookings | SELECT max(nights)
hotels | Who stayed the most nights in total? | bookings guests | GROUP BY guest_name; SELECT sum(nights); ORDER BY sum(nights) DESC; LIMIT 1
hotels | How much did VIP guests pay on average? | bookings guests | WHERE vip; SELECT avg(price)
hotels | Total revenue per town, highest first | bookings companies | GROUP BY town; SELECT sum(price); ORDER BY sum(price) DESC
hotels | What is the average rating of stays with noise problems? | bookings comments | WHERE ask('noise problems'); SELECT avg(rating)
hotels | Which hotel gets the worst ratings on average? | bookings comments companies | GROUP BY hotel_name; SELECT avg(rating); ORDER BY avg(rating) ASC; LIMIT 1
hotels | Do VIP guests pay more than others? | bookings guests | GROUP BY vip; SELECT avg(price)
hotels | How many guests of class B hotels were there? | bookings companies guests | WHERE class = 'B'; SELECT count(*)
hotels | What is the average number of nights per country? | bookings guests | GROUP BY country; SELECT avg(nights)
hotels | Which town had the most delays? | bookings companies | GROUP BY town; SELECT sum(delay_min); ORDER BY sum(delay_min) DESC; LIMIT 1
hotels | On which weekday are arrivals most delayed? | bookings | GROUP BY weekday(arrival); SELECT avg(delay_min); ORDER BY avg(delay_min) DESC; LIMIT 1
hotels | Which guest spent the most? | bookings guests | GROUP BY guest_name; SELECT sum(price); ORDER BY sum(price) DESC; LIMIT 1
hotels | How many nights did Italian guests stay? | bookings guests | WHERE country = 'Italy'; SELECT sum(nights)
hotels | How many guests arrived on 6 January 2022? | bookings guests | WHERE arrival = '2022-01-06'; SELECT count(*)
hotels | How many comments are about noise, by country? | bookings comments guests | WHERE ask('about noise'); GROUP BY country; SELECT count(*)
hotels | Which guests have never booked? | guests | WHERE without bookings; SELECT guest_name
hotels | In which towns was the shower cold? | bookings comments companies | WHERE ask('the shower was cold'); SELECT town
"""


test_the_grammar_of_a_question_holds_what_it_means = holding(DATABASES, MEANT)


def test_keys_are_found_whatever_the_plural_of_a_table() -> None:
    con = duckdb.connect()
    con.execute("CREATE TABLE companies AS SELECT i AS id FROM range(9) t(i)")
    con.execute("CREATE TABLE people AS SELECT i AS person_id, i % 9 AS company_id FROM range(20) t(i)")
    con.execute("CREATE TABLE games AS SELECT i AS game_id, i % 20 AS referee_person_id FROM range(50) t(i)")
    con.execute("CREATE TABLE continents AS SELECT i AS cont_id, 'Land ' || i AS continent FROM range(5) t(i)")
    con.execute("CREATE TABLE countries AS SELECT 'Country ' || i AS country, i % 5 AS continent FROM range(50) t(i)")
    scope = discover("", Catalog(con), None)
    found = {str(link) for link in links_between(list(scope.sources.values()), Catalog(con))}
    assert found == {
        "people.company_id = companies.id",
        "games.referee_person_id = people.person_id",
        "countries.continent = continents.cont_id",
    }

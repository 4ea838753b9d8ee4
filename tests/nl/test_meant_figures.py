"""Questions for figures that are made of two columns, of periods, of groups against one, and of what rows elsewhere have."""

from __future__ import annotations

import duckdb
import pytest
from nl.meant import asked, holding, not_holding, whole

from uql.features.embedder import Embedder
from uql.nl.schema.discover import discover
from uql.nl.schema.spelling import well_spelt
from uql.nl.small.lines.reading import nodes_of
from uql.sources.catalog import Catalog


def charter() -> duckdb.DuckDBPyConnection:
    """Boats, what they carry, and their trips, each with a report to be read."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE boats AS SELECT i AS boat_id, ['Heron', 'Osprey', 'Petrel', 'Gannet'][i] AS boat_name, "
        "['Kiel', 'Rostock', 'Kiel', 'Flensburg'][i] AS harbour, 20.5 * i AS sail_area_m2, 2 * i AS berths, 40000 * i AS asking_price, "
        "39000 * i + CASE WHEN i = 2 THEN 5000 ELSE 0 END AS sold_price FROM range(1, 5) t(i);"
        "CREATE TABLE equipment AS SELECT * FROM (VALUES (1, 'radar', 'electronics'), (1, 'dinghy', 'safety'), (2, 'radar', 'electronics'), "
        "(3, 'dinghy', 'safety'), (3, 'sauna', 'comfort'), (4, 'liferaft', 'safety')) AS t(boat_id, item, category);"
        "CREATE TABLE trips AS SELECT i AS trip_id, CASE WHEN i % 7 = 0 THEN 2 ELSE 1 + i % 3 END AS boat_id, "
        "['Ole', 'Pia', 'Rik'][1 + i % 3] AS skipper, TIMESTAMP '2022-01-03 07:30:00' + INTERVAL (i * 90) HOUR AS left_at, "
        "TIMESTAMP '2022-01-03 12:30:00' + INTERVAL (i * 91) HOUR AS moored_at, DATE '2022-02-01' + INTERVAL (i * 4) DAY AS due_on, "
        "CASE WHEN i % 6 > 0 THEN DATE '2022-01-30' + INTERVAL (i * 4 + i % 5) DAY END AS paid_on, 100 + i AS income, 60 + i % 9 AS expense, "
        "['The wind came from the west and the crew had to reef twice before we reached the fjord late in the evening.', "
        "'Two of the guests were seasick all day long, so that we turned round and moored behind the island at noon.'][1 + i % 2] || i AS report "
        "FROM range(200) t(i)"
    )
    return con


def kiosk() -> duckdb.DuckDBPyConnection:
    """What was sold, by piece; no column of revenue, and who left when."""
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE goods AS SELECT i AS goods_id, ['tea', 'rusk', 'soap'][i] AS label, ['food', 'food', 'care'][i] AS kind "
        "FROM range(1, 4) t(i);"
        "CREATE TABLE receipt_lines AS SELECT i AS line_id, 1 + i % 3 AS goods_id, 1 + i % 5 AS quantity, 2.5 + i % 3 AS unit_price, "
        "DATE '2023-01-01' + INTERVAL (i * 5) DAY AS bought_on FROM range(150) t(i);"
        "CREATE TABLE cashiers AS SELECT i AS cashier_id, 'Cashier ' || i AS full_name, ['Riga', 'Tartu'][1 + i % 2] AS town, 1500 + 10 * i AS wage, "
        "30 * i AS bonus, DATE '2019-01-01' + INTERVAL (i * 40) DAY AS start_date, "
        "CASE WHEN i % 4 = 0 THEN DATE '2023-01-01' + INTERVAL (i * 9) DAY END AS end_date, [NULL, 'Guild'][1 + i % 2] AS union_name "
        "FROM range(1, 31) t(i)"
    )
    return con


DATABASES = {"charter": charter, "kiosk": kiosk}
MEANT = """
charter | asking price per square metre by harbour | boats | GROUP BY harbour; SELECT avg(asking_price / sail_area_m2)
charter | asking price per berth of each boat, highest first | boats | GROUP BY boat_name; SELECT avg(asking_price / berths); ORDER BY avg(asking_price / berths) DESC
charter | average discount between asking and sold price | boats | SELECT avg(asking_price - sold_price)
charter | Which boats sold above the asking price? | boats | WHERE sold_price > asking_price; SELECT boat_name
charter | What is the profit per boat? | boats trips | GROUP BY boat_name; SELECT sum(income - expense)
charter | Which skipper is the most profitable? | trips | GROUP BY skipper; SELECT sum(income - expense); ORDER BY sum(income - expense) DESC; LIMIT 1
charter | expense as a percentage of income by skipper | trips | GROUP BY skipper; SELECT avg(100 * expense / income)
charter | Which trips were paid late? | trips | WHERE paid_on > due_on; SELECT trip_id
charter | How many trips were paid more than 1 day late? | trips | WHERE days(due_on, paid_on) > 1; SELECT count(*)
charter | Which trips are overdue? | trips | WHERE paid_on IS NULL; SELECT trip_id
charter | How many trips started in the second quarter of 2023? | trips | WHERE year(left_at) = 2023 AND quarter(left_at) = 2; SELECT count(*)
charter | number of trips by hour of the day | trips | GROUP BY hour(left_at); SELECT count(*)
charter | daily income | trips | GROUP BY day(left_at); SELECT sum(income)
charter | income 2022 vs 2023 | trips | WHERE year(left_at) IN (2022, 2023); GROUP BY year(left_at); SELECT sum(income)
charter | Did the average income grow from 2022 to 2023? | trips | WHERE year(left_at) IN (2022, 2023); GROUP BY year(left_at); SELECT avg(income)
charter | income by harbour 2022 vs 2023 | boats trips | WHERE year(left_at) IN (2022, 2023); GROUP BY harbour, year(left_at); SELECT sum(income)
charter | Month over month growth of income in 2023 | trips | WHERE year(left_at) = 2023; GROUP BY month(left_at); SELECT change(sum(income))
charter | running total of income per quarter | trips | GROUP BY quarter(left_at); SELECT running(sum(income))
charter | How did the average income develop by year? | trips | GROUP BY year(left_at); SELECT avg(income)
charter | Which boats have no safety equipment? | boats | WHERE without equipment of category = 'safety'; SELECT boat_name
charter | Which boats carry both a radar and a dinghy? | boats | WHERE with equipment of item = 'radar' AND with equipment of item = 'dinghy'; SELECT boat_name
charter | boats with radar but not with a dinghy | boats | WHERE with equipment of item = 'radar' AND without equipment of item = 'dinghy'; SELECT boat_name
charter | How many boats made no trips in 2023? | boats | WHERE without trips of year(left_at) = 2023; SELECT count(*)
charter | boats with more trips than Petrel | boats trips | GROUP BY boat_name; SELECT count(*); HAVING count(*) > that of boat_name = 'Petrel'
charter | Which boats earn less income than Osprey on average? | boats trips | GROUP BY boat_name; SELECT avg(income); HAVING avg(income) < that of boat_name = 'Osprey'
charter | Which boats have more trips with seasick guests than Heron? | boats trips | WHERE ask('seasick guests'); GROUP BY boat_name; SELECT count(*); HAVING count(*) > that of boat_name = 'Heron'
charter | number of trips and average income per boat | boats trips | GROUP BY boat_name; SELECT count(*), avg(income)
charter | min and max income per skipper | trips | GROUP BY skipper; SELECT min(income), max(income)
charter | What was wrong on the trips of Pia? | trips | WHERE skipper = 'Pia'; SELECT ask('What was wrong on the trips') AS answer
charter | How many boats are in Rostokc? | boats | WHERE harbour = 'Rostock'; SELECT count(*)
charter | top 2 skippers by income in each harbour | boats trips | GROUP BY harbour, skipper; SELECT sum(income); ORDER BY sum(income) DESC; LIMIT 2
charter | share of trips by skipper in percent | trips | GROUP BY skipper; SELECT share(count(*))
charter | In how many reports is a storm mentioned? | trips | WHERE ask('a storm mentioned'); SELECT count(*)
kiosk | revenue by kind | goods receipt_lines | GROUP BY kind; SELECT sum(quantity * unit_price)
kiosk | bonus as percent of wage, top 5 | cashiers | SELECT full_name, 100 * bonus / wage; ORDER BY 100 * bonus / wage DESC; LIMIT 5
kiosk | How many cashiers left? | cashiers | WHERE end_date IS NOT NULL; SELECT count(*)
kiosk | average tenure of the cashiers who left by town | cashiers | WHERE end_date IS NOT NULL; GROUP BY town; SELECT avg(days(start_date, end_date))
kiosk | Which cashiers are not in any union? | cashiers | WHERE union_name IS NULL; SELECT full_name
"""
NOT_MEANT = """
charter | What is the profit per boat? | boats trips | GROUP BY boat_name; SELECT sum(income)
charter | asking price per square metre by harbour | boats | GROUP BY harbour; SELECT avg(asking_price)
charter | Which boats have no safety equipment? | boats equipment | WHERE category <> 'safety'; SELECT boat_name
charter | Which boats carry both a radar and a dinghy? | boats equipment | WHERE item IN ('radar', 'dinghy'); SELECT boat_name
charter | boats with more trips than Petrel | boats trips | WHERE boat_name = 'Petrel'; GROUP BY boat_name; SELECT count(*)
charter | income 2022 vs 2023 | trips | SELECT sum(income)
charter | Which trips were paid late? | trips | SELECT trip_id
"""


@pytest.fixture(scope="module")
def catalogs() -> dict[str, Catalog]:
    return {name: Catalog(make()) for name, make in DATABASES.items()}


test_the_grammar_of_a_question_holds_what_it_means = holding(DATABASES, MEANT)


test_it_does_not_hold_what_the_question_excludes = not_holding(DATABASES, NOT_MEANT)


@pytest.mark.parametrize(
    ("database", "question"),
    [
        ("charter", "What is the profit margin per boat?"),
        ("kiosk", "What is the profit per kind?"),
        ("kiosk", "energy use by town"),
        ("charter", "How many trips went to Hansen?"),
        ("charter", "Who is the owner of Heron?"),
    ],
)
def test_what_the_columns_do_not_give_is_refused(
    database: str, question: str, catalogs: dict[str, Catalog], embedder: Embedder
) -> None:
    _, narrow = asked(question, catalogs[database], embedder)
    assert narrow.absent or narrow.unheard


RESULTS = (
    ("charter", "Which boats have no safety equipment?", "boats", "WHERE without equipment of category = 'safety'; SELECT boat_name",
     [("Osprey",)]),
    ("charter", "boats with radar but not with a dinghy", "boats",
     "WHERE with equipment of item = 'radar' AND without equipment of item = 'dinghy'; SELECT boat_name", [("Osprey",)]),
    ("charter", "Which boats sold above the asking price?", "boats", "WHERE sold_price > asking_price; SELECT boat_name", [("Osprey",)]),
    ("charter", "asking price per berth", "boats", "SELECT avg(asking_price / berths)", [(20000.0,)]),
    ("charter", "boats with more trips than Petrel", "boats trips",
     "GROUP BY boat_name; SELECT count(*); HAVING count(*) > that of boat_name = 'Petrel'", [("Osprey", 86)]),
    ("charter", "boats with more trips than Gannet", "boats trips",
     "WHERE year(left_at) = 2024; GROUP BY boat_name; SELECT count(*); HAVING count(*) > that of boat_name = 'Gannet'",
     [("Heron", 2), ("Osprey", 2), ("Petrel", 1)]),
    ("charter", "change of income by year", "trips", "GROUP BY year(left_at); SELECT change(count(*))",
     [(2022, 97, None, None), (2023, 98, 1, 100 / 97), (2024, 5, -93, -9300 / 98)]),
    ("charter", "running total", "trips", "GROUP BY year(left_at); SELECT running(count(*))", [(2022, 97, 97), (2023, 98, 195), (2024, 5, 200)]),
    ("charter", "best skipper in each harbour by trips", "boats trips",
     "WHERE trip_id < 6; GROUP BY harbour, skipper; SELECT count(*); ORDER BY count(*) DESC; LIMIT 1",
     [("Kiel", "Rik", 2), ("Rostock", "Pia", 2)]),
    ("kiosk", "tenure", "cashiers", "WHERE cashier_id = 4; SELECT days(start_date, end_date)", [(1337.0,)]),
)  # fmt: skip


@pytest.mark.parametrize(("database", "question", "tables", "rest", "rows"), RESULTS, ids=[case[1] for case in RESULTS])
def test_the_lines_become_statements_that_give_these_rows(
    database: str, question: str, tables: str, rest: str, rows: list[tuple[object, ...]], catalogs: dict[str, Catalog]
) -> None:
    scope = discover(question, catalogs[database], None)
    cursor = catalogs[database].cursor
    for node in nodes_of(whole(tables, rest, scope), scope, question)["nodes"]:
        statement = node.get("uql") or node["body"]
        cursor.execute(f"CREATE OR REPLACE TEMP TABLE {node['name']} AS {statement}")
    found = cursor.execute(f"FROM {node['name']}").fetchall()
    assert sorted(found, key=str) == sorted(rows, key=str)


def test_a_word_is_read_as_a_name_only_where_a_letter_is_missing_doubled_or_misplaced(
    catalogs: dict[str, Catalog],
) -> None:
    sources = list(discover("", catalogs["charter"], None).sources.values())
    for said, meant in (
        ("boats in Flensbrug", "boats in Flensburg"),
        ("boats in Rostcok", "boats in Rostock"),
        ("all equipmnt", "all equipment"),
        ("boats in Rostick", "boats in Rostick"),  # another letter makes another name
        ("boats of Oprey", "boats of Osprey"),
        ("trips in tripe", "trips in tripe"),
        ("all that they equip", "all that they equip"),
        ("Which skippers repor about it?", "Which skippers repor about it?"),  # an ending is no misspelling
    ):
        assert well_spelt(said, sources, ()) == meant

"""The judged questions: their files, their references, how an answer is judged, and the reader of labels."""

from __future__ import annotations

import os
from collections import Counter
from itertools import groupby
from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from llm.scripted import Scripted

from uql.benchmarks.nl import judged, plain_columns
from uql.benchmarks.nl.plain_columns import Asked, Row, same
from uql.llm.providers.base import Answer, Request
from uql.llm.questions import Cell, Predicate, Row as RowShown, Write

SHARED = Path(os.environ.get("UQL_DATA", "../shared/data")).resolve()
with_data = pytest.mark.skipif(not (SHARED / "nvbench").is_dir(), reason="no data: set UQL_DATA")


def place_of(asked: Asked) -> str:
    return asked.id.rpartition("-")[0]


@pytest.mark.parametrize(("name", "least", "places"), [("judged_plain", 300, 20), ("judged_reading", 100, 6)])
def test_a_set_has_its_numbers_and_a_half_that_is_held_back(name: str, least: int, places: int) -> None:
    asked = list(plain_columns.questions(name))
    count = Counter(place_of(one) for one in asked)
    assert len(asked) >= least and len(count) >= places and max(count.values()) <= 25
    assert len({one.id for one in asked}) == len(asked) == len({(place_of(one), one.text) for one in asked})
    held = [one.id for one in plain_columns.questions(name, "held-back")]
    free = [one.id for one in plain_columns.questions(name, "open")]
    assert sorted(held + free) == sorted(one.id for one in asked) and abs(len(held) - len(free)) <= len(asked) // 20
    assert all(one.source == ("nvbench" if name == "judged_plain" else "labels") for one in asked)


@pytest.mark.thorough
@with_data
@pytest.mark.parametrize("name", ["judged_plain", "judged_reading", "typed_reading"])
def test_the_references_run_and_have_rows(name: str, tmp_path: Path) -> None:
    asked = sorted(plain_columns.questions(name), key=place_of)
    for _, here in groupby(asked, place_of):
        of_place = list(here)
        with plain_columns.truths(of_place[0], SHARED, tmp_path) as database:
            for one in of_place:
                first, *others = plain_columns.references(database, one)
                assert first.num_rows and all(other.num_rows for other in others), one.id
                assert not any(column.null_count for column in first.columns), one.id
                assert same(first, first, one), one.id


PLANS = {  # question's words → a statement that reads, for each collection
    "movie_reviews": (
        "What share of the reviews of Joker is positive?",
        "SELECT avg(CASE WHEN ask('the critic liked the movie') THEN 1.0 ELSE 0.0 END) AS share "
        "FROM reviews r JOIN movies m ON r.movie = m.id WHERE m.title = 'Joker'",
    ),
    "airline_tweets": (
        "How many tweets of February 22, 2015 are positive?",
        "SELECT count(*) AS n FROM tweets WHERE CAST(created AS DATE) = DATE '2015-02-22' AND ask('the tweet praises the airline')",
    ),
    "banking77": (
        "How many messages are about a declined card payment?",
        "SELECT count(*) AS n FROM messages WHERE ask('the message is about a declined card payment')",
    ),
    "rotowire": (
        "Names of players who scored more than 35 points in a game, without repeats",
        "SELECT DISTINCT p.name FROM players_to_games p JOIN reports r ON p.game_id = r.game_id "
        "WHERE ask('{p.name} scored more than 35 points, says {r.report}')",
    ),
    "countries_flags": (
        "Which countries became independent in 1960?",
        "SELECT name FROM profiles WHERE ask('{name} became independent in 1960, says {background}')",
    ),
    "artwork": (
        "How many paintings of each genre show no person?",
        "SELECT genre, count(*) AS n FROM paintings WHERE NOT ask('{image} shows a person') GROUP BY genre",
    ),
}


@pytest.mark.one_in(2)
@with_data
@pytest.mark.parametrize("place", sorted(judged.PLACES))
def test_the_reader_of_labels_gives_the_reference(place: str) -> None:
    text, sql = PLANS[place]

    def script(request: Request, number: int) -> list[Answer]:
        node = {"kind": "uql", "name": "found", "sql": sql}
        replies: dict[str, Any] = {"planner": {"cannot": "", "nodes": [node]}}
        return [Answer(replies.get(q.task, {}) if isinstance(q, Write) else None) for q in request.questions]

    (asked,) = (one for one in plain_columns.questions("judged_reading") if one.text == text and place_of(one) == place)
    (row,) = plain_columns.run(Scripted(script), ["default"], name="judged_reading", only=[asked.id], shared=SHARED)
    assert (row.verdict, row.beside) == ("right", False), row
    assert row.set == "judged_reading" and row.model == "scripted" and row.calls > 0


SAID = [  # collection, a text as a planner may write it, the same of the labels, the table that is read
    ("movie_reviews", "the critic did not like the movie", "sentiment = 'negative'", "reviews"),
    ("airline_tweets", "the tweet complains about lost or damaged luggage", "reason LIKE '%Luggage'", "tweets"),
    ("airline_tweets", "positive, and about Southwest", "sentiment = 'positive' AND airline = 'Southwest'", "tweets"),
    ("banking77", "contactless payment is not working", "intent = 'contactless_not_working'", "messages"),
    ("countries_flags", "{name} became independent between 1955 and 1959", "independence_year // 5 = 391", "profiles"),
    ("countries_flags", "{background}: independence before 1900", "independence_year < 1900", "profiles"),
    ("countries_flags", "the flag shows no star", "flag_star <> 'yes'", "flags"),
    ("artwork", "the picture shows exactly two babies", "babies = 2", "paintings"),
    ("rotowire", "{name} scored 40 points or more", "points >= 40", "players_to_games JOIN reports USING (game_id)"),
    ("rotowire", "a final score below 90", "total_points < 90", "teams_to_games JOIN reports USING (game_id)"),
]


@with_data
def test_the_reader_of_labels_understands_texts_in_other_words(tmp_path: Path) -> None:
    places = {name: judged.PLACES[name](SHARED, tmp_path) for name in dict.fromkeys(name for name, *_ in SAID)}
    for name, text, truth, table in SAID:
        reader, shown = places[name].reader(), ("name", "report", "text", "background", "image")
        with duckdb.connect() as database:
            for given, rows in places[name].truths.items():
                database.register(given, rows)
            found = (
                database.sql(f"SELECT *, coalesce({truth}, false) AS said FROM {table}").to_arrow_table().to_pylist()
            )
        said = [
            reader._said(
                Predicate(text), RowShown(tuple(Cell(key, row[key]) for key in shown if row.get(key) is not None))
            )
            for row in found
        ]
        assert [one.value for one in said] == [row["said"] for row in found], (name, text)
        assert any(row["said"] for row in found), (name, text)


def asked_for(**given: Any) -> Asked:
    return Asked("x-1", given.pop("source", "nvbench"), "x", "which?", "SELECT 1", **given)


def test_rows_are_the_same_in_any_order_of_rows_and_columns() -> None:
    wanted = pa.table({"name": ["a", "b"], "n": [1, 2]})
    turned = pa.table({"n": [2.0000000001, 1.0], "who": ["b", "a "]})
    assert same(turned, wanted, asked_for())
    assert not same(turned, wanted, asked_for(ordered=True))
    assert not same(pa.table({"n": [1, 2], "name": ["b", "a"]}), wanted, asked_for())
    wider = pa.table({"name": ["a", "b"], "n": [1, 2], "more": [3, 4]})
    assert not same(wider, wanted, asked_for()) and same(wider, wanted, asked_for(), wider=True)


def test_repeats_count_but_where_texts_are_read() -> None:
    once, twice = pa.table({"name": ["a"]}), pa.table({"name": ["a", "a"]})
    assert not same(twice, once, asked_for())
    assert same(twice, once, asked_for(source="labels"))


def test_questions_are_drawn_by_chance_or_spread() -> None:
    asked = list(plain_columns.questions("judged_plain", "open"))
    drawn = plain_columns.chosen(asked, 20, 7)
    assert drawn == plain_columns.chosen(asked, 20, 7) != plain_columns.chosen(asked, 20, 8)
    assert len(drawn) == 20 and [asked.index(one) for one in drawn] == sorted(asked.index(one) for one in drawn)
    assert plain_columns.chosen(asked, 2, None) == [asked[0], asked[len(asked) // 2]]
    assert plain_columns.chosen(asked, None, 3) == asked


def test_rows_are_written_and_read_and_reported(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [
        Row("default", "x-1", "right", 1.0, 2, "SELECT 1", "1", (), "m", "judged_plain", False, 300, 40),
        Row("default", "x-2", "wrong", 3.0, 4, "SELECT 2", "2", ("a note",), "m", "judged_plain", True, 20, 60),
    ]
    for row in rows:
        plain_columns.write(path, row)
    assert plain_columns.read(path) == rows
    assert (
        plain_columns.report(rows).splitlines()[-1]
        == "| judged_plain | m | default | 2 | 1 | 0 + 0 | 1 | 2.0 | 3.0 | 160 + 50 | 1 |"
    )


def test_the_command_says_that_there_is_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = plain_columns.main(["--set", "judged_plain", "--model", "local", "--data", str(tmp_path)])
    assert code == 2 and "set UQL_DATA or --data" in capsys.readouterr().err

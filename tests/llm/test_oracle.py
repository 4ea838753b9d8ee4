"""The oracle: answers from labels, found by what is shown."""

from __future__ import annotations

import json
from pathlib import Path

import duckdb
import pytest
from scripted import row

from uql.base.errors import ConfigError, DataError, UQLError
from uql.base.settings import Settings
from uql.llm.gate import Gate
from uql.llm.providers.oracle_rows import Rows, rows_of
from uql.llm.questions import NONE, Cell, Choice, Compare, Extract, Predicate, Row, Score, Summary, Write

TOML = """
data = "data.parquet"
labels = "labels.parquet"
key = "id"
{more}
[answers]
"the review is positive" = "sentiment = 'pos'"
"the topic" = "topic"
"the stars" = "stars"
"they agree" = "a.sentiment = b.sentiment"
"in {{city}} it is good" = "stars > 2"
"broken" = "no_such_column"
[examples]
"the review is positive" = {{ yes = ["lovely"], no = ["awful", "dull"] }}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    data = [(i, f"review {i}", "Rome" if i % 2 else "Bonn") for i in range(200)] + [
        (200, "same text", "Rome"),
        (201, "same text", "Bonn"),
    ]
    labels = [(i, "pos" if i % 3 == 0 else "neg", ["film", "book", None][i % 3], i % 5 + 1) for i in range(202)]
    con = duckdb.connect()
    con.execute(
        "CREATE TABLE d (id INTEGER, text VARCHAR, city VARCHAR);"
        "CREATE TABLE l (id INTEGER, sentiment VARCHAR, topic VARCHAR, stars INTEGER)"
    )
    con.executemany("INSERT INTO d VALUES (?, ?, ?)", data)
    con.executemany("INSERT INTO l VALUES (?, ?, ?, ?)", labels)
    con.execute(f"COPY d TO '{tmp_path}/data.parquet'; COPY l TO '{tmp_path}/labels.parquet'")
    (tmp_path / "o.toml").write_text(TOML.format(more=""))
    return tmp_path


def opened(folder: Path, more: str | None = None) -> Gate:
    if more is not None:
        (folder / "o.toml").write_text(TOML.format(more=more))
    return Gate.open(Settings(model=f"oracle:{folder}/o.toml", ledger=":memory:", budget="all"))


def test_each_kind_of_question_is_answered_from_the_labels(run, folder: Path) -> None:
    async def go() -> None:
        async with opened(folder) as g:
            rows = [row("review 0"), row("review 1"), row("review 2"), row(None)]
            assert (await g.ask(Predicate("the review is positive"), rows)).values == [True, False, False, None]
            assert (await g.ask(Choice("the topic", ("Film", "poem")), rows)).values == ["Film", NONE, NONE, None]
            assert (await g.ask(Extract("the topic"), rows)).values == ["film", "book", None, None]
            assert (await g.ask(Score("the stars"), rows)).values == [1.0, 2.0, 3.0, None]
            assert (
                await g.ask(
                    Predicate("in {city} it is good"), [row("review 3", city="Rome"), row("review 0", city="Bonn")]
                )
            ).values == [True, False]

    run(go())


def test_a_row_may_be_shown_with_any_of_its_columns(run, folder: Path) -> None:
    async def go() -> None:
        async with opened(folder) as g:
            whole = Row((Cell("text", "same text"), Cell("city", "Bonn")))
            assert (await g.ask(Predicate("the review is positive"), [whole])).values == [True]
            renamed = Row((Cell("body", "review 9"),))
            assert (await g.ask(Predicate("the review is positive"), [renamed])).values == [True]
            with pytest.raises(DataError, match="same content"):
                await g.ask(Predicate("the review is positive"), [row("same text")])
            with pytest.raises(DataError, match="not in the oracle's data"):
                await g.ask(Predicate("the review is positive"), [row("never seen")])

    run(go())


def pair(one: str, two: str) -> Row:
    return Row((Cell("text", one, "x"), Cell("text", two, "y")))


def test_pairs_and_comparisons(run, folder: Path) -> None:
    async def go() -> None:
        async with opened(folder) as g:
            said = await g.ask(Predicate("they agree"), [pair("review 0", "review 3"), pair("review 0", "review 1")])
            assert said.values == [True, False]
            assert (
                await g.ask(Compare("the stars"), [pair("review 0", "review 3"), pair("review 3", "review 0")])
            ).values == ["y", "x"]

    run(go())


def test_a_taxonomy_holds_the_values_of_the_rows_shown_in_the_shape_wanted(run, folder: Path) -> None:
    named = {"type": "object", "properties": {"groups": {"type": "array", "items": {"type": "object", "properties": {
        "name": {"type": "string"}, "description": {"type": "string"}}}}}}  # fmt: skip

    async def go() -> None:
        async with opened(folder) as g:
            shown = tuple(row(f"review {i}") for i in (0, 1, 2, 3))
            assert (await g.ask(Write("the topic", task="taxonomy", shown=shown), [Row()])).values == ["film\nbook"]
            said = await g.ask(Write("the topic", task="taxonomy", shown=shown, schema=json.dumps(named)), [Row()])
            assert [group["name"] for group in said.values[0]["groups"]] == ["film", "book"]
            examples = {
                "type": "object",
                "properties": {s: {"type": "array", "items": {"type": "string"}} for s in ("yes", "no")},
            }
            said = await g.ask(Write("the review is positive", task="examples", schema=json.dumps(examples)), [Row()])
            assert said.values == [{"yes": ["lovely"], "no": ["awful", "dull"]}]
            summary = Summary("the mood", shown=shown)
            assert (await g.ask(summary, [Row()])).values == (await g.ask(summary, [Row()])).values
            assert g.cost.calls == 4

    run(go())


def test_the_share_of_wrong_answers_is_fixed_by_the_seed(run, folder: Path) -> None:
    rows = [row(f"review {i}") for i in range(200)]

    async def wrong(more: str) -> list[int]:
        async with opened(folder, more) as g:
            said = await g.ask(Predicate("the review is positive"), rows)
            return [i for i, v in enumerate(said.values) if v != (i % 3 == 0)]

    async def go() -> None:
        assert await wrong("error = 0.0") == []
        first = await wrong("error = 0.2\nseed = 1")
        assert 20 <= len(first) <= 60 and first == await wrong("error = 0.2\nseed = 1") != await wrong(
            "error = 0.2\nseed = 2"
        )

    run(go())


def test_latency_price_and_tokens_are_those_of_a_model(run, folder: Path) -> None:
    async def go() -> None:
        async with opened(folder, "latency_s = 0.02\nprice = { input = 1.0, output = 2.0 }") as g:
            await g.ask(Predicate("the review is positive"), [row("review 0")])
            assert g.cost.seconds >= 0.02 and g.cost.usd > 0 and g.cost.input_tokens > 8

    run(go())


@pytest.mark.parametrize(
    ("more", "says"),
    [
        ("error = 2.0", "share"), ("error = -1", "number"), ("colour = 1", "colour"), ("latency_s = 'x'", "latency_s"),
        ("key = 'a'", "cannot be read"),
    ],
)  # fmt: skip
def test_a_faulty_file_is_a_clear_error(run, folder: Path, more: str, says: str) -> None:
    async def go() -> None:
        async with opened(folder, more) as g:
            with pytest.raises(UQLError, match=says):
                await g.ask(Predicate("the review is positive"), [row("review 0")])

    run(go())


def test_an_unknown_text_names_the_file_and_the_texts_it_knows(run, folder: Path) -> None:
    async def go() -> None:
        async with opened(folder) as g:
            with pytest.raises(ConfigError, match=r"o\.toml has no answer for 'the mood'[\s\S]*the review is positive"):
                await g.ask(Predicate("the mood"), [row("review 0")])
            with pytest.raises(ConfigError, match="not SQL over the labels"):
                await g.ask(Predicate("broken"), [row("review 0")])

    run(go())


def test_labels_with_a_key_twice_are_an_error_of_the_file(run, folder: Path) -> None:
    con = duckdb.connect()
    con.execute(
        f"COPY (SELECT * FROM '{folder}/labels.parquet' UNION ALL SELECT 5, 'pos', 'film', 1) TO '{folder}/two.parquet'"
    )
    text = TOML.format(more="").replace("labels.parquet", "two.parquet")
    (folder / "o.toml").write_text(text)

    async def go() -> None:
        async with opened(folder) as g:
            with pytest.raises(DataError, match="more than one row"):
                await g.ask(Predicate("the review is positive"), [row("review 0")])

    run(go())


def test_the_rows_are_kept_until_a_file_of_theirs_changes(folder: Path) -> None:
    def opened_rows() -> Rows:
        return rows_of(folder / "o.toml", "data.parquet", "labels.parquet", "id")

    before = opened_rows()
    assert opened_rows() is before
    con = duckdb.connect()
    con.execute(f"CREATE TABLE l AS SELECT * REPLACE ('pos' AS sentiment) FROM '{folder}/labels.parquet'")
    con.execute(f"COPY l TO '{folder}/labels.parquet'")
    assert before.evaluate("sentiment = 'pos'").count(True) < 202
    assert opened_rows().evaluate("sentiment = 'pos'").count(True) == 202

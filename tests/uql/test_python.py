"""The Python surface: results and their reasons, DuckDB's verbs, queries made by calls, asyncio, threads, data frames."""

from __future__ import annotations

import asyncio
import datetime as dt
import re
import threading
from dataclasses import dataclass
from datetime import date
from enum import Enum
from pathlib import Path
from typing import Literal

import duckdb
import numpy as np
import pytest
from hash_model import HashModel

import uql
from uql.api.sem import duckdb_type
from uql.base.errors import BindError, DataError
from uql.engine.provenance import Why

POSITIVE = """SELECT id, "the mood" AS mood FROM reviews WHERE "the review is positive" ORDER BY id"""


@pytest.fixture
def con(world: Path) -> uql.Connection:
    made = uql.connect(model="oracle:oracle.toml", ledger=":memory:")
    made.sql("CREATE TABLE reviews AS FROM 'reviews.parquet'")
    return made


# ------------------------------------------------------------------------------------------------------------------ why
def test_a_row_says_why(con: uql.Connection) -> None:
    why = con.uql(POSITIVE).why(1)
    assert [part.clause for part in why.evidence] == ["the review is positive", "the mood"]
    first, second = why.evidence
    assert first.value is True
    assert first.probability == 1.0
    assert second.value == "pos"
    assert first.shown == (("text", "The actors are a delight and so is the music, warmly recommended."),)
    assert "the review is positive" in first.prompt
    assert "The actors are a delight" in first.prompt
    assert first.raw == '{"v":true,"p":1.0}'
    assert first.model.startswith("oracle:oracle.toml")
    assert len(first.ledger_id) == 40
    assert first.input_tokens
    assert first.ledger_id in str(why)


def test_the_ledger_id_is_a_key_of_the_ledger(own_world: Path) -> None:
    from uql.llm.ledger import Ledger

    with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger="ledger.sqlite") as con:
        part = con.uql(POSITIVE).why(0).evidence[0]
    with Ledger("ledger.sqlite") as ledger:
        key = bytes.fromhex(part.ledger_id)
        assert ledger.answers([key])[key].value is True


def test_a_group_shows_rows_behind_it(con: uql.Connection) -> None:
    result = con.uql(
        'SELECT stars, COUNT(*) AS n FROM reviews WHERE "the review is positive" GROUP BY stars ORDER BY n'
    )
    assert result.fetchall() == [(4, 1), (5, 2)]
    why = result.why(1)
    assert why.rows == 2
    assert {part.shown[0][1][:5] for part in why.evidence} == {"A joy", "Funny"}


def test_an_aggregate_over_all_rows_shows_those_asked(con: uql.Connection) -> None:
    why = con.uql('SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"').why(0)
    assert why.rows == 6
    assert [part.value for part in why.evidence] == [True, False, True, False, True, False]


def test_a_count_says_how_many_answers_it_leaves_out_and_in_python_where_they_are(con: uql.Connection) -> None:
    whole = con.uql('SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"').why(0)
    several = Why(0, whole.evidence * 5, rows=5)
    assert str(several).endswith("answers more") and repr(several).endswith("answers more: in .evidence")


def test_a_row_without_an_answer_says_why_not(world: Path) -> None:
    with uql.connect(model="oracle:forgetful.toml", ledger=":memory:") as con:
        part = con.uql("""SELECT id, "the review is positive"::BOOLEAN AS p FROM 'reviews.parquet' ORDER BY id""").why(
            4
        )
    assert part.evidence[0].value is None
    assert "NULL" in part.evidence[0].failure
    assert "no answer" in str(part)


def test_plain_rows_have_no_reason_and_there_is_no_row_beyond_the_last(con: uql.Connection) -> None:
    assert "no model" in str(con.uql("SELECT 1 AS a").why(0))
    with pytest.raises(IndexError):
        con.uql("SELECT 1 AS a").why(1)
    with pytest.raises(DataError, match="UQL515"):
        con.uql(POSITIVE).why(3)


# ---------------------------------------------------------------------------------------------------------------- verbs
def test_verbs_work_on_the_rows_and_ask_nobody(con: uql.Connection) -> None:
    events: list[str] = []
    result = con.uql(POSITIVE)
    result.run()
    con.on_event(lambda event: events.append(event.kind))
    assert result.filter("id > 1").order("id DESC").project("id").fetchall() == [(5,), (3,)]
    assert result.limit(1, 1).fetchall() == [(3, "pos")]
    assert result.aggregate("mood, count(*) AS n", "mood").fetchall() == [("pos", 3)]
    assert result.select("id", "id * 2 AS twice").limit(1).fetchall() == [(1, 2)]
    assert sorted(result.union(result).fetchall()) == sorted(result.fetchall() * 2)
    assert result.union(result).distinct().order("id").fetchall() == result.fetchall()
    assert result.except_(result.filter("id = 1")).order("id").fetchall() == [(3, "pos"), (5, "pos")]
    assert result.intersect(result.filter("id = 1")).fetchall() == [(1, "pos")]
    assert result.query("t", "SELECT max(id) FROM t").fetchall() == [(5,)]
    assert result.relation().filter("id = 3").fetchall() == [(3, "pos")]
    assert events == []


def test_a_join_takes_results_relations_and_frames(con: uql.Connection) -> None:
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    data = {"id": [1, 3], "name": ["Ada", "Bo"]}
    others = [
        con.uql("SELECT 1 AS id, 'Ada' AS name UNION ALL SELECT 3, 'Bo'"),
        con.sql("SELECT * FROM (VALUES (1, 'Ada'), (3, 'Bo')) t(id, name)"),
        pandas.DataFrame(data),
        polars.DataFrame(data),
        polars.DataFrame(data).to_arrow(),
    ]
    result = con.uql(POSITIVE)
    for other in others:
        joined = result.join(other, "id").order("id")
        assert joined.fetchall() == [(1, "pos", "Ada"), (3, "pos", "Bo")]
    named = result.join(others[0], "l.id = r.id AND r.name = 'Bo'").project("name")
    assert named.fetchall() == [("Bo",)]


def test_a_verb_is_lazy_and_keeps_the_interval_and_the_cost(con: uql.Connection) -> None:
    result = con.uql('SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive" WITH (budget = 4)')
    later = result.filter("n_high >= 0")
    assert not result.has_run
    assert later.columns == ["n", "n_low", "n_high"]
    assert later.cost.calls == 4
    assert not later.exact
    assert later.explain().startswith("filter n_high >= 0\n  ")


def test_a_wrong_verb_is_an_error_in_words(con: uql.Connection) -> None:
    with pytest.raises(DataError, match="nope"):
        con.uql(POSITIVE).filter("nope = 1").fetchall()


# -------------------------------------------------------------------------------------------------------- made by calls
@pytest.mark.parametrize(
    ("made", "text"),
    [
        (
            lambda t: t.where(uql.sem("the review is positive")).select("id", m=uql.sem("the mood", str)).limit(2),
            'SELECT id, "the mood"::VARCHAR AS m FROM reviews WHERE "the review is positive" LIMIT 2',
        ),
        (
            lambda t: t.where("stars > 1", "NOT id = 3").where(uql.sem("the review is positive")).order_by("id DESC"),
            'SELECT * FROM reviews WHERE stars > 1 AND NOT id = 3 AND "the review is positive" ORDER BY id DESC',
        ),
        (
            lambda t: t.group_by(m=uql.sem("the mood")).select("m", n="COUNT(*)").options(budget=64),
            'SELECT m, COUNT(*) AS n FROM reviews GROUP BY "the mood" AS m WITH (budget = 64)',
        ),
        (
            lambda t: (
                t.join("labels", "reviews.id = labels.id")
                .where("sentiment = 'pos'")
                .select("text")
                .distinct()
                .order_by("text")
            ),
            "SELECT DISTINCT text FROM reviews INNER JOIN labels ON reviews.id = labels.id WHERE sentiment = 'pos' ORDER BY text",
        ),
        (
            lambda t: t.order_by(uql.sem("how good it is")).limit(3, 1),
            'SELECT * FROM reviews ORDER BY "how good it is" LIMIT 3 OFFSET 1',
        ),
    ],
)
def test_a_query_made_by_calls_has_the_plan_of_its_text(made: object, text: str, con: uql.Connection) -> None:
    con.sql("CREATE TABLE labels AS FROM 'labels.parquet'")
    query = made(con.table("reviews"))  # type: ignore[operator]
    written = con.uql(text.replace('"the', 'PROMPT "the').replace('"how', 'PROMPT "how'))
    assert query.explain() == written.explain()
    assert query.fetchall() == con.uql(text).fetchall()


def test_calls_leave_the_query_before_them_alone(con: uql.Connection) -> None:
    reviews = con.table("reviews")
    assert len(reviews.where("id = 1")) == 1
    assert len(reviews) == 6
    assert reviews.filter("id < 4").filter("id > 1").count().fetchall() == [(2,)]
    assert reviews.where("id < 3").to("few").fetchall() == con.uql("SELECT * FROM few").fetchall()


@pytest.mark.parametrize(
    ("made", "text"),
    [
        (lambda t: t.limit(3).where("id > 2"), "FROM (FROM reviews LIMIT 3) WHERE id > 2"),
        (lambda t: t.limit(3).where("reviews.id > 2"), "FROM (FROM reviews LIMIT 3) WHERE id > 2"),
        (lambda t: t.limit(3).order_by("id DESC"), "FROM (FROM reviews LIMIT 3) ORDER BY id DESC"),
        (lambda t: t.limit(3).agg(n="COUNT(*)"), "SELECT 3"),
        (lambda t: t.limit(3).select("count(*)"), "SELECT 3"),
        (lambda t: t.select("count(*) AS n").where("n > 6"), "SELECT 7 LIMIT 0"),
        (lambda t: t.limit(1).select("(SELECT count(*) FROM reviews)", "count(*) OVER ()"), "SELECT 6, 1"),
        (lambda t: t.limit(2).select("id", "stars").limit(1), "SELECT id, stars FROM reviews LIMIT 1"),
        (
            lambda t: t.select("id", "stars").distinct().select("stars").order_by("stars"),
            "SELECT stars FROM reviews ORDER BY 1",
        ),
        (lambda t: t.select("id").limit(2).limit(4), "SELECT id FROM reviews LIMIT 2"),
        (
            lambda t: t.limit(3).group_by("stars").count(),
            "SELECT stars, count(*) FROM (FROM reviews LIMIT 3) GROUP BY ALL",
        ),
        (lambda t: t.group_by("stars").count().count(), "SELECT count(DISTINCT stars) FROM reviews"),
        (
            lambda t: t.group_by("stars").count().where("n > 1").order_by("stars"),
            "SELECT stars, count(*) AS n FROM reviews GROUP BY stars HAVING n > 1 ORDER BY stars",
        ),
        (
            lambda t: t.group_by("stars").order_by("stars DESC").count(),
            "SELECT stars, count(*) FROM reviews GROUP BY stars ORDER BY stars DESC",
        ),
        (lambda t: t.select("stars").distinct().agg(n="COUNT(*)"), "SELECT count(DISTINCT stars) FROM reviews"),
        (
            lambda t: t.where("id < 3").join("many", "many.k = reviews.id", how="right").select("k").order_by("k"),
            "SELECT k FROM many ORDER BY k",
        ),
        (lambda t: t.where("id < 3").options(budget=1).options(budget=9).count(), "SELECT 2"),
        (
            lambda t: t.select("id", stars="-stars").where("stars < -3").order_by("id"),
            "SELECT id, -stars FROM reviews WHERE stars > 3 ORDER BY id",
        ),
        (lambda t: t.select(stars="0").group_by("stars").count(), "SELECT 0, 6"),
        (lambda t: t.select(stars="0").agg(n="sum(stars)"), "SELECT 0"),
        (lambda t: t.select("id").select("*").order_by("id"), "SELECT id FROM reviews ORDER BY id"),
        (
            lambda t: t.select("id", up="stars + 1").select("id", "up").order_by("id"),
            "SELECT id, stars + 1 FROM reviews ORDER BY id",
        ),
        (
            lambda t: t.select("id", n="row_number() OVER (ORDER BY id)").where("id > 4").order_by("id"),
            "SELECT id, id FROM reviews WHERE id > 4 ORDER BY id",
        ),
        (
            lambda t: t.select("id", k="id - 1").join("many", "many.k = reviews.k", how="semi").select("reviews.id"),
            "SELECT id FROM reviews WHERE id < 5 ORDER BY id",
        ),
        (
            lambda t: (
                t.join("many", "many.k = reviews.id", how="anti").distinct().join("many", "many.k < reviews.id").count()
            ),
            "SELECT 4 * 3",
        ),
    ],
)
def test_a_call_works_on_the_rows_so_far(made: object, text: str, con: uql.Connection) -> None:
    con.sql("CREATE TABLE many AS SELECT range AS k FROM range(4)")
    assert made(con.table("reviews")).fetchall() == con.sql(text).fetchall()  # type: ignore[operator]


@pytest.mark.parametrize(
    ("made", "message"),
    [
        (lambda t: t.join("reviews", "true", how="sideways"), "there is no join 'sideways'"),
        (lambda t: t.order_by("id LIMIT 1"), "more than keys"),
        (lambda t: t.select("DISTINCT stars"), "more than an expression"),
        (lambda t: t.where("id > 1 QUALIFY true"), "more than an expression"),
    ],
)
def test_what_a_call_would_leave_out_is_an_error(made: object, message: str, con: uql.Connection) -> None:
    with pytest.raises(BindError, match=message):
        made(con.table("reviews"))  # type: ignore[operator]
    with pytest.raises(TypeError):
        con.table("reviews").limit(2.7)  # type: ignore[arg-type]


def test_parameters_are_what_duckdb_takes_them_for(con: uql.Connection) -> None:
    zone = dt.timezone(dt.timedelta(hours=2))
    for value in (dt.time(1, 2, tzinfo=zone), {"a": 1, "b": ["x", None]}, bytearray(b"a\xff"), memoryview(b"bc")):
        want = con.execute("SELECT $x, typeof($x)", {"x": value}).fetchall()
        assert con.uql("SELECT $x, typeof($x)", x=value).fetchall() == want
        asked = 'SELECT $x, typeof($x) FROM reviews WHERE "the review is positive" LIMIT 1'
        assert con.uql(asked, x=value).fetchall() == want
    for odd in ("half \ud800", {1: 2}, {}):
        with pytest.raises(BindError, match="not a constant"):
            con.uql("SELECT $x", x=odd).fetchall()


def test_a_file_a_dotted_name_and_a_frame_may_be_the_table(con: uql.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    mine = pandas.DataFrame({"a": [1, 2]})
    assert con.table("reviews.parquet").select("count(*) AS n").fetchall() == [(6,)]
    assert con.table("main.reviews").limit(1).select("id").fetchall() == [(1,)]
    assert con.table("mine").where("a > 1").fetchall() == [(2,)]
    del mine


def test_a_frame_in_the_place_of_its_name_is_answered_with_the_name(con: uql.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    mine = pandas.DataFrame({"id": [1, 2]})
    for wrong in (lambda: con.table(mine), lambda: con.table("reviews").join(mine, on="true")):
        with pytest.raises(BindError, match="goes by the name of its variable"):
            wrong()


@pytest.mark.parametrize(
    ("call", "instead"),
    [("sem_filter", r"\.where\(uql\.sem"), ("head", r"\.limit\(n\)"), ("nope", "its calls are agg")],
)
def test_a_call_of_another_library_is_answered_with_that_of_a_query(
    con: uql.Connection, call: str, instead: str
) -> None:
    with pytest.raises(AttributeError, match=instead):
        getattr(con.table("reviews"), call)
    assert not hasattr(con.table("reviews"), call)


def test_what_is_no_single_expression_is_refused(con: uql.Connection) -> None:
    for wrong in ("a, b", "a FROM b", "a LIMIT 1"):
        with pytest.raises(BindError):
            con.table("reviews").where(wrong)


class Mood(Enum):
    GOOD = "good"
    BAD = "bad"


@dataclass
class Person:
    name: str
    born: date


@pytest.mark.parametrize(
    ("python", "duckdb_name"),
    [
        (str, "VARCHAR"),
        (int, "BIGINT"),
        (float | None, "DOUBLE"),
        (list[int], "BIGINT[]"),
        (Literal["a", "b'c"], "ENUM('a', 'b''c')"),
        (["a", "b'c"], "ENUM('a', 'b''c')"),
        (Mood, "ENUM('good', 'bad')"),
        (Person, 'STRUCT("name" VARCHAR, "born" DATE)'),
        ("DECIMAL(10,2)", "DECIMAL(10,2)"),
    ],
)
def test_python_types_are_types_of_duckdb(python: object, duckdb_name: str) -> None:
    assert duckdb_type(python) == duckdb_name
    with duckdb.connect() as con:
        con.sql(f"SELECT NULL::{duckdb_name}").fetchall()


def test_a_type_without_counterpart_is_refused() -> None:
    with pytest.raises(BindError, match="counterpart"):
        uql.sem("the thing", object)
    with pytest.raises(BindError, match="counterpart"):
        uql.sem("the thing", {"name": str})


# ------------------------------------------------------------------------------------------ asyncio, threads, parameters
def test_queries_are_awaited_while_the_loop_goes_on(con: uql.Connection) -> None:
    async def work() -> tuple[list[int], int, list[object]]:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        results = await asyncio.gather(*(con.auql(POSITIVE + " LIMIT $k", k=k) for k in (1, 2, 3)))
        rows = [row for batch in results[2].to_arrow_reader(2) for row in batch.to_pylist()]
        ticking.cancel()
        return [len(result) for result in results], ticks, rows

    sizes, ticks, rows = asyncio.run(work())
    assert sizes == [1, 2, 3]
    assert ticks > 10
    assert [row["id"] for row in rows] == [1, 3, 5]


@pytest.mark.timeout(60)
def test_a_statement_runs_where_a_loop_runs_already(con: uql.Connection) -> None:
    """As in a notebook: the statement runs in another thread than the one that holds the session."""

    async def cell() -> list[tuple[int]]:
        return con.uql('SELECT COUNT(*) FROM reviews WHERE "the review is positive"').fetchall()

    assert asyncio.run(cell()) == [(3,)]


def test_cancelling_an_awaited_query_ends_it_and_keeps_the_answers(own_world: Path) -> None:
    slow = Path("oracle.toml").read_text().replace('key = "id"', 'key = "id"\nlatency_s = 0.5')
    Path("slow.toml").write_text(slow)
    con = uql.connect("shop.duckdb", model="oracle:slow.toml", ledger="ledger.sqlite", concurrency=1)
    answered = asyncio.Event()
    query = 'SELECT id FROM reviews WHERE "the review is positive" ORDER BY id'

    async def work() -> None:
        loop = asyncio.get_running_loop()
        stop = con.on_event(lambda event: loop.call_soon_threadsafe(answered.set) if event.kind == "call" else None)
        task = asyncio.create_task(con.auql(query))
        await answered.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        stop()

    asyncio.run(work())
    result = con.uql(query)
    assert result.fetchall() == [(1,), (3,), (5,)]
    assert 1 <= result.cost.cached < 6
    assert result.cost.calls + result.cost.cached == 6
    con.close()


@pytest.mark.parametrize("seconds", [0, 0.02])
def test_cancelling_an_awaited_query_before_it_asks_pays_nothing(seconds: float) -> None:
    con = uql.connect(model=HashModel(), ledger=":memory:")
    con.execute("CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS body FROM range(300) t(i)")

    async def work() -> None:
        task = asyncio.create_task(con.auql('SELECT id FROM notes WHERE "it is urgent" WITH (exact)'))
        await asyncio.sleep(seconds)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(work())  # waits for its threads
    assert con.model.calls == 0
    assert con.uql('SELECT id FROM notes WHERE "it is urgent" LIMIT 2').fetchall()
    con.close()


def test_cancelling_an_awaited_query_that_waits_for_another_does_not_end_that() -> None:
    con = uql.connect(model=HashModel(), ledger=":memory:")
    con.execute("CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS body FROM range(300) t(i)")
    began = threading.Event()
    con.on_event(lambda event: began.set() if event.kind == "call" else None)

    async def work() -> uql.Result:
        running = asyncio.create_task(con.auql('SELECT id FROM notes WHERE "it is urgent" WITH (exact)'))
        await asyncio.to_thread(began.wait)
        waiting = asyncio.create_task(con.auql('SELECT id FROM notes WHERE "it is good" WITH (exact)'))
        await asyncio.sleep(0)
        waiting.cancel()
        return await running

    result = asyncio.run(work())
    assert result.exact and not result.partial
    assert con.model.calls == 300
    con.close()


def test_a_frame_of_the_caller_is_seen_by_an_awaited_query(con: uql.Connection) -> None:
    polars = pytest.importorskip("polars")

    async def work() -> list[tuple[object, ...]]:
        mine = polars.DataFrame({"a": [1, 2]})
        found = await asyncio.create_task(con.auql("SELECT sum(a) AS s FROM mine"))
        del mine
        return found.fetchall()

    assert asyncio.run(work()) == [(3,)]


def test_threads_may_share_a_result_and_a_connection(con: uql.Connection) -> None:
    shared = con.uql(POSITIVE)
    found: list[object] = []

    def look() -> None:
        found.append((shared.fetchall(), con.uql("SELECT count(*) AS n FROM reviews").fetchall()))

    threads = [threading.Thread(target=look) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    assert found == [([(1, "pos"), (3, "pos"), (5, "pos")], [(6,)])] * 6
    assert shared.cost.calls == 6 + 3


def test_parameters_reach_what_is_duckdbs_own(con: uql.Connection) -> None:
    assert con.uql("SELECT $a AS a, $b AS b", {"a": 1}, b="x").fetchall() == [(1, "x")]
    assert con.uql("FROM reviews SELECT id WHERE stars = $stars ORDER BY id", stars=5).fetchall() == [(1,), (5,)]


def test_settings_hold_within_their_block(con: uql.Connection) -> None:
    query = 'SELECT COUNT(*) AS n FROM reviews WHERE "the review is positive"'
    with con.settings(budget=4):
        assert not con.uql(query).exact
    assert con.uql(query).exact


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_frames_of_the_caller_go_by_their_name(kind: str, con: uql.Connection) -> None:
    library = pytest.importorskip(kind)
    texts = ["A joy from the first minute to the last, I would see it again."]
    mine = library.table({"text": texts}) if kind == "pyarrow" else library.DataFrame({"text": texts})
    found = con.uql('SELECT COUNT(*) AS n FROM mine WHERE "the review is positive"')
    assert found.fetchall() == [(1,)]
    del mine


def test_a_half_read_cursor_of_the_users_is_not_disturbed(world: Path) -> None:
    with duckdb.connect() as mine:
        mine.execute("CREATE TABLE reviews AS FROM 'reviews.parquet'")
        mine.execute("SELECT range FROM range(10)")
        assert mine.fetchone() == (0,)
        con = uql.attach(mine, model="oracle:oracle.toml", ledger=":memory:")
        assert con.uql(POSITIVE).fetchall() == [(1, "pos"), (3, "pos"), (5, "pos")]
        assert con.table("reviews").where("id = 1").project("id").fetchall() == [(1,)]
        assert mine.fetchmany(2) == [(1,), (2,)]
        con.uql(POSITIVE + " LIMIT 1").to_table("kept")
        con.close()
        assert mine.fetchall() == [(i,) for i in range(3, 10)]
        assert mine.sql("SELECT count(*) FROM kept").fetchall() == [(1,)]


def test_huge_integers_are_what_duckdb_makes_of_them(con: uql.Connection) -> None:
    pytest.importorskip("pandas")
    query = "SELECT sum(stars) AS s FROM reviews"
    assert con.uql(query).fetchall() == con.sql(query).fetchall() == [(18,)]
    assert isinstance(con.uql(query).fetchall()[0][0], int)
    assert con.uql(query).df().dtypes["s"] == con.sql(query).df().dtypes["s"]


def test_the_examples_of_the_page_about_python_run(own_world: Path) -> None:
    import doctest

    con = uql.connect(model="oracle:oracle.toml", ledger="ledger.sqlite")
    con.sql("CREATE TABLE reviews AS FROM 'reviews.parquet'")
    page = Path(__file__).parents[2] / "docs" / "python.md"
    failed, tried = doctest.testfile(str(page), module_relative=False, globs={"con": con, "uql": uql}, encoding="utf-8")
    assert tried > 15
    assert not failed


def test_the_same_query_again_asks_nobody_whatever_plan_is_chosen_then(own_world):
    query = 'SELECT id, "the mood" AS mood FROM reviews WHERE "the review is positive" ORDER BY id'
    for calls in (9, 0, 0):  # the second plan knows how many rows pass, and lets the mood ride with the condition
        with uql.connect("shop.duckdb", model="oracle:oracle.toml", ledger="ledger.sqlite") as con:
            result = con.uql(query)
            assert result.fetchall() == [(1, "pos"), (3, "pos"), (5, "pos")] and result.cost.calls == calls
            assert len(result.why(0).evidence) == 2


# ------------------------------------------------------------------------------------------ as one who knows DuckDB expects
def test_a_result_is_a_sequence_of_rows(con: uql.Connection) -> None:
    r = con.uql(POSITIVE)
    assert [mood for _, mood in r] == r["mood"] == ["pos"] * 3
    assert r[0] == (1, "pos") and r[-1] == (5, "pos") and r[:2] == [(1, "pos"), (3, "pos")]
    assert (3, "pos") in r and r.shape == (3, 2) and not con.uql("SELECT 1 AS one WHERE false")
    with pytest.raises(KeyError, match="no column moodx; columns: id, mood"):
        r["moodx"]
    with pytest.raises(IndexError):
        r[3]


@pytest.mark.parametrize("query", [POSITIVE, "SELECT 1 AS a"], ids=["asked", "plain"])
@pytest.mark.parametrize(
    ("method", "arguments", "said"),
    [
        ("fetchmany", (-1,), "size is a whole number from 0 on, not -1"),
        ("fetchmany", (1.5,), "not 1.5"),
        ("why", ("x",), "row is a whole number, not 'x'"),
        ("why", (1.0,), "not 1.0"),
        ("correct", ("x", True), "not 'x'"),
        ("to_arrow_reader", (0,), "batch_size is a whole number from 1 on, not 0"),
        ("limit", ("x",), "rows is a whole number"),
        ("show", (None,), "max_rows is a whole number"),
        ("bars", ("x",), "width is a whole number"),
        ("to_table", ("",), "a table is given by its name"),
    ],
)
def test_an_argument_that_a_method_cannot_take_is_said(
    con: uql.Connection, query: str, method: str, arguments: tuple[object, ...], said: str
) -> None:
    with pytest.raises(BindError, match=f"UQL200: .*{re.escape(said)}"):
        getattr(con.uql(query), method)(*arguments)


def test_a_whole_number_of_numpy_is_one(con: uql.Connection) -> None:
    r = con.uql(POSITIVE)
    assert len(r.fetchmany(np.int64(2))) == 2 and r.why(np.int64(0)).evidence and r.fetchmany(0) == []


def test_a_result_may_stand_after_from_and_wherever_arrow_is_read(con: uql.Connection) -> None:
    polars = pytest.importorskip("polars")
    r = con.uql(POSITIVE)
    assert con.uql("SELECT count(*) AS n FROM r").fetchall() == con.sql("SELECT count(*) FROM r").fetchall() == [(3,)]
    assert polars.DataFrame(r).shape == (3, 2)
    few = con.uql(  # noqa: F841 - named in FROM
        'SELECT COUNT(*) AS n FROM reviews WHERE "how good it is" > 3 WITH (budget = 4)'
    )
    reading = con.uql("SELECT n, n_low <= n AND n <= n_high AS inside FROM few")
    assert reading["inside"] == [True] and not reading.exact and "few" in reading.based_on[0]


def test_plain_sql_takes_parameters_and_the_callers_frames(con: uql.Connection) -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"x": [1, 2]})
    assert con.sql("SELECT sum(x) FROM frame WHERE x > ?", params=[1]).fetchall() == [(2,)]
    con.execute("CREATE TABLE made (x INTEGER)")
    con.execute("INSERT INTO made VALUES (?), (?)", [1, 2])
    assert con.execute("SELECT count(*) FROM made").fetchall() == [(2,)] and len(frame) == 2
    with pytest.raises(BindError, match="by name, not as a list") as error:
        con.uql("SELECT $1 AS a", [1])  # type: ignore[arg-type]
    assert error.value.code == "UQL213"


def test_a_closed_connection_says_so_and_its_results_stay(world: Path) -> None:
    con = uql.connect(model="oracle:oracle.toml", ledger=":memory:")
    con.execute("CREATE TABLE reviews AS FROM 'reviews.parquet'")
    ran, waiting = con.uql(POSITIVE), con.uql("SELECT id FROM reviews")
    assert len(ran) == 3 and "in memory, oracle:oracle.toml" in repr(con)
    con.close()
    con.close()
    assert ran.filter("id > 1").fetchall() == [(3, "pos"), (5, "pos")] and "closed" in repr(con)
    for late in (lambda: con.uql("SELECT 1"), lambda: con.sql("SELECT 1"), waiting.fetchall, lambda: con.refresh("t")):
        with pytest.raises(DataError, match="connection is closed") as error:
            late()
        assert error.value.code == "UQL506"


def test_neither_is_pickled_or_copied(con: uql.Connection) -> None:
    import copy
    import pickle

    for thing, way_out in ((con, "uql.connect"), (con.uql("SELECT 1 AS one"), r"r\.df")):
        for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
            with pytest.raises(TypeError, match=way_out):
                attempt(thing)


@pytest.mark.parametrize("run", ["sql", "execute"])
def test_duckdb_alone_says_who_answers_quoted_texts(con: uql.Connection, run: str) -> None:
    with pytest.raises(duckdb.BinderException) as error:
        getattr(con, run)('SELECT id FROM reviews WHERE "the review is positive"')
    assert any("con.uql" in note for note in error.value.__notes__)
    with pytest.raises(duckdb.BinderException) as error:
        getattr(con, run)('SELECT "nope" FROM reviews')
    assert not getattr(error.value, "__notes__", [])


@pytest.mark.parametrize(
    "value",
    [
        "DATE '20000-01-01'",
        "DATE '0101-01-01 (BC)'",
        "TIMESTAMP 'infinity'",
        "[DATE '20000-01-01']",
        "NULL::DATE",
        "TIME '24:00:00'",
        "TIME '23:59:59.999999'",
        "[{'a': TIME '24:00:00', 'b': TIME '01:02:03', 'c': INTERVAL 1 DAY}]",
        "MAP {TIME '24:00:00': [TIME '24:00:00', NULL]}",
        "array_value(TIME '24:00:00', NULL)",
    ],
)
def test_dates_and_times_that_python_cannot_hold_are_as_duckdb_gives_them(con: uql.Connection, value: str) -> None:
    query = f"SELECT {value} AS d UNION ALL SELECT NULL"
    assert con.uql(query).fetchall() == duckdb.sql(query).fetchall()


def test_a_frame_has_the_end_of_the_day_as_a_text(con: uql.Connection) -> None:
    rows = con.uql("SELECT unnest([TIME '24:00:00', TIME '01:00:00', NULL]) AS t").df()
    assert rows["t"].tolist()[:2] == ["24:00:00", "01:00:00"]


def test_a_frame_of_days_that_pandas_cannot_hold_is_an_error_in_words(con: uql.Connection) -> None:
    with pytest.raises(uql.errors.DataError, match="UQL509") as error:
        con.uql("SELECT DATE 'infinity' AS d").df()
    assert "CAST(x AS VARCHAR)" in str(error.value.help)


def test_an_interval_that_python_cannot_hold_is_an_error_in_words(con: uql.Connection) -> None:
    with pytest.raises(uql.errors.DataError, match="INTERVAL is longer than Python can hold"):
        con.uql("SELECT INTERVAL 100000000 MONTH").fetchall()
    with pytest.raises(uql.errors.DataError, match="INTERVAL is longer than Python can hold"):
        con.uql("SELECT INTERVAL 100000000 MONTH").df()

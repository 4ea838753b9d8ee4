"""Data frames, relations and parameters of Python beside texts."""

from __future__ import annotations

import pytest
from hash_model import HashModel
from labels import both

import uql
from uql.base.errors import UQLError

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
pytest.importorskip("pyarrow.parquet")
np = pytest.importorskip("numpy")
BODIES = ["A film that I shall remember", "A film that I shall forget", "No film at all, to be fair"]


@pytest.fixture
def con(labels):
    return labels.uql(budget="all")


def said(statement):
    return both(statement)[0]


def test_a_frame_changed_in_place_is_read_as_it_is_now(con, labels):
    frame = pd.DataFrame(labels.rows)[["id", "text"]]
    before = con.uql(said("SELECT id FROM frame WHERE <pos> ORDER BY id")).fetchall()
    frame["twice"] = frame.id * 2
    frame.loc[frame.id == before[0][0], "text"] = None
    assert con.uql(said("SELECT id, twice FROM frame WHERE <pos> ORDER BY id")).fetchall() == [
        (i, 2 * i) for (i,) in before[1:]
    ]


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"id": [1, 2], "text": [None, None]}),
        pl.DataFrame({"id": [1, 2], "text": [None, None]}),
        pa.table({"id": [1, 2], "text": pa.nulls(2)}),
    ],
    ids=["pandas", "polars", "arrow"],
)
def test_a_column_without_any_value_holds_texts_of_which_none_is_asked(con, frame):
    found = con.uql(said("SELECT id, <pos>::BOOLEAN AS p FROM frame ORDER BY id"))
    assert found.fetchall() == [(1, None), (2, None)]
    assert found.cost.calls == 0


def test_an_empty_frame_without_types_has_no_rows_to_ask(con):
    frame = pd.DataFrame({"id": [], "text": []})
    assert len(frame.columns) == 2
    assert con.uql(said("SELECT sum(id), count(*) FROM frame WHERE <pos>")).fetchall() == [(None, 0)]
    frame = frame.astype({"id": "int64"}).assign(words=pd.array([], dtype="string"))
    assert list(frame.dtypes)[:2] == ["int64", "float64"]
    assert con.uql(said("SELECT id, text FROM frame WHERE <pos>")).types == ["BIGINT", "DOUBLE"]


def test_a_relation_stands_after_from_with_the_rows_that_its_tables_have_now(con):
    relation = con.sql("SELECT * FROM reviews WHERE id < 10")
    assert relation.columns[0] == "id"
    before = con.uql(
        said("SELECT a.id FROM relation a JOIN relation b USING (id) WHERE <pos a.text> ORDER BY a.id")
    ).fetchall()
    con.execute(f"DELETE FROM reviews WHERE id = {before[0][0]}")
    assert con.uql(said("SELECT id FROM relation WHERE <pos> ORDER BY id")).fetchall() == before[1:]


def test_a_float_is_a_double_and_missing_values_are_null(con):
    values = [2.5, -1e-7, 1e300, pd.NaT, pd.NA, pd.Series([1.5, 2.0])]
    found = [con.uql(said("SELECT $v AS v FROM reviews WHERE <pos> LIMIT 1"), v=v) for v in values]
    assert [r.types[0] for r in found[:3]] == ["DOUBLE"] * 3
    assert [r.fetchone()[0] for r in found] == [2.5, -1e-7, 1e300, None, None, [1.5, 2.0]]


@pytest.mark.parametrize(
    "made",
    [
        lambda: pa.table({"body": BODIES, "half": pa.array(np.arange(3, dtype="float16"))}),
        lambda: pl.DataFrame({"body": BODIES, "half": pl.Series(range(3), dtype=pl.Int128)}),
        lambda: pl.DataFrame({"body": BODIES, "half": pl.Series([object()] * 3, dtype=pl.Object)}),
        lambda: pd.DataFrame({"body": BODIES, "half": pd.interval_range(0, 3)}),
    ],
    ids=["half floats", "wide integers", "objects", "intervals"],
)
def test_a_column_that_cannot_be_read_is_named(made):
    frame = made()  # noqa: F841
    with uql.connect(model=HashModel(), ledger=":memory:") as con:
        with pytest.raises(UQLError, match="frame, column half cannot be read") as error:
            con.uql('SELECT * FROM frame WHERE "it is good"').fetchall()
        assert error.value.code == "UQL504"
        assert "cast half" in (error.value.help or "")


def test_labels_and_json_are_texts_where_there_is_no_other():
    frame = pd.DataFrame({"body": pd.Categorical(BODIES)})  # noqa: F841
    with uql.connect(model=HashModel({"it is good": 1.0}), ledger=":memory:", budget="all") as con:
        assert con.uql('SELECT count(*) FROM frame WHERE "it is good"').fetchall() == [(3,)]
        con.execute("CREATE TABLE notes AS SELECT ('{\"note\": ' || i || '}')::JSON AS body FROM range(3) t(i)")
        assert con.uql('SELECT count(*) FROM notes WHERE "it is good"').fetchall() == [(3,)]


@pytest.mark.parametrize("hole", ["user.text", '""user.text""', "frame.user.text", 'frame.""user.text""', "USER.Text"])
def test_a_column_with_a_dot_in_its_name_stands_in_a_hole(hole):
    frame = pd.json_normalize([{"user": {"name": "Ann", "text": text}} for text in BODIES])  # noqa: F841
    model = HashModel({f"it is good {{{name}}}": 1.0 for name in ("user.text", "frame.user.text")})
    with uql.connect(model=model, ledger=":memory:", budget="all") as con:
        found = con.uql(f'SELECT "user.name" AS name FROM frame WHERE "it is good {{{hole}}}"')
        assert found.fetchall() == [("Ann",)] * 3 and found.cost.calls == 3
        assert BODIES[0] in str(found.why(0))
        with pytest.raises(UQLError, match="UQL205") as error:
            con.uql('SELECT "how good it is {user.mood}"::DOUBLE FROM frame')
        assert "columns: " in str(error.value.help)


@pytest.mark.thorough
@pytest.mark.parametrize(
    "made",
    [
        lambda r: r,
        lambda r: r.arrow(),
        lambda r: r.df(),
        lambda r: r.df()[["id"]],
        lambda r: r.pl(),
        lambda r: r.relation(),
        lambda r: r.relation().filter("id >= 0").project("id, film AS f"),
    ],
)
def test_a_frame_of_a_part_of_the_rows_is_no_fact(many_labels, made):
    con = many_labels.uql(budget=32)
    frame = made(con.uql(said("SELECT id, film FROM reviews WHERE <pos>")))  # noqa: F841
    for statement in ("FROM frame", "SELECT count(*) AS n FROM frame", said("SELECT id FROM frame WHERE id < 0")):
        found = con.uql(statement)
        assert not found.exact and found.based_on, statement
    assert all(not e.exact for e in con.uql("SELECT count(*) AS n FROM frame").estimates.values())
    con.uql("CREATE TABLE copied AS FROM frame").fetchall()
    assert not con.uql("FROM copied").exact


def test_an_average_in_a_frame_keeps_its_interval(many_labels):
    con = many_labels.uql(budget=32)
    frame = con.uql(said("SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film")).df()
    read = con.uql("SELECT film, n FROM frame ORDER BY film")
    ends = frame.sort_values("film")[["n_low", "n_high"]].to_numpy().tolist()
    assert [[e.low, e.high] for e in read.estimates["n"]] == ends
    exact = con.uql("SELECT film, count(*) AS n FROM reviews GROUP BY film").df()  # noqa: F841
    assert con.uql("SELECT sum(n) AS n FROM exact").exact


def _pandas_file(result, path):
    result.df().to_parquet(path)


@pytest.mark.parametrize(
    "write",
    [
        lambda r, path: r.write_parquet(path),
        lambda r, path: pa.parquet.write_table(r.arrow(), path),
        _pandas_file,
    ],
    ids=["write_parquet", "arrow", "pandas"],
)
def test_a_parquet_file_of_a_part_of_the_rows_is_no_fact(many_labels, tmp_path, write):
    con, path = many_labels.uql(budget=32), tmp_path / "part.parquet"
    write(con.uql(said("SELECT id, film FROM reviews WHERE <pos>")), path)
    con.execute(f"CREATE VIEW part AS FROM '{path}'")
    for read in (f"FROM '{path}'", f"FROM read_parquet(['{path}'])", f"FROM '{tmp_path}/*.parquet'", "FROM part"):
        found = con.uql(f"SELECT count(*) AS n {read}")
        assert not found.exact and found.based_on, read
    con.uql(f"CREATE TABLE copied AS FROM '{path}'").fetchall()
    assert not con.uql("FROM copied").exact
    con.uql("SELECT id, film FROM reviews").write_parquet(tmp_path / "all.parquet")
    assert con.uql(f"FROM '{tmp_path}/all.parquet'").exact


def test_an_average_in_a_parquet_file_keeps_its_interval(many_labels, tmp_path):
    con, path = many_labels.uql(budget=32), tmp_path / "counts.parquet"
    statement = said("SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film")
    con.uql(f"COPY ({statement} WITH (partial = true)) TO '{path}'").fetchall()
    read = con.uql(f"SELECT film, n FROM '{path}' ORDER BY film")
    there = con.execute(f"SELECT n_low, n_high, false FROM '{path}' ORDER BY film").fetchall()
    assert [(e.low, e.high, e.exact) for e in read.estimates["n"]] == there and there


def test_a_join_with_estimates_is_none_of_facts(many_labels):
    con = many_labels.uql(budget=32)
    part = con.uql(said("SELECT id FROM reviews WHERE <pos>"))
    whole = con.uql("SELECT id, film FROM reviews")
    for other in (part, part.df(), part.pl(), part.relation()):
        assert not whole.join(other, "id").exact
    assert whole.join(whole, "id").exact

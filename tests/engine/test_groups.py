"""GROUP BY "…": memberships, several keys at once, a wished number of groups, near-duplicate names."""

from __future__ import annotations

import duckdb
import pytest
from hash_model import HashModel
from row_model import RowModel

import uql
from uql.kernels.sem_group import read_groups
from uql.llm.providers.base import Answer, Capabilities, Limits, Price
from uql.llm.questions import NONE, Choice, Predicate, Write

SUBJECTS = "SELECT *, unnest(CASE WHEN joke THEN [about, 'jokes'] ELSE [about] END) AS s FROM r WHERE text IS NOT NULL"


def test_many_counts_memberships(con, world):
    result = con.uql(
        'SELECT s, COUNT(*) AS n, AVG(stars) AS a FROM reviews WHERE text IS NOT NULL GROUP BY "the subjects" MANY AS s ORDER BY s'
    )
    assert result.fetchall() == world.truth(f"SELECT s, COUNT(*), AVG(stars) FROM ({SUBJECTS}) GROUP BY s ORDER BY s")
    assert result.exact


def test_where_may_ask_whether_a_row_has_a_group(con, world):
    groups = "SELECT s, COUNT(*) AS n FROM reviews WHERE {} GROUP BY {} AS s ORDER BY s"
    known = groups.format('"the topic" IS NOT NULL AND stars > 1', '"the topic"')
    truth = "SELECT about, count(*) FROM r WHERE stars > 1 AND text IS {} GROUP BY about ORDER BY about"
    assert con.uql(known).fetchall() == world.truth(truth.format("NOT NULL"))
    joined = (
        "SELECT s, COUNT(*) AS n FROM reviews LEFT JOIN (SELECT 1 AS one) ON stars > 1 "
        'WHERE stars > 1 AND "the topic" IS NOT NULL GROUP BY "the topic" AS s ORDER BY s'
    )
    assert con.uql(joined).fetchall() == world.truth(truth.format("NOT NULL"))
    rest = con.uql(groups.format('"the topic" IS NULL', '"the topic"')).fetchall()
    assert rest == [(None, world.truth("SELECT count(*) FROM r WHERE text IS NULL")[0][0])]
    for query in (
        groups.format('("the topic" IS NULL OR stars > 1)', '"the topic"'),
        'SELECT film, COUNT(*) FROM reviews WHERE "the topic" IS NOT NULL GROUP BY ROLLUP ("the topic", film)',
    ):
        with pytest.raises(uql.UQLError, match="UQL212") as error:
            con.uql(query).fetchall()
        assert "VARCHAR" in str(error.value.help)


@pytest.mark.parametrize("into", ["", " INTO 2"])
def test_a_statement_as_a_key_has_the_groups_true_and_false(into):
    con = uql.connect(model=HashModel(), ledger=":memory:", budget="all")
    con.execute("CREATE TABLE notes AS SELECT i AS id, 'note ' || i AS body FROM range(60) r(i)")
    said = dict(con.uql('SELECT id, "the note is good"::BOOLEAN FROM notes').fetchall())
    result = con.uql(f'SELECT g, COUNT(*) AS n FROM notes GROUP BY "the note is good"{into} AS g ORDER BY g')
    counts = [(truth, list(said.values()).count(truth)) for truth in (False, True)]
    if into:
        assert result.types == ["VARCHAR", "BIGINT"]
    else:
        assert result.fetchall() == counts and result.types == ["BOOLEAN", "BIGINT"] and result.cost.calls == 0


def test_many_beside_a_column_and_having(con, world):
    result = con.uql(
        'SELECT film, s, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY film, "the subjects" MANY AS s '
        "HAVING COUNT(*) > 2 ORDER BY film, s"
    )
    assert result.fetchall() == world.truth(
        f"SELECT film, s, COUNT(*) FROM ({SUBJECTS}) GROUP BY film, s HAVING COUNT(*) > 2 ORDER BY film, s"
    )


def test_memberships_of_a_sample_have_intervals_that_hold_the_truth(large):
    truth = dict(large.truth(f"SELECT s, COUNT(*) FROM ({SUBJECTS}) GROUP BY s"))
    inside = total = 0
    for seed in range(5, 10):
        result = large.connect(seed=seed).uql(
            'SELECT s, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY "the subjects" MANY AS s WITH (budget = 200)'
        )
        rows = dict(result.fetchall())
        assert {"plot", "acting", "music"} <= set(rows) <= set(truth)
        assert result.cost.calls <= 200
        for (label, _), found in zip(result.fetchall(), result.estimates["n"], strict=True):
            assert not found.exact
            inside += found.low <= truth[label] <= found.high
            total += 1
    assert inside >= 0.85 * total


def test_two_texts_may_be_keys_at_once(con, world):
    result = con.uql(
        'SELECT a, b, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY "the main topic" AS a, "the sentiment" AS b ORDER BY a, b'
    )
    assert result.fetchall() == world.truth(
        "SELECT about, sentiment, COUNT(*) FROM r WHERE text IS NOT NULL GROUP BY 1, 2 ORDER BY 1, 2"
    )


def test_into_asks_for_exactly_that_many_groups(con, world):
    found = con.uql(
        'SELECT a, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY "the main topic" INTO 3 AS a ORDER BY a'
    )
    assert found.fetchall() == world.truth(
        "SELECT about, COUNT(*) FROM r WHERE text IS NOT NULL GROUP BY about ORDER BY about"
    )
    two = con.uql('SELECT a FROM reviews WHERE text IS NOT NULL GROUP BY "the main topic" INTO 2 AS a').fetchall()
    assert len({a for (a,) in two} - {NONE}) == 2


class Namer(RowModel):
    """Names groups as told; puts a row to the group whose name begins its text."""

    name, is_local = "namer", True
    limits, price, capabilities = Limits(concurrency=4), Price(0, 0), Capabilities()

    def __init__(self, groups):
        self.groups, self.labels = groups, set()

    def _one(self, question, row):
        if isinstance(question, Write):
            return Answer(self.groups)
        assert isinstance(question, Choice)
        self.labels.add(question.labels)
        first = row.cells[0].value.split()[0]
        return Answer(next((label for label in question.labels if label.lower().startswith(first)), NONE))


def test_groups_that_differ_in_case_number_or_hyphens_alone_are_one():
    model = Namer(["Fees", "fee", "Lost-cards", "the lost card", "Other"])
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.sql(
        "SELECT i AS id, ['fee', 'lost'][i % 2 + 1] || ' and a text of some length, number ' || i AS text FROM range(20) t(i)"
    ).create("notes")
    found = con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" AS g ORDER BY g').fetchall()
    assert found == [("Fees", 10), ("Lost-cards", 10)]
    assert model.labels == {("Fees", "Lost-cards")}


def test_a_reply_that_names_no_group_is_an_error():
    con = uql.connect(model=Namer([" ", "Other"]), ledger=":memory:", budget="all")
    con.sql("SELECT i AS id, 'a text of some length, number ' || i AS text FROM range(20) t(i)").create("notes")
    with pytest.raises(uql.UQLError) as error:
        con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" AS g').fetchall()
    assert error.value.code == "UQL407"


def test_names_of_groups_are_one_line_and_short():
    assert tuple(read_groups(["a\nb  c", "x" * 100], 8)) == ("a b c", "x" * 80)


class Judge(Namer):
    """Names groups, more of them when asked again, and says that some names are the same group."""

    def __init__(self, groups, same=(), more=()):
        super().__init__(groups)
        self.same, self.more, self.checked = same, more, []

    def _one(self, question, row):
        if isinstance(question, Write) and question.task == "same":
            self.checked = [pair for _, pair in question.parameters]
            return Answer([any(set(pair.split(" / ")) == set(same) for same in self.same) for pair in self.checked])
        if isinstance(question, Write):
            return Answer(self.more if dict(question.parameters).get("known") else self.groups)
        if isinstance(question, Choice) and question.many:
            words = set(row.cells[0].value.split())
            return Answer([label for label in question.labels if label.lower() in words])
        return super()._one(question, row)


def notes(model, words, n=40, budget="all"):
    con = uql.connect(model=model, ledger=":memory:", budget=budget)
    con.sql(
        f"SELECT i AS id, {words}[i % {len(words)} + 1] || ' is what this text of some length is about, number ' || i AS text FROM range({n}) t(i)"
    ).create("notes")
    return con


def test_names_near_in_meaning_are_one_group_where_the_model_says_so():
    model = Judge(["delayed shipment", "shipping delay", "refund"], same=[("delayed shipment", "shipping delay")])
    con = notes(model, ["delayed", "refund"])
    con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" AS g').fetchall()
    assert model.checked == ["delayed shipment / shipping delay"]
    assert model.labels == {("delayed shipment", "refund")}


def test_names_near_in_meaning_stay_two_groups_where_the_model_says_so():
    model = Judge(["delayed shipment", "shipping delay", "refund"])
    con = notes(model, ["delayed", "refund"])
    con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" AS g').fetchall()
    assert model.checked
    assert model.labels == {("delayed shipment", "shipping delay", "refund")}


def test_groups_of_several_a_row_are_named_again_for_rows_in_none():
    model = Judge(["alpha", "beta"], more=["gamma"])
    con = notes(model, ["alpha", "alpha beta", "gamma"])
    found = con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" MANY AS g ORDER BY g').fetchall()
    assert found == [("alpha", 27), ("beta", 13), ("gamma", 13)]


def test_rows_in_none_of_a_wished_number_of_groups_are_a_row_of_their_own_and_are_told():
    model = Judge(["alpha", "beta"], more=["gamma"])
    con = notes(model, ["alpha", "beta", "gamma"])
    result = con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" INTO 2 AS g ORDER BY g')
    assert result.fetchall() == [("alpha", 14), ("beta", 13), (NONE, 13)]
    assert any("13 of 40 rows asked are in none of the 2 groups" in note for note in result.notes)


def test_several_keys_with_into_and_many_keep_their_own_groups(con, world):
    found = con.uql(
        'SELECT a, s, COUNT(*) AS n FROM reviews WHERE text IS NOT NULL GROUP BY "the main topic" INTO 3 AS a, "the subjects" MANY AS s ORDER BY ALL'
    )
    assert found.fetchall() == world.truth(
        f"SELECT about, s, COUNT(*) FROM ({SUBJECTS}) GROUP BY about, s ORDER BY ALL"
    )


class Describing(RowModel):
    """Names two groups with a line on each, and notes what a row is then put to."""

    def __init__(self, descriptions: bool) -> None:
        self.capabilities = Capabilities(probabilities=True, schema=True, descriptions=descriptions)
        self.schemas: list[str] = []
        self.menus: list[tuple[tuple[str, ...], tuple[str, ...]]] = []

    def _one(self, question, row):
        if isinstance(question, Write):
            self.schemas.append(question.schema or "")
            lines = [("Fees", "what a thing costs\nand why"), ("Cards", "cards"), ("Trips", "x" * 200)]
            return Answer([{"name": name, "description": about} for name, about in lines])
        self.menus.append((question.labels, question.descriptions))
        return Answer("Fees")


@pytest.mark.parametrize("descriptions", [True, False])
def test_groups_are_described_to_models_that_gain_by_it(descriptions):
    model = Describing(descriptions)
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.sql("SELECT 'a text about money number ' || i AS text FROM range(5) t(i)").create("t")
    result = con.uql('SELECT kind, COUNT(*) AS n FROM t GROUP BY "what it is about" AS kind')
    assert result.fetchall() == [("Fees", 5)]
    assert all(('"description"' in schema) == descriptions for schema in model.schemas)
    labels, told = model.menus[0]
    assert labels == ("Fees", "Cards", "Trips")
    assert told == ("what a thing costs and why", "", "x" * 80)  # one line, no echo of the name, 80 characters
    assert any("Fees (what a thing costs and why)" in note for note in result.notes)


def test_where_most_rows_fit_none_of_the_first_groups_more_are_named(tmp_path):
    """44 kinds, of which one request can name 8: the rest is not left in one heap."""
    kinds = "'kind ' || CASE WHEN i % 3 = 0 THEN i % 4 ELSE i % 44 END"
    with duckdb.connect() as db:
        db.sql(
            f"COPY (SELECT i AS id, 'row ' || i || ' of ' || {kinds} AS text FROM range(3000) r(i)) TO '{tmp_path}/data.parquet'"
        )
        db.sql(f"COPY (SELECT i AS id, {kinds} AS kind FROM range(3000) r(i)) TO '{tmp_path}/labels.parquet'")
    (tmp_path / "m.toml").write_text(
        'data = "data.parquet"\nlabels = "labels.parquet"\nkey = "id"\n[answers]\n"the kind" = "kind"\n',
        encoding="utf-8",
    )
    with uql.connect(model=f"oracle:{tmp_path}/m.toml", ledger=":memory:", progress=False, budget=128) as con:
        con.sql(f"CREATE TABLE t AS FROM '{tmp_path}/data.parquet'")
        result = con.uql('SELECT k, COUNT(*) AS n FROM t GROUP BY "the kind" AS k')
        counts = dict(result.fetchall())
    assert result.cost.calls <= 128
    assert len(counts) > 16, counts
    assert counts.get(NONE, 0) < 0.3 * 3000, "8 groups hold less than half of the rows"


def test_one_row_of_a_sample_that_is_in_no_group_has_one_named_for_it():
    """One row in twenty is of a group that the first request did not name: of a sample of 100, about five."""
    model = Judge(["alpha", "beta"], more=["gamma"])
    words = ["alpha"] * 10 + ["gamma"] + ["beta"] * 9
    with notes(model, words, n=2000, budget=100) as con:
        found = dict(con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" AS g').fetchall())
    assert set(found) == {"alpha", "beta", "gamma"}
    assert 20 < found["gamma"] < 400


def test_a_model_that_keeps_saying_none_is_not_asked_without_end():
    model = Judge(["alpha", "beta"], more=["gamma", "delta"])
    with notes(model, ["alpha", "beta", "neither"], n=2000, budget=128) as con:
        result = con.uql('SELECT g, COUNT(*) AS n FROM notes GROUP BY "the matter" AS g')
        found = dict(result.fetchall())
    assert result.cost.calls <= 128
    assert 0.2 * 2000 < found[NONE] < 0.5 * 2000
    assert any("groups below" in note or "groups of any size" in note for note in result.notes)


def test_mode_is_the_smallest_of_the_values_that_are_as_frequent():
    model = HashModel(answers=lambda question, row: isinstance(question, Predicate) or row.cells[0].value)
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.execute(
        "CREATE TABLE v AS SELECT * FROM (VALUES (3, 'b', 'one'), (1, 'a', 'two'), (2, 'c', 'three')) t(x, s, body)"
    )
    query = 'SELECT {} AS m FROM v WHERE "it is good" USING (body)'
    for item, want in (
        ("mode(x)", 1),
        ("mode(s)", "a"),
        ("mode(x + 1) FILTER (x > 1)", 3),
        ("mode(DISTINCT s)", "a"),
        ("mode(x ORDER BY x DESC)", 3),
        ("mode(1)", 1),
        ("mode(s) OVER (PARTITION BY 1)", "a"),
    ):
        assert con.uql(query.format(item)).fetchall()[0] == (want,)
    assert con.uql('SELECT mode("the kind" USING (body)) AS m FROM v').fetchall() == [("one",)]

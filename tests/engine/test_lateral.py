"""unnest, range and generate_series in FROM over the columns of a table before them, and what only DuckDB can place."""

from __future__ import annotations

import pytest
from hash_model import HashModel

import uql
from uql.base.errors import UQLError
from uql.llm.questions import Predicate


@pytest.fixture
def con():
    con = uql.connect(model=HashModel(), ledger=":memory:")
    con.execute("CREATE TABLE t AS SELECT i AS id, ['a', 'b'][1:i] AS tags, 'note ' || i AS body FROM range(4) r(i)")
    con.execute("CREATE TABLE s AS SELECT i AS id, 'n' || i AS name FROM range(2, 6) r(i)")
    return con


@pytest.mark.parametrize(
    ("source", "place", "message"),
    [
        ("t FULL JOIN unnest(t.tags) AS u(x) ON true", "unnest(t.tags)", "ON TRUE"),
        ("t JOIN unnest(t.tags) AS u(x) ON x = 'a'", "unnest(t.tags)", "ON TRUE"),
        ("t, unnest(t.tag) AS u(x)", "t.tag", "no column tag in t"),
        ("t, unnest(q.tags) AS u(x)", "q.tags", "no table or column q"),
        ("t, unnest(t.tags) AS u(x, y)", "unnest(t.tags)", "given 2 column names"),
        ("t, unnest(t.tags) AS t(x)", "unnest(t.tags)", "two tables of this query are called t"),
    ],
)
def test_a_list_that_cannot_be_taken_apart_says_why(con, source, place, message):
    with pytest.raises(UQLError) as error:
        con.uql(f'SELECT x FROM {source} WHERE "it is urgent"')
    found = error.value
    assert message in found.message
    assert found.text[found.start : found.end].startswith(place)


def test_structs_in_a_list_that_become_several_columns_are_refused_beside_a_text(con):
    with pytest.raises(UQLError) as error:
        con.uql("""SELECT unnest([{'a': id, 'b': tags}], recursive := true) FROM t WHERE "it is urgent" """)
    assert error.value.code == "UQL212"
    assert "s.*" in error.value.help


def test_each_text_is_asked_once_however_many_items_stand_beside_it():
    model = HashModel()
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.execute("CREATE TABLE t AS SELECT i AS id, range(5) AS tags, 'note ' || i AS body FROM range(4) r(i)")
    rows = con.uql('SELECT id, tag, "the mood" AS m FROM t, unnest(tags) AS u(tag)').fetchall()
    assert (len(rows), model.calls) == (20, 4)
    assert len({(i, mood) for i, _, mood in rows}) == 4


def test_a_private_list_stays_private(con):
    con.execute("COMMENT ON COLUMN t.tags IS 'private'")
    with pytest.raises(UQLError, match="private"):
        con.uql('SELECT id FROM t, unnest(t.tags) AS u(tag) WHERE "{tag} is urgent"')


def test_what_a_lateral_sub_query_makes_of_a_private_column_stays_private(con):
    con.execute("COMMENT ON COLUMN t.body IS 'private'")
    for source in ("(SELECT t.body || '!' AS b) l", "(VALUES (t.body)) l(b)", "(SELECT (SELECT t.body) AS b) l"):
        with pytest.raises(UQLError, match="private"):
            con.uql(f'SELECT t.id FROM t, LATERAL {source} WHERE "{{l.b}} is urgent"')
    with pytest.raises(UQLError, match="private"):
        con.uql('SELECT id FROM (SELECT id, (SELECT max(body) FROM t) AS b FROM s) WHERE "{b} is urgent"')


def test_a_name_of_a_lateral_sub_query_means_the_nearest_table(con):
    """As in DuckDB: the table before it, not the query around."""
    query = "SELECT id, (SELECT max(z) FROM s, LATERAL (SELECT id + 1 AS z) l WHERE s.id < 4) AS m FROM t WHERE {}"
    asked = con.uql(query.format('"it is urgent" IS NOT NULL') + " WITH (budget = 'all')").fetchall()
    assert asked == con.execute(query.format("true")).fetchall() == [(i, 4) for i in range(4)]


def test_a_budget_that_ends_in_the_middle_of_the_values_is_not_said_to_have_sent_nothing():
    model = HashModel({"it is urgent": 0.5})
    con = uql.connect(model=model, ledger=":memory:")
    con.execute("CREATE TABLE t AS SELECT i AS id, 'note ' || i AS body FROM range(30) r(i)")
    query = """SELECT count(*) FROM t, LATERAL (SELECT u.id FROM t u WHERE u.id < t.id AND "{u.body} is urgent") s"""
    with pytest.raises(UQLError, match="the budget ended at the 22") as error:
        con.uql(f"{query} WITH (budget = 20)").fetchall()
    assert "nothing was sent" not in str(error.value) and "what was answered is kept" in str(error.value)
    assert model.calls == 20
    assert con.uql(f"{query} WITH (budget = 'all')").exact and model.calls == 29


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT a.id, b.id, x FROM t a, t b, unnest(a.tags || b.tags) AS u(x)",
        "SELECT s.id, x FROM s LEFT JOIN t USING (id), unnest(t.tags) AS u(x)",
        "SELECT t.id, z FROM t, (SELECT id + 1 AS z)",
        "SELECT x FROM t JOIN unnest(tags) AS u(x) ON x = 'b'",
        "SELECT unnest({'a': id, 'b': tags}) FROM t",
        "SELECT t.id FROM t, s WHERE $n < t.id AND t.id IN (SELECT z FROM (SELECT s.id AS z))",
    ],
)
def test_sql_that_only_duckdb_can_place_is_run_by_it(con, statement):
    values = {"n": 1} if "$n" in statement else {}
    assert sorted(con.uql(statement, **values).fetchall()) == sorted(con.execute(statement, values).fetchall())


def test_a_table_is_made_of_what_only_duckdb_can_place(con):
    con.uql("CREATE TABLE made AS SELECT s.id, x FROM s LEFT JOIN t USING (id), unnest(t.tags) AS u(x)").fetchall()
    con.uql("INSERT INTO made SELECT t.id, z FROM t, (SELECT tags[1] AS z)").fetchall()
    assert con.sql("SELECT count(*) FROM made").fetchall() == [(8,)]


def test_where_duckdb_cannot_place_it_either_the_error_is_ours(con):
    with pytest.raises(UQLError) as error:
        con.uql("SELECT t.id, z FROM t, (SELECT nope + 1 AS z)")
    assert error.value.code == "UQL202"
    assert "DuckDB" not in error.value.message


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("statement", "most"),
    [
        ("SELECT unnest(l) AS x, id FROM many WHERE {} ORDER BY id DESC, x LIMIT 3", 12),
        (
            "SELECT unnest(l) + 1 AS x, unnest(range(2)) AS y, id FROM many WHERE {} ORDER BY id, x, y LIMIT 5 OFFSET 2",
            12,
        ),
        ("SELECT generate_subscripts(l, 1) AS x, rowid FROM many WHERE {} ORDER BY x DESC, rowid LIMIT 4", 16),
        ("SELECT unnest(l) AS x, s.name FROM s, many WHERE s.id = many.id AND {} ORDER BY many.id, x LIMIT 2", 4),
        ("SELECT unnest(l) AS x, {} AS p FROM many ORDER BY id, x LIMIT 6", 4),
        (
            "SELECT unnest(many.l || m.l) AS x, many.id FROM many, many m WHERE m.id = many.id + 1 AND {} ORDER BY many.id, x LIMIT 3",
            8,
        ),
        (
            "SELECT unnest(many.l) AS x, unnest(m.l) AS y FROM many, many m WHERE m.id = many.id + 1 AND {} ORDER BY many.id, y LIMIT 4",
            8,
        ),
        (
            "SELECT unnest(many.l) AS x, m.id FROM many m LEFT JOIN many ON many.id = m.id + 1 WHERE {} ORDER BY m.id, x LIMIT 3",
            8,
        ),
    ],
)
def test_unnest_in_select_asks_no_further_than_limit_needs(statement, most):
    model = HashModel()
    con = uql.connect(model=model, ledger=":memory:", budget=40)
    con.execute("CREATE TABLE s AS SELECT i AS id, 'n' || i AS name FROM range(2, 6) r(i)")
    con.execute("CREATE TABLE many AS SELECT i AS id, range(i % 4) AS l, 'note ' || i AS body FROM range(500) r(i)")
    asked = con.uql(statement.format('"{many.body} is urgent"::BOOLEAN'))
    rows = asked.fetchall()
    assert asked.exact and 0 < model.calls <= most
    con.uql(
        'CREATE TABLE labels AS SELECT id, "{many.body} is urgent"::BOOLEAN AS yes FROM many WITH (budget = 1000)'
    ).fetchall()
    truth = statement.format("(SELECT yes FROM labels WHERE labels.id = many.id)")
    assert rows == con.execute(truth).fetchall()


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query",
    [
        '(SELECT count(*) AS n FROM t WHERE t.k = u.k AND "{body} is good") l',
        '(SELECT count(*) AS n, avg(x) FROM t WHERE x > 0 AND u.k = t.k AND "{body} is good") l(n, mean)',
        '(SELECT count(*) AS n FROM t WHERE t.k < u.k + 1 AND t.k > u.k - 1 AND "{body} is good") l',
    ],
)
def test_the_values_of_a_lateral_aggregate_share_the_budget(query):
    model = HashModel({"it is good": 0.4})
    con = uql.connect(model=model, ledger=":memory:", seed=3)
    con.execute("CREATE TABLE t AS SELECT i % 5 AS k, i AS x, 'note ' || i AS body FROM range(800) r(i)")
    con.execute("CREATE TABLE u AS SELECT i AS id, i AS k FROM range(1, 7) r(i)")
    statement = f"SELECT u.id, l.n FROM u, LATERAL {query} ORDER BY u.id WITH (budget = "
    for budget, repeated in ((60, False), (60, True), (240, False)):
        calls = model.calls
        result = con.uql(f"{statement}{budget})")
        rows = dict(result.fetchall())
        assert not result.exact and None not in rows.values() and rows[5] == rows[6] == 0
        assert model.calls - calls == 0 if repeated else model.calls - calls <= budget
    truth = [n for _, n in con.uql(f"{statement}'all')").fetchall()]
    assert model.calls == 640
    for estimate, n in zip(result.estimates.get("n", []), truth, strict=False):
        assert estimate.low <= n <= estimate.high < 200


@pytest.mark.thorough
@pytest.mark.one_in(4)  # each condition and each seed once
@pytest.mark.parametrize("inner", ["t.k < u.k", "t.x < u.k * 100", "t.k = u.k"])
@pytest.mark.parametrize("seed", range(3))
def test_a_larger_budget_of_lateral_aggregates_goes_on_with_the_smaller_ones_and_keeps_to_itself(inner, seed):
    model = HashModel({"it is good": 0.4})
    con = uql.connect(model=model, ledger=":memory:", seed=seed)
    con.execute("CREATE TABLE t AS SELECT i % 5 AS k, i AS x, 'note ' || i AS body FROM range(800) r(i)")
    con.execute("CREATE TABLE u AS SELECT i AS id, i AS k FROM range(1, 7) r(i)")
    statement = f"""SELECT u.id, l.n FROM u, LATERAL (SELECT count(*) AS n FROM t WHERE {inner} AND "{{body}} is good") l
        ORDER BY u.id WITH (budget = """
    rows = {}
    for budget in (40, 60, 240):
        rows[budget] = con.uql(f"{statement}{budget})").fetchall()
        assert model.calls <= budget, "what the smaller budgets paid for counts"
    for budget in (40, 60, 240):
        assert con.uql(f"{statement}{budget})").fetchall() == rows[budget]
    assert model.calls <= 240


@pytest.mark.parametrize(
    ("rest", "most"),
    [
        ("LIMIT 5", 10),
        ("ORDER BY id DESC LIMIT 5 OFFSET 2", 7),
        ("WHERE {} ORDER BY id LIMIT 5", 40),
        ("WHERE {} LIMIT 5", 40),
    ],
)
def test_unnest_of_a_list_that_the_model_makes_stops_once_limit_is_reached(rest, most):
    def answer(question, row):
        i = int(row.cells[0].value.split()[1])
        return i % 3 == 0 if isinstance(question, Predicate) else [f"subject {j} of {i}" for j in range(i % 4)]

    model = HashModel(answers=answer)
    con = uql.connect(model=model, ledger=":memory:", budget=60, seed=1)
    con.execute("CREATE TABLE many AS SELECT i AS id, 'note ' || i AS body FROM range(500) r(i)")
    items = 'SELECT unnest("the subjects" USING (body)::VARCHAR[]) AS s, id FROM many '
    asked = con.uql(items + rest.format('"it is urgent" USING (body)'))
    price = asked.quote().calls
    rows = asked.fetchall()
    assert asked.exact and len(rows) == 5 and price.low <= model.calls <= min(price.high, most)
    truth = con.execute(
        "SELECT 'subject ' || unnest(range(id % 4)) || ' of ' || id, id FROM many " + rest.format("id % 3 = 0")
    )
    assert "ORDER BY" not in rest or rows == truth.fetchall()
    again = con.uql(items + rest.format('"it is urgent" USING (body)'))
    assert again.fetchall() == rows and again.cost.calls == 0


def test_lists_of_the_model_that_are_empty_are_gone_past_as_far_as_the_budget_reaches():
    model = HashModel(answers=lambda question, row: [])
    con = uql.connect(model=model, ledger=":memory:", budget=60)
    con.execute("CREATE TABLE many AS SELECT i AS id, 'note ' || i AS body FROM range(500) r(i)")
    asked = con.uql('SELECT unnest("the subjects" USING (body)::VARCHAR[]) AS s FROM many LIMIT 5')
    assert asked.fetchall() == [] and not asked.exact and model.calls <= 60
    assert "first 0 of 5: the budget ended" in asked.notes


BETWEEN = [
    "t.x < u.k * 100",
    "t.x BETWEEN u.id AND u.id * 90 AND t.k <> u.k",
    "t.k IS DISTINCT FROM u.k",
    "t.k = u.k AND t.x < u.id * 100",
    "(abs(t.x - u.id * 100) < 50 OR u.k IS NULL)",
]


@pytest.mark.thorough
@pytest.mark.parametrize("between", BETWEEN)
def test_a_lateral_aggregate_joined_by_more_than_an_equality_has_an_interval_for_each_row(between):
    held, known = [], 0
    for seed in range(3):
        con = uql.connect(model=HashModel({"{body} is good": 0.4}), ledger=":memory:", seed=seed)
        con.execute("CREATE TABLE t AS SELECT nullif(i % 5, 4) AS k, i AS x, 'note ' || i AS body FROM range(600) r(i)")
        con.execute("CREATE TABLE u AS SELECT i AS id, nullif(i, 6) AS k FROM (SELECT unnest([1, 2, 2, 3, 5, 6]) AS i)")
        statement = f"""SELECT u.id, l.n, l.s, l.c FROM u LEFT JOIN LATERAL (SELECT count(*) AS n, sum(x) AS s, count(k) AS c FROM t
            WHERE {between} AND "{{body}} is good") l ON true ORDER BY ALL"""
        sampled = con.uql(f"{statement} WITH (budget = 80)")
        assert not sampled.exact and sampled.cost.calls <= 80
        con.uql("""CREATE TABLE yes AS SELECT x FROM t WHERE "{body} is good" WITH (budget = 'all')""").fetchall()
        whole = con.uql(f"{statement} WITH (budget = 'all')")
        truth = con.execute(statement.replace('"{body} is good"', "x IN (SELECT x FROM yes)")).fetchall()
        assert whole.exact and whole.fetchall() == truth
        for column, estimates in enumerate(sampled.estimates[name] for name in "nsc"):
            held += [e.low <= (row[column + 1] or 0) <= e.high for row, e in zip(truth, estimates, strict=True)]
            known += sum(e.high < 600 * 300 for e in estimates)
    assert sum(held) >= 0.88 * len(held) and known > 0.8 * len(held)


GOOD_AND_LONG = '"{body} is good" AND "{body} is long"'
OF_GROUPS = f"LATERAL (SELECT count(*) AS n, avg(x) AS m, 'one' AS k FROM t WHERE t.k = u.k AND {GOOD_AND_LONG}) l"


def kinds_of_notes(seed):
    con = uql.connect(model=HashModel({"{body} is good": 0.5, "{body} is long": 0.6}), ledger=":memory:", seed=seed)
    con.execute("CREATE TABLE t AS SELECT i % 4 AS k, i AS x, 'note ' || i AS body FROM range(400) r(i)")
    con.execute("CREATE TABLE u AS SELECT i AS id, i AS k FROM range(5) r(i)")
    return con


@pytest.mark.parametrize(
    ("statement", "of"),
    [
        (f"SELECT u.id, l.n, l.k FROM u, {OF_GROUPS} ORDER BY u.id", "n"),
        (f"SELECT u.id, l.n * 2 + 1 AS twice FROM u LEFT JOIN {OF_GROUPS} ON true ORDER BY u.id", "twice"),
        (f"SELECT sum(l.n) AS s, 'all' AS k FROM u, {OF_GROUPS}", "s"),
        (f"WITH c AS (SELECT u.id, l.n FROM u, {OF_GROUPS}) SELECT a.id, b.n - a.n AS d FROM c a, c b WHERE b.id = a.id + 1 ORDER BY 1", "d"),
    ],
)  # fmt: skip
def test_what_a_sub_query_estimates_for_each_value_has_its_interval_in_the_query_around_it(statement, of):
    held = []
    for seed in range(4):
        con = kinds_of_notes(seed)
        sampled = con.uql(f"{statement} WITH (budget = 80)")
        assert set(sampled.estimates) == {of} and not sampled.exact
        assert [name for name in sampled.df().columns if name.startswith(of)] == [of, f"{of}_low", f"{of}_high"]
        whole = con.uql(f"{statement} WITH (budget = 'all', fresh = true)")
        truth = whole[of]
        assert whole.exact
        found = sampled.estimates[of]
        for estimate, value in zip(found if isinstance(found, list) else [found], truth, strict=True):
            held.append(estimate.low <= value <= estimate.high)
            assert estimate.high < 1000
    assert sum(held) >= 0.9 * len(held)


def test_rows_that_an_estimate_for_each_value_chooses_are_said_to_be_chosen_by_it():
    con = kinds_of_notes(1)
    result = con.uql(f"SELECT u.id, l.n FROM u, {OF_GROUPS} WHERE l.n > 20 WITH (budget = 60)")
    assert result.fetchall() and any("decide which rows" in note for note in result.notes)


def test_columns_have_their_own_names_beside_others_of_that_name(con):
    rows = 'SELECT l.id, "l"."id", t.id FROM t, LATERAL (SELECT s.id FROM s WHERE s.id = t.id AND "it is urgent") l'
    found = con.uql(rows)
    assert found.columns == ["id", "id", "id"]
    assert all(one == two == three for one, two, three in found.fetchall())


@pytest.mark.parametrize(
    "source",
    [
        'many, unnest("the subjects" USING (body)) AS u(s)',
        'many LEFT JOIN unnest("the subjects" USING (body)) AS u(s) ON TRUE',
        '(SELECT id, unnest("the subjects" USING (body)) AS s FROM many) x',
    ],
)
def test_rows_that_a_plain_condition_drops_are_not_asked_for_their_list(source):
    def answer(question, row):
        i = int(row.cells[0].value.split()[1])
        return [f"subject {j}" for j in range(i % 4)]

    model = HashModel(answers=answer)
    con = uql.connect(model=model, ledger=":memory:", budget=60)
    con.execute("CREATE TABLE many AS SELECT i AS id, 'note ' || i AS body FROM range(500) r(i)")
    asked = con.uql(f"SELECT id, s FROM {source} WHERE id < 40 AND (s IS NULL OR s <> 'subject 1') ORDER BY id, s")
    truth = con.execute(
        "SELECT id, s FROM (SELECT id, unnest(['subject ' || j for j in range(id % 4)]) AS s FROM many) "
        "WHERE id < 40 AND s <> 'subject 1'"
        + (" UNION ALL SELECT id, NULL FROM many WHERE id < 40 AND id % 4 = 0" if "LEFT" in source else "")
        + " ORDER BY id, s"
    ).fetchall()
    assert asked.fetchall() == truth and asked.exact
    assert model.calls == 40


def test_a_condition_on_the_items_of_a_list_stays_behind_it(con):
    statement = (
        "SELECT id, k FROM (SELECT id, unnest([id, id + 10]) AS k, {} AS mood FROM t) x WHERE k < 12 ORDER BY ALL"
    )
    rows = con.uql(statement.format('"the mood"')).fetchall()
    assert rows == con.execute(statement.format("'calm'")).fetchall()


def test_rows_that_stand_beside_several_values_are_counted_once_against_the_budget():
    model = HashModel({"it is good": 0.4})
    con = uql.connect(model=model, ledger=":memory:", seed=3, budget=45)
    con.execute("CREATE TABLE t AS SELECT i AS k, 'note ' || i AS body FROM range(40) r(i)")
    con.execute("CREATE TABLE u AS SELECT i AS id FROM range(30) r(i)")
    result = con.uql(
        'SELECT u.id, l.n FROM u, LATERAL (SELECT count(*) AS n FROM t WHERE t.k BETWEEN u.id AND u.id + 10 AND "{body} is good") l'
    )
    foreseen = result.quote().calls
    assert len(result.fetchall()) == 30 and result.exact and not result.partial
    assert model.calls == 40 and foreseen.low <= 40 <= foreseen.high


def test_the_price_of_a_sub_query_for_each_value_is_that_of_the_values_that_where_leaves():
    model = HashModel({"it is good": 0.4})
    con = uql.connect(model=model, ledger=":memory:", budget="all")
    con.execute("CREATE TABLE t AS SELECT i AS k, 'note ' || i AS body FROM range(40) r(i)")
    result = con.uql('SELECT t.k, l.good FROM t, LATERAL (SELECT "{t.body} is good" AS good) l WHERE t.k < 7')
    foreseen = result.quote().calls
    assert len(result.fetchall()) == 7
    assert foreseen.low == model.calls == foreseen.high == 7

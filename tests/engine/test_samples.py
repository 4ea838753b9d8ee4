"""How a query uses samples: shares without WHERE, rows that the ledger knows, tokens as budget, small groups."""

import pytest

import uql

POSITIVE = '"the review is positive"'


def uql_connect(world, **settings):
    con = uql.connect(model=world.oracle(), **settings)
    con.sql(f"SELECT * FROM '{world.folder}/data.parquet'").create("reviews")
    return con


def test_a_share_by_filter_is_sampled_with_features(large):
    con = large.connect(budget=120)
    result = con.uql(f"SELECT COUNT(*) FILTER (WHERE {POSITIVE}) * 1.0 / COUNT(*) AS s FROM reviews")
    (truth,) = large.truth("SELECT COUNT(*) FILTER (WHERE sentiment = 'pos' AND text IS NOT NULL) / COUNT(*) FROM r")[0]
    found = result.estimates["s"]
    assert found.method == "asd" and found.calls >= 100
    assert found.low <= truth <= found.high and found.high - found.low < 0.2


def test_an_average_of_numbers_read_from_rows_is_sampled_with_features(large):
    con = large.connect(budget=120)
    result = con.uql('SELECT AVG("the number of stars"::INTEGER) AS a FROM reviews WHERE text IS NOT NULL')
    (truth,) = large.truth("SELECT AVG(rating) FROM r WHERE text IS NOT NULL")[0]
    found = result.estimates["a"]
    assert found.method == "asd" and found.low <= truth <= found.high


def test_a_share_stops_at_the_error_asked_for(large):
    con = large.connect(budget=1000)
    query = f"SELECT COUNT(*) FILTER (WHERE {POSITIVE}) AS n FROM reviews WITH (error = 0.2)"
    found = con.uql(query).estimates["n"]
    assert found.high - found.low <= 0.4 * found.value and found.calls < 300


def test_a_count_stops_at_the_error_asked_for(large):
    con = large.connect(budget=1000)
    found = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (error = 0.2)").estimates["n"]
    assert found.high - found.low <= 0.4 * found.value and found.calls in (62, 64, 128, 256)


def test_a_search_begins_with_what_the_ledger_knows(large, tmp_path):
    con = uql_connect(large, ledger=str(tmp_path / "ledger.sqlite"), budget=100)
    counted = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE}")
    assert counted.cost.calls > 90
    rows = con.uql(f"SELECT id FROM reviews WHERE {POSITIVE} LIMIT 10")
    labels = {row["id"]: row["sentiment"] for row in large.rows}
    assert len(rows.fetchall()) == 10 and rows.cost.calls == 0
    assert {labels[i] for (i,) in rows.fetchall()} == {"pos"}
    more = con.uql(f"SELECT id FROM reviews WHERE {POSITIVE}")
    blind = large.connect(budget=100).uql(f"SELECT id FROM reviews WHERE {POSITIVE}")
    assert more.cost.calls <= 100 and len(more.fetchall()) >= len(blind.fetchall()) + 20


@pytest.mark.parametrize("tokens", [800, 3000])
def test_tokens_are_a_budget_and_no_sample_is_torn_by_them(large, tokens):
    con = large.connect(max_tokens=tokens, examples=False)
    result = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE}")
    found = result.estimates["n"]
    assert 0 < result.cost.input_tokens + result.cost.output_tokens <= tokens
    assert found.unknown == 0 and found.calls < 128
    assert result.cost.input_tokens + result.cost.output_tokens >= (0.93 if tokens > 1000 else 0.85) * tokens
    (truth,) = large.truth("SELECT COUNT(*) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL")[0]
    assert found.low <= truth <= found.high


def test_two_conditions_share_the_tokens(large):
    con = large.connect(budget=120, max_tokens=3000, examples=False, disabled_rules="order_while_running")
    result = con.uql(f'SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} AND "the review is about the plot"')
    found = result.estimates["n"]
    assert found.unknown == 0
    wanted = "sentiment = 'pos' AND about = 'plot' AND text IS NOT NULL"
    (truth,) = large.truth(f"SELECT COUNT(*) FROM r WHERE {wanted}")[0]
    assert found.low <= truth <= found.high


def test_small_concrete_groups_are_exact_beside_estimated_ones(large):
    con = large.connect(budget=128)
    result = con.uql(
        f"SELECT CASE WHEN id < 20 THEN 'few' ELSE 'many' END AS g, COUNT(*) AS n FROM reviews WHERE {POSITIVE} GROUP BY g"
    )
    found = dict(zip([row[0] for row in result.fetchall()], result.estimates["n"], strict=True))
    where = "sentiment = 'pos' AND text IS NOT NULL AND id < 20"
    (truth,) = large.truth(f"SELECT COUNT(*) FROM r WHERE {where}")[0]
    assert found["few"].exact and found["few"].value == truth
    assert not found["many"].exact


def test_a_listener_hears_of_rows_that_get_their_vectors_and_of_none_the_second_time(large):
    con, heard = large.connect(budget=100, examples=False), []
    con.on_event(lambda event: heard.append(event) if event.kind == "embedded" else None)
    query = f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE}"
    con.uql(query).fetchall()
    assert heard and heard[-1].done == heard[-1].rows > 0
    before = len(heard)
    con.uql(query).fetchall()
    assert len(heard) == before


def test_a_search_by_the_papers_method_may_explore(large):
    found = {}
    for explore in ("", ", explore = 0.9"):
        con = large.connect(budget=120, examples=False)
        result = con.uql(f"SELECT id FROM reviews WHERE {POSITIVE} WITH (method = 'uqe'{explore})")
        found[explore] = len(result.fetchall())
    assert found[", explore = 0.9"] < found[""]


HEAVY = "exp(1.5 * sqrt(-2 * ln((hash(id) % 9973 + 1) / 9974.0)) * cos(6.2831853 * (hash(id + 7) % 9973) / 9973.0))"


@pytest.mark.parametrize(
    "asked, labelled, within",
    [
        (f"AVG(h) FILTER (WHERE NOT {POSITIVE})", "AVG(h) FILTER (WHERE sentiment <> 'pos')", 0.2),
        (f"SUM(h) FILTER (WHERE {POSITIVE} AND id > 20)", "SUM(h) FILTER (WHERE sentiment = 'pos' AND id > 20)", 0.4),
        (f"SUM(CASE WHEN {POSITIVE} THEN h ELSE 0 END)", "SUM(CASE WHEN sentiment = 'pos' THEN h ELSE 0 END)", 0.4),
        (f"AVG(CASE WHEN {POSITIVE} THEN h END)", "AVG(CASE WHEN sentiment = 'pos' THEN h END)", 0.2),
        (
            f"SUM(h) FILTER (WHERE {POSITIVE}) / COUNT(*) FILTER (WHERE {POSITIVE})",
            "SUM(h) FILTER (WHERE sentiment = 'pos') / COUNT(*) FILTER (WHERE sentiment = 'pos')",
            0.2,
        ),
        (f"SUM(h) FILTER (WHERE {POSITIVE}) / COUNT(*)", "SUM(h) FILTER (WHERE sentiment = 'pos') / COUNT(*)", 0.4),
    ],
)
def test_stored_values_of_rows_that_were_not_asked_are_known_to_every_sum_and_mean(large, asked, labelled, within):
    (truth,) = large.truth(f"SELECT {labelled} FROM (SELECT *, {HEAVY} AS h FROM r WHERE text IS NOT NULL)")[0]
    error = []
    for seed in range(4):
        con = large.connect(budget=120, seed=seed)
        source = f"(SELECT *, {HEAVY} AS h FROM reviews WHERE text IS NOT NULL) AS s"
        found = con.uql(f"SELECT {asked} AS x FROM {source}").estimates["x"]
        assert found.low <= truth <= found.high and not found.exact
        error.append(found.value / truth - 1)
    assert sum(e * e for e in error) / len(error) < within**2


@pytest.mark.parametrize(
    "where, most_calls",
    [
        ('("the review is a joke" OR stars = 5) AND "the review is about the plot"', 50),
        (f'"the review is about the plot" AND NOT ({POSITIVE} AND stars < 5)', 54),
        (f"NOT {POSITIVE}", 25),
    ],
)
def test_a_search_learns_the_formula_with_the_leaves_that_are_known(large, where, most_calls):
    calls = []
    for seed in range(3):
        result = large.connect(budget=250, seed=seed).uql(f"SELECT id FROM reviews WHERE {where} LIMIT 20")
        assert len(result.fetchall()) == 20
        calls.append(result.cost.calls)
    assert sum(calls) / len(calls) <= most_calls

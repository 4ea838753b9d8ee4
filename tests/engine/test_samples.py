"""How a query uses samples: shares without WHERE, rows that the ledger knows, tokens as budget, small groups."""

import itertools
import re

import pytest
from hash_model import HashModel

import uql
from uql.base.errors import BudgetError
from uql.llm.providers.base import Price
from uql.sampling.asd import AsdSampler

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


def test_rows_that_are_known_to_fail_leave_their_calls_to_others_of_the_sample(large):
    """A row without a text costs no call: it is no part of the sample, whose calls are those of the budget."""
    con = large.connect(budget=120)
    result = con.uql(f'SELECT AVG("the number of stars"::INTEGER) AS a FROM reviews WHERE {POSITIVE}')
    (truth,) = large.truth("SELECT AVG(rating) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL")[0]
    found = result.estimates["a"]
    assert result.cost.calls >= 118 and found.low <= truth <= found.high


@pytest.mark.parametrize("asked_before", ["", " AND id < 900"])
def test_values_of_rows_whose_where_is_known_are_a_sample_where_they_do_not_all_fit(large, asked_before):
    """They would have been asked along with it: what is left of that takes a call of its own for each row that passes."""
    con = large.connect(budget="all")
    con.uql(f"SELECT COUNT(*) FROM reviews WHERE {POSITIVE}{asked_before}").fetchall()
    result = con.uql(
        f'SELECT AVG("the number of stars"::INTEGER) AS a, SUM("the number of stars"::INTEGER) AS s FROM reviews WHERE {POSITIVE} WITH (budget = 60)'
    )
    (truth,) = large.truth("SELECT (AVG(rating), SUM(rating)) FROM r WHERE sentiment = 'pos' AND text IS NOT NULL")[0]
    assert result.cost.calls <= 60
    for name, value in zip("as", truth, strict=True):
        found = result.estimates[name]
        assert found.unknown == 0 and not found.exact and found.low <= value <= found.high < 4 * value


def test_a_share_stops_at_the_error_asked_for(large):
    con = large.connect(budget=1000)
    query = f"SELECT COUNT(*) FILTER (WHERE {POSITIVE}) AS n FROM reviews WITH (error = 0.2)"
    found = con.uql(query).estimates["n"]
    assert found.high - found.low <= 0.4 * found.value and found.calls < 300


def test_a_count_stops_at_the_error_asked_for(large):
    con = large.connect(budget=1000)
    found = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (error = 0.2)").estimates["n"]
    assert found.high - found.low <= 0.4 * found.value and found.calls in (62, 64, 128, 256)


def wide_notes(con, condition, options=""):
    result = con.uql(f"SELECT COUNT(*) AS n FROM reviews WHERE {condition} {options}")
    result.run()
    return [note for note in result.notes if "the interval is wide" in note]


def test_a_wide_interval_says_about_how_many_rows_would_narrow_it(large):
    con = large.connect(budget=40)
    (note,) = wide_notes(con, POSITIVE, "WITH (budget = 12)")
    assert re.fullmatch(
        r"the interval is wide: about [\d,]+ of [\d,]+ rows would give ±10%: WITH \(error = 0\.1\)", note
    )
    assert wide_notes(con, POSITIVE, "WITH (budget = 400)") == [], "it is narrow"
    assert wide_notes(con, POSITIVE, "WITH (error = 0.3, budget = 20)") == [], "an error was asked for"
    assert wide_notes(con, POSITIVE, "WITH (exact)") == []


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


def test_a_search_by_the_papers_method_may_explore_and_does_so_less_with_each_batch(large):
    found = {}
    for explore in ("", ", explore = 0.9"):
        con = large.connect(budget=120, examples=False)
        result = con.uql(f"SELECT id FROM reviews WHERE {POSITIVE} WITH (method = 'uqe'{explore})")
        found[explore] = len(result.fetchall())
    assert 0.8 * found[""] < found[", explore = 0.9"] < found[""], "a share that stays finds 0.6 as many"


HEAVY = "exp(1.5 * sqrt(-2 * ln((hash(id) % 9973 + 1) / 9974.0)) * cos(6.2831853 * (hash(id + 7) % 9973) / 9973.0))"


@pytest.mark.thorough
@pytest.mark.one_in(2)
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


@pytest.mark.thorough
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


def test_a_search_spends_every_call_on_rows_while_it_finds_some(large):
    query = f"SELECT id FROM reviews WHERE {POSITIVE} WITH (budget = 256{{}})"
    plain = large.connect(seed=1).uql(query.format(""))
    told = large.connect(seed=1).uql(query.format(", total = 0.125"))
    assert len(plain.fetchall()) > len(told.fetchall())
    assert any("of about" in note for note in told.notes)
    assert any("total = 0.125" in note for note in plain.notes)
    assert plain.cost.calls <= 256 and told.cost.calls <= 256


def test_a_search_that_finds_nothing_more_says_how_many_there_may_be(large):
    query = 'SELECT id FROM reviews WHERE "the review is positive" AND "the topic" = \'sport\' WITH (budget = 256{})'
    assert any("of about" in note for note in large.connect().uql(query.format("")).notes)
    assert not any("of about" in note for note in large.connect().uql(query.format(", total = 0")).notes)


COUNTED = f"SELECT COUNT(*) AS n FROM reviews WHERE {POSITIVE} WITH (error = {{}})"


def half_width(found):
    return (found.high - found.low) / 2 / found.value


@pytest.mark.parametrize("budget", [None, "all", 1500])
def test_an_error_is_reached_by_as_many_calls_as_it_takes(large, budget):
    result = large.connect(budget=budget).uql(COUNTED.format(0.08))
    found = result.estimates["n"]
    assert half_width(found) <= 0.08 and not result.partial
    assert 64 <= result.cost.calls <= 600


@pytest.mark.parametrize("budget", [None, "all", 1500])
@pytest.mark.parametrize("key", ['"the kind"', "\"the kind\"::ENUM('a', 'b', 'c')"])
def test_an_error_of_groups_that_a_model_names_is_reached_by_as_many_calls_as_it_takes(key, budget):
    con = guessed(budget=budget)
    query = f"SELECT k, COUNT(*) AS n FROM notes GROUP BY {key} AS k WITH (error = 0.2)"
    result = con.uql(query)
    price = result.quote().calls
    assert max(map(half_width, result.estimates["n"])) <= 0.2 and not result.partial
    assert 128 < result.cost.calls < 600 and price.low <= result.cost.calls <= price.high
    again = con.uql(query)
    assert again.fetchall() == result.fetchall() and again.cost.calls == 0


@pytest.mark.thorough
def test_intervals_of_groups_hold_where_the_sample_ends_by_their_width():
    held = []
    for seed in range(8):
        con = guessed(seed=seed)
        query = 'SELECT k, COUNT(*) AS n FROM notes GROUP BY "the kind" AS k'
        result = con.uql(f"{query} WITH (error = 0.2)")
        told = dict(zip((k for k, _ in result.fetchall()), result.estimates["n"], strict=True))
        held += [told[k].low <= n <= told[k].high for k, n in con.uql(f"{query} WITH (exact)").fetchall()]
    assert len(held) == 24 and sum(held) >= 21


def guessed(price=None, rates=None, **settings):
    """A table of texts that tell nothing of the answers."""
    con = uql.connect(model=HashModel(rates, price), ledger=":memory:", **settings)
    con.sql(
        "SELECT i AS id, 'note ' || i || ' of a customer, which says nothing' AS text FROM range(3000) r(i)"
    ).create("notes")
    return con


GUESSED = 'SELECT COUNT(*) AS n FROM notes WHERE "the note is kind" WITH (error = 0.1)'


def test_the_calls_of_an_error_are_told_before_they_are_made():
    con, heard = guessed(), []
    con.on_event(heard.append)
    result = con.uql(GUESSED)
    calls = result.cost.calls
    (at,) = [i for i, event in enumerate(heard) if event.kind == "foretold"]
    before = sum(event.kind == "call" for event in heard[:at])
    assert before < calls <= before + heard[at].calls
    assert half_width(result.estimates["n"]) <= 0.1 and not result.partial
    assert 128 < calls < 600  # a uniform sample takes 340


def test_an_error_of_a_rare_condition_is_foretold_again_before_the_rows_are_more_than_twice_as_many(monkeypatch):
    """A pilot that saw few yeses foretells far more rows than a sample takes that learns on the way."""
    sizes, more = [], AsdSampler.more

    def noted(sampler, budget, look=0):
        sizes.append(budget)
        more(sampler, budget, look)

    monkeypatch.setattr(AsdSampler, "more", noted)
    con = guessed(rates={"the note is kind": 0.1})
    assert half_width(con.uql(GUESSED.replace("0.1", "0.25")).estimates["n"]) <= 0.25
    assert len(sizes) > 2
    assert all(after <= 2 * before for before, after in itertools.pairwise(sizes))


def test_an_error_that_is_dear_is_refused_with_what_it_takes():
    dear = Price(2000.0, 0.0)
    con = guessed(dear)
    with pytest.raises(BudgetError) as refused:
        con.uql(GUESSED).fetchall()
    assert refused.value.code == "UQL401" and "confirm_over" in str(refused.value)
    assert "budget = " in refused.value.help
    assert half_width(con.uql(GUESSED.replace("0.1", "0.1, budget = 600")).estimates["n"]) <= 0.1
    assert half_width(guessed(dear, confirm_over=100.0).uql(GUESSED).estimates["n"]) <= 0.1


def test_an_error_that_max_cost_bounds_is_not_refused_for_what_it_would_cost_without():
    dear = Price(2000.0, 0.0)
    with pytest.raises(BudgetError, match="confirm_over"):
        guessed(dear, confirm_over=20.0).uql(GUESSED).fetchall()
    result = guessed(dear, confirm_over=20.0).uql(GUESSED.replace("0.1", "0.1, max_cost = 15"))
    result.fetchall()
    assert result.partial and 10 < result.cost.usd <= 15


def test_an_error_that_was_not_reached_is_said(large):
    result = large.connect(budget=80).uql(COUNTED.format(0.02))
    assert half_width(result.estimates["n"]) > 0.02
    assert result.partial and result.cost.calls <= 80
    assert any("was not reached" in note for note in result.notes)


def test_an_error_of_an_average_that_a_model_reads_is_watched_too(large):
    query = 'SELECT AVG("the number of stars"::INTEGER) AS a FROM reviews WHERE text IS NOT NULL WITH (error = 0.1)'
    result = large.connect().uql(query)
    assert half_width(result.estimates["a"]) <= 0.1 and not result.partial


@pytest.mark.thorough
@pytest.mark.one_in(3)
@pytest.mark.parametrize("budget", [1, 2, 4, 9])
@pytest.mark.parametrize("condition", [POSITIVE, '"the review is a joke"'])
def test_what_is_not_exact_has_a_width_or_is_open_with_a_reason(world, budget, condition):
    stars = '"the number of stars"::INTEGER'
    items = {
        "n": "COUNT(*)",
        "total": f"SUM({stars})",
        "mean": f"AVG({stars})",
        "product": f"SUM(id * {stars})",
        "stored": "AVG(id)",
        "per": f"SUM({stars}) * 1.0 / COUNT(*)",
        "twice": f"2 * AVG({stars})",
        "same": f"AVG(7 * ({stars}))",
        "least": "MIN(id)",
    }
    listed = ", ".join(f"{item} AS {name}" for name, item in items.items())
    for tail in ("", " GROUP BY film"):
        for where in (f" WHERE {condition}", ""):
            con = world.connect(budget=budget, seed=budget)
            result = con.uql(f"SELECT {listed} FROM reviews{where}{tail}")
            notes = " ".join(result.run().notes)
            for name, found in result.estimates.items():
                for e in found if isinstance(found, list) else [found]:
                    if e.exact or e.low is None:
                        continue
                    assert e.high > e.low, (name, where, tail, e)
                    if name == "mean" and e.low == float("-inf"):
                        assert "no interval" in notes


@pytest.mark.parametrize("term", ["NULL", "id % 7", "NULL::VARCHAR"])
def test_a_search_takes_a_term_of_any_type_as_duckdb_does(term):
    con = uql.connect(model=HashModel({"it is rare": 0.3}), ledger=":memory:", budget=40)
    con.session.duck.execute("CREATE TABLE t AS SELECT i AS id, 'This is text ' || i AS body FROM range(200) r(i)")
    found = con.uql(f'SELECT id FROM t WHERE "it is rare" OR {term}')
    assert found.fetchall() and found.cost.calls <= 40

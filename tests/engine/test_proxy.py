"""A score of the user's own guides searches and samples, and breaks no interval."""

import pytest
from hash_model import HashModel

import uql
from uql.base.errors import ConfigError

KIND = '"the note is kind"'


@pytest.fixture
def con():
    con = uql.connect(model=HashModel(answers=lambda question, row: "7" in row.cells[0].value), ledger=":memory:")
    con.sql(
        "SELECT i AS id, 'note ' || hash(i) || ' of a customer, which tells nothing' AS text, "
        "('note ' || hash(i)) LIKE '%77%' AS often, random() AS noise FROM range(3000) r(i)"
    ).create("notes")
    con.sql("SELECT *, CASE WHEN text LIKE '%7%' THEN 0.7 ELSE 0.2 END + 0.2 * noise AS score FROM notes").create(
        "scored"
    )
    return con


def rows(con, options):
    return len(con.uql(f"SELECT id FROM scored WHERE NOT {KIND} WITH (budget = 128{options})").fetchall())


@pytest.mark.parametrize("proxy", ["-score", "1 - scored.score", "CASE WHEN score < 0.5 THEN 1.5 ELSE 0 END"])
def test_a_search_begins_with_the_rows_that_score_high(con, proxy):
    without = rows(con, ", seed = 1")
    assert rows(con, f", proxy = '{proxy}', seed = 2") >= max(120, without + 10)


@pytest.mark.filterwarnings("error")
def test_a_score_of_very_large_numbers_guides_as_any_other(con):
    found = con.uql(f"SELECT id FROM scored WHERE {KIND} WITH (budget = 64, proxy = 'score * 1e300')").fetchall()
    assert len(found) > 55


def test_a_count_by_a_score_has_a_narrow_interval_that_holds(con):
    ((truth,),) = con.sql("SELECT count(*) FROM scored WHERE text LIKE '%7%'").fetchall()
    query = f"SELECT COUNT(*) AS n FROM scored WHERE {KIND} WITH (budget = 128, seed = 3{{}})"
    plain, led = (con.uql(query.format(more)).estimates["n"] for more in ("", ", proxy = 'score'"))
    assert led.low <= truth <= led.high
    assert led.high - led.low < 0.7 * (plain.high - plain.low)


def test_a_score_that_says_nothing_breaks_no_interval(con):
    ((truth,),) = con.sql("SELECT count(*) FROM scored WHERE text LIKE '%7%'").fetchall()
    query = f"SELECT COUNT(*) AS n FROM scored WHERE {KIND} WITH (budget = 128, seed = {{}}, proxy = 'noise')"
    found = [con.uql(query.format(seed)).estimates["n"] for seed in range(5)]
    assert sum(f.low <= truth <= f.high for f in found) >= 4


@pytest.mark.parametrize(
    ("proxy", "said"),
    [
        ("no_such", "no_such"),
        ("text", "not a number"),
        ("score +", "proxy"),
        ("max(score)", "proxy"),
        ("score::INT[][1:2]", "read"),
        ("score; score", "one expression"),
    ],
)
def test_a_proxy_that_is_no_number_of_a_row_is_refused_before_anything_is_asked(con, proxy, said):
    before = con.session.model.calls
    with pytest.raises(ConfigError) as refused:
        con.uql(f"SELECT id FROM scored WHERE {KIND} WITH (proxy = '{proxy}')").fetchall()
    assert said in str(refused.value) and refused.value.code == "UQL105" and "number" in refused.value.help
    assert con.session.model.calls == before

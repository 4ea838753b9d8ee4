"""What is easily meant otherwise is said, with what to write; a script is bound whole before its first call is paid for."""

from __future__ import annotations

import pytest

from uql.base.errors import UQLError


@pytest.fixture
def con(labels):
    return labels.uql(budget="all")


@pytest.mark.parametrize(
    ("query", "written"),
    [
        ('SELECT COUNT("the review is positive") FROM reviews', 'COUNT(*) FILTER (WHERE "the review is positive")'),
        ('SELECT COUNT("the main topic"::BOOLEAN) FROM reviews', 'COUNT(*) FILTER (WHERE "the main topic")'),
        ('SELECT COUNT(p) FROM (SELECT id, "the review is positive" AS p FROM reviews) AS x WHERE p', None),
        ('SELECT id FROM reviews WHERE text LIKE "the review is positive"', 'WHERE "the review is positive"'),
        ('SELECT id FROM reviews WHERE text LIKE "free text"', 'WHERE "free text"'),
        ('SELECT id FROM reviews WHERE text NOT ILIKE "the review is a joke"', 'WHERE "the review is a joke"'),
        ('SELECT id FROM reviews WHERE "the review is positive" > 3', "how much"),
    ],
)
def test_a_silent_trap_is_a_warning_that_says_what_to_write(con, query, written):
    warnings = con.uql(query).warnings
    if written is None:
        assert warnings == []
    else:
        assert any("UQL102" in warning and written in warning for warning in warnings), warnings


@pytest.mark.parametrize(
    "query",
    [
        'SELECT COUNT("the number of stars") FROM reviews',
        'SELECT id FROM reviews WHERE text LIKE "%a waste of%"',
        "SELECT id FROM reviews WHERE film LIKE 'the review is positive'",
        'SELECT id FROM reviews WHERE "the number of stars" > 3',
    ],
)
def test_what_is_meant_as_it_is_written_has_no_warning(con, query):
    assert not con.uql(query).warnings


@pytest.mark.thorough
@pytest.mark.parametrize(
    "query",
    [
        'SELECT "the number of stars" AS r FROM reviews ORDER BY r',
        'SELECT film, "the number of stars" FROM reviews ORDER BY 2, film',
        'SELECT r FROM (SELECT film, "the number of stars" AS r FROM reviews) ORDER BY 1',
        'SELECT r, count(*) FROM (SELECT "the number of stars" AS r FROM reviews) GROUP BY r ORDER BY r',
        'SELECT id, "the number of stars" AS r, rank() OVER (ORDER BY "the number of stars", id) AS place FROM reviews',
        'SELECT DISTINCT ON (film) film, "the number of stars" FROM reviews ORDER BY film, "the number of stars"',
        'SELECT greatest("the number of stars", "how angry the review is") FROM reviews',
    ],
)
def test_numbers_in_the_order_of_their_letters_are_a_warning(con, query):
    result = con.uql(query)
    result.fetchall()
    assert any('write "the number of stars"::DOUBLE' in warning for warning in result.warnings), result.warnings
    typed = con.uql(query.replace('stars"', 'stars"::DOUBLE').replace('is")', 'is"::DOUBLE)'))
    typed.fetchall()
    assert not any("the number of stars" in warning for warning in typed.warnings)


def test_words_in_the_order_of_their_letters_have_no_warning(con):
    result = con.uql('SELECT n FROM (SELECT "the reviewer\'s name" AS n FROM reviews) ORDER BY n')
    result.fetchall()
    assert result.warnings == []


@pytest.mark.parametrize("item", ["greatest({0}, 3)", "{0} + 1"])
def test_words_where_a_number_is_asked_for_are_a_warning(con, item):
    for text, warned in (('"the reviewer\'s name"', True), ('"the number of stars"', False)):
        result = con.uql(f"SELECT {item.format(text)} AS n FROM reviews")
        result.fetchall()
        assert any(f"write {text}::VARCHAR" in warning for warning in result.warnings) is warned, result.warnings


def test_rows_that_say_nothing_have_no_warning(con):
    result = con.uql('SELECT sum("the number of stars") AS n FROM quiet')
    assert result.fetchall() == [(None,)]
    assert result.warnings == []


def test_a_text_close_to_a_column_is_a_warning(con):
    con.execute("CREATE OR REPLACE TABLE customers AS SELECT text, stars AS sign_up_date FROM reviews LIMIT 1")
    try:
        plan = con.uql('SELECT text FROM customers WHERE "sign up dat" = 3 AND false').warnings
    finally:
        con.execute("DROP TABLE customers")
    assert any("sign_up_date" in warning and "PROMPT" in warning for warning in plan)


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("query", "code", "help"),
    [
        ('SELECT id FROM reviews WHERE "the main topic" > "the number of stars"', "UQL206", "PROMPT"),
        (
            'SELECT id FROM reviews WHERE "the review is good" = "it is a joke"',
            "UQL206",
            '"the review is good"::BOOLEAN',
        ),
        ('SELECT id FROM reviews WHERE "the review is positive" WITH budget = 5', "UQL100", "WITH (budget = 5)"),
        ('SELECT id FROM reviews WHERE "the review is positive" budget = 5', "UQL100", "WITH (budget = 5)"),
        ("SET budget = 5", "UQL100", "SET uql.budget = 5"),
        ("SET model = 'local'", "UQL100", "SET uql.model = 'local'"),
        ('SELECT id FROM reviews WHERE SEMANTIC("the review is positive")', "UQL209", "double quotes asks"),
        ("SELECT LLM(text, 'the main topic') FROM reviews", "UQL209", "double quotes asks"),
        ('SELECT ask_llm("the main topic") FROM reviews', "UQL209", "double quotes asks"),
        ('SELECT "the main topic"::ENUM(billing, tech) FROM reviews', "UQL100", "ENUM('billing', 'tech')"),
        ('SELECT "the main topic"::ENUM(plot) FROM reviews', "UQL100", "ENUM('plot')"),
        ("SELECT id FROM reviews WHERE the review is positive", "UQL100", '"the review is positive"'),
        ("SELECT the main topic FROM reviews", "UQL100", '"the main topic"'),
        ("SELECT count(*) FROM reviews GROUP BY the main topic", "UQL100", '"the main topic"'),
        ("SELECT id FROM reviews ORDER BY how angry the review is DESC", "UQL100", '"how angry the review is"'),
        ("SELECT CASE WHEN stars > 2 THEN film ELSE stars END FROM reviews", "UQL209", "one type"),
        ("SELECT CASE WHEN <pos> THEN 1 ELSE 'no' END FROM reviews", "UQL509", "one type"),
        ("SELECT id FROM reviews WHERE film AND <pos>", "UQL509", "TRY_CAST"),
        ("INSERT INTO films SELECT 'x', 'y'", "UQL509", "TRY_CAST"),
        ("SELECT DISTINCT ON film, id FROM reviews WHERE <pos>", "UQL100", "DISTINCT ON (film)"),
        ('SELECT "the number of stars"::INTGER FROM reviews', "UQL209", "did you mean INTEGER?"),
        ("SELECT list_contains(3, stars) FROM reviews WHERE <pos>", "UQL209", "list_contains(list T[], element T)"),
    ],
)
def test_the_help_shows_what_to_write(con, query, code, help):
    query = query.replace("<pos>", '"the review is positive"')
    with pytest.raises(UQLError) as error:
        con.uql(query).fetchall()
    assert error.value.code == code
    assert help in (error.value.help or "")
    assert error.value.start >= 0, "an error has a place"


@pytest.mark.parametrize(
    "query",
    [
        "SELECT CASE WHEN <pos> THEN 1 ELSE 'no' END FROM reviews",
        "SELECT CASE WHEN id > 3 THEN \"the number of stars\"::INTEGER ELSE 'none' END AS n FROM reviews",
        "SELECT film, SUM(CASE WHEN <pos> THEN stars ELSE 'none' END) AS n FROM reviews GROUP BY film",
    ],
)
def test_values_of_case_that_have_no_one_type_are_refused_before_anything_is_paid(con, query):
    with pytest.raises(UQLError, match="in CASE is not") as error:
        con.uql(query.replace("<pos>", '"the review is positive"'))
    assert error.value.text[error.value.start : error.value.end] in ("'no'", "'none'")


@pytest.mark.parametrize("value", ["'2'", "NULL", "'2020-01-01'::DATE::VARCHAR::DATE - '2020-01-01'::DATE"])
def test_strings_in_case_that_are_values_of_its_type_stay(con, value):
    query = f'SELECT CASE WHEN id > 3 THEN 1 ELSE {value} END AS n FROM reviews WHERE "the review is positive"'
    assert len(con.uql(query).fetchall()) > 0


PAID = 'SELECT id FROM reviews WHERE "the review is positive"'


@pytest.mark.parametrize(
    ("script", "code"),
    [
        (f"{PAID}; SELECT colum FROM reviews", "UQL202"),
        (f"{PAID} TO kept; SELECT nam FROM kept", "UQL202"),
        (f"CREATE TABLE made AS {PAID}; SELECT i FROM made", "UQL202"),
        (f"CREATE TABLE made AS {PAID}; SELECT id FROM mad", "UQL201"),
        (f"CREATE TABLE made AS {PAID}; INSERT INTO films {PAID}", "UQL509"),
        (f"CREATE TABLE made AS {PAID}; SELEC 1", "UQL100"),
        (f"BEGIN; {PAID}; SELECT nowhere FROM reviews; COMMIT", "UQL202"),
        (f"{PAID}; EXPLAIN SELECT x FROM reviews", "UQL202"),
        (f'{PAID}; SELECT id FROM (SELECT id, "the main topic"::VARCHAR AS c FROM reviews) AS q WHERE c', "UQL206"),
    ],
)
def test_what_is_wrong_with_a_script_is_said_before_anything_is_paid(con, script, code):
    calls = []
    con.on_event(lambda event: calls.append(event) if getattr(event, "kind", "") == "call" else None)
    with pytest.raises(UQLError) as error:
        con.uql(script).fetchall()
    assert error.value.code == code
    assert error.value.start >= 0
    assert not calls
    assert "made" not in con.catalog.names()


def test_a_script_may_name_what_its_statements_make(con):
    script = """CREATE TABLE made AS SELECT id, text, "the main topic" AS topic FROM reviews WHERE id < 9;
    SELECT topic, count(*) AS n FROM made WHERE "the review is positive" GROUP BY topic TO counted;
    CREATE TABLE plain (i INTEGER);
    INSERT INTO plain SELECT n FROM counted;
    ALTER TABLE plain ADD COLUMN j INTEGER;
    SELECT sum(i), count(j) FROM plain"""
    want = con.uql('SELECT count(*) FROM reviews WHERE "the review is positive" AND id < 9').fetchall()[0][0]
    try:
        assert con.uql(script).fetchall() == [(want, 0)]
    finally:
        for name in ("made", "counted", "plain"):
            con.execute(f"DROP TABLE IF EXISTS {name}")


def test_a_script_may_read_the_file_that_it_writes(con, tmp_path):
    path = tmp_path / "kept.csv"
    script = f"COPY (SELECT id FROM reviews WHERE id < 4) TO '{path}'; SELECT count(*) FROM '{path}'"
    assert con.uql(script).fetchall() == [(4,)]

"""Estimates and parts of the rows on their way into tables: none becomes a fact, by whatever statement, view or new connection."""

from __future__ import annotations

import duckdb
import pytest
from labels import both

import uql
from uql.base.errors import BudgetError

OK = "WITH (partial = true)"
KINDS = {  # what is not certain → a query for one number n, and whether n is an estimate
    "count": ("SELECT count(*) AS n FROM reviews WHERE <pos>", True),
    "sum": ("SELECT sum(stars)::BIGINT AS n FROM reviews WHERE <pos>", True),
    "ratio": ("SELECT 100.0 * count(*) FILTER (<joke>) / count(*) AS n FROM reviews WHERE <pos>", True),
    "average": ("SELECT avg(<rating>) AS n FROM reviews", True),
    "max": ("SELECT max(id) AS n FROM reviews WHERE <pos>", True),
    "min": ("SELECT min(id) AS n FROM reviews WHERE <pos>", True),
    "distinct": ("SELECT count(DISTINCT film) AS n FROM reviews WHERE <pos> AND <joke> AND <plot>", True),
    "search": ("SELECT id AS n FROM reviews WHERE <pos>", False),
    "sub-query": ("SELECT id AS n FROM reviews WHERE id IN (SELECT id FROM reviews WHERE <pos>)", False),
    "derived": ("SELECT 2 * x.c AS n FROM (SELECT count(*) AS c FROM reviews WHERE <pos>) x", True),
    "limit": ("SELECT id AS n FROM reviews WHERE <pos> AND <joke> AND <plot> ORDER BY <anger> LIMIT 1000", False),
    "union": ("SELECT count(*) AS n FROM reviews WHERE <pos> UNION ALL SELECT 7", True),
}


@pytest.fixture(scope="module")
def labels(many_labels):
    return many_labels


@pytest.fixture
def con(labels):
    made = labels.uql(budget=48)
    made.execute("CREATE TABLE bare (n DOUBLE); INSERT INTO bare VALUES (1), (2)")
    made.execute("CREATE TABLE t (n DOUBLE, n_low DOUBLE, n_high DOUBLE); INSERT INTO t VALUES (1, NULL, NULL)")
    made.execute("CREATE TABLE film (film VARCHAR PRIMARY KEY, n BIGINT, n_low DOUBLE, n_high DOUBLE)")
    made.execute("INSERT INTO film SELECT DISTINCT film, 0, NULL, NULL FROM reviews")
    return made


def run(con: uql.Connection, statement: str) -> uql.Result:
    return con.uql(both(statement)[0])


def refused(con: uql.Connection, statement: str, *tables: str) -> BudgetError:
    before = [con.execute(f"FROM {table} ORDER BY ALL").fetchall() for table in tables]
    with pytest.raises(BudgetError) as error:
        run(con, statement)
    assert error.value.code == "UQL401" and error.value.start >= 0
    assert before == [con.execute(f"FROM {table} ORDER BY ALL").fetchall() for table in tables]
    return error.value


def is_no_fact(con: uql.Connection, table: str) -> None:
    for query in (
        f"FROM {table}",
        f"SELECT count(*) AS c FROM {table}",
        f"SELECT * FROM (FROM {table}) x, {table} y LIMIT 2",
    ):
        found = con.uql(query)
        assert not found.exact and found.based_on, query


@pytest.mark.thorough
@pytest.mark.one_in(3)
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_not_certain_is_not_inserted_as_a_fact(con, kind):
    query, is_number = KINDS[kind]
    if kind == "limit":
        query = query.replace("ORDER BY <anger> ", "")
    error = refused(con, f"INSERT INTO bare {query}", "bare")
    assert "partial = true" in error.help
    assert con.uql("FROM bare").exact
    written = run(con, f"INSERT INTO t (n) {query} {OK}")
    assert not written.exact and written.columns == ["Count"]
    rows = con.execute("SELECT n, n_low, n_high FROM t").fetchall()
    assert rows[0] == (1, None, None) and len(rows) == 1 + written.fetchall()[0][0]
    if is_number:
        assert all(low <= n <= high for n, low, high in rows[1:])
        assert "ALTER TABLE bare ADD COLUMN n_low DOUBLE" in refused(con, f"INSERT INTO bare {query} {OK}", "bare").help
    is_no_fact(con, "t")
    assert any("INSERT INTO t" in said for said in con.uql("FROM t").based_on)


def test_exact_rows_are_inserted_and_the_table_stays_exact(con):
    for query, _ in KINDS.values():
        con.execute("DELETE FROM t")
        run(con, f"INSERT INTO t (n) {query.replace('ORDER BY <anger> LIMIT 1000', '')} WITH (budget = 'all')")
        assert con.uql("FROM t").exact and con.execute("SELECT count(*) FROM t").fetchone()[0]


def test_rows_that_were_returned_unasked_and_answers_that_are_missing_are_no_facts(con, labels):
    refused(con, "INSERT INTO bare SELECT id FROM reviews WHERE <pos> WITH (precision = 0.6, budget = 100)", "bare")
    broken = labels.uql(budget="all", max_tokens=2000)
    broken.execute("CREATE TABLE bare (n DOUBLE)")
    refused(broken, "INSERT INTO bare SELECT id FROM reviews WHERE <pos>", "bare")


@pytest.mark.one_in(2)
def test_rows_whose_values_the_budget_did_not_reach_are_no_facts(labels):
    con = labels.uql(budget=16)
    run(con, "SELECT count(*) AS n FROM reviews WHERE <pos> WITH (exact)").fetchall()
    con.execute("CREATE TABLE bare (n DOUBLE)")
    named = "SELECT id AS n FROM (SELECT id, <name> AS name FROM reviews WHERE <pos>) AS named WHERE name IS NOT NULL"
    result = run(con, named)
    assert result.partial and not result.exact and any("has no calls for" in note for note in result.notes)
    refused(con, f"INSERT INTO bare {named}", "bare")
    run(con, f"CREATE TABLE made AS {named}").fetchall()
    is_no_fact(con, "made")


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO film (film, n) {} WITH (partial = true)",
        "INSERT INTO film {} WITH (partial = true)",
        "INSERT INTO film BY NAME {} WITH (partial = true)",
        "INSERT OR REPLACE INTO film {} WITH (partial = true)",
        "INSERT INTO film ({}) WITH (partial = true)",
        "INSERT INTO film {} ON CONFLICT DO UPDATE SET n = excluded.n, n_low = excluded.n_low, n_high = excluded.n_high"
        " WITH (partial = true)",
        "INSERT INTO film (film, n) {} WITH (partial = true) RETURNING film",
    ],
)
def test_every_form_of_insert_takes_the_intervals_along(con, statement):
    if "REPLACE" not in statement and "CONFLICT" not in statement:
        con.execute("DELETE FROM film")
    query = "SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film"
    refused(con, statement.format(query).replace(OK, ""), "film")
    found = run(con, statement.format(query))
    rows = con.execute("SELECT film, n, n_low, n_high FROM film").fetchall()
    assert len(rows) == 3 and all(low <= n <= high and low < high for _, n, low, high in rows)
    assert "RETURNING" not in statement or sorted(found.fetchall()) == sorted((f,) for f, *_ in rows)
    is_no_fact(con, "film")
    again = con.uql("SELECT n FROM film ORDER BY film").estimates["n"]
    assert sorted((e.low, e.high) for e in again) == sorted((low, high) for *_, low, high in rows)


def test_a_conflict_that_would_leave_the_old_interval_is_refused(con):
    query = "SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film"
    error = refused(con, f"INSERT INTO film {query} ON CONFLICT DO UPDATE SET n = excluded.n {OK}", "film")
    assert "n_low" in error.help


SUB = "(SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film)"


@pytest.mark.one_in(2)
@pytest.mark.parametrize(
    ("statement", "written"),
    [
        ("UPDATE film SET n = (SELECT count(*) AS n FROM reviews WHERE <pos>) WHERE film = 'Alien'", 1),
        ("UPDATE film SET n = (SELECT 2 * x.c AS n FROM (SELECT count(*) AS c FROM reviews WHERE <pos>) x)", 3),
        ("UPDATE film SET film = upper(film), n = (SELECT count(*) FROM reviews WHERE <pos>)", 3),
        (f"UPDATE film SET n = s.n, n_low = s.n_low, n_high = s.n_high FROM {SUB} s WHERE s.film = film.film", 3),
        (
            f"MERGE INTO film USING {SUB} s ON s.film = film.film WHEN MATCHED THEN UPDATE SET n = s.n, n_low = s.n_low, n_high = s.n_high",
            3,
        ),
        (
            f"MERGE INTO film USING {SUB} s ON s.film = film.film AND false WHEN NOT MATCHED THEN"
            " INSERT VALUES (s.film || '!', s.n, s.n_low, s.n_high)",
            3,
        ),
    ],
)
def test_update_and_merge_take_the_intervals_along(con, statement, written):
    refused(con, statement, "film")
    run(con, f"{statement} {OK}")
    rows = con.execute("SELECT n, n_low, n_high FROM film WHERE n > 0").fetchall()
    assert len(rows) == written and all(low <= n <= high and low < high for n, low, high in rows)
    is_no_fact(con, "film")


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE bare SET n = (SELECT count(*) FROM reviews WHERE <pos>)",
        "UPDATE bare SET n = 1 + (SELECT count(*) FROM reviews WHERE <pos>)",
        f"UPDATE bare SET n = s.n FROM {SUB} s",
        f"MERGE INTO bare USING {SUB} s ON s.n = bare.n WHEN NOT MATCHED THEN INSERT VALUES (s.n)",
        f"INSERT INTO bare SELECT 2 * n FROM {SUB} s WHERE n IN (PIVOT (SELECT 1 AS a) ON a)",
    ],
)
def test_an_estimate_goes_nowhere_without_its_interval(con, statement):
    assert "_low" in refused(con, f"{statement} {OK}", "bare").help
    assert con.uql("FROM bare").exact


@pytest.mark.thorough
@pytest.mark.parametrize(
    "statement",
    [
        "DELETE FROM bare WHERE n IN (SELECT id FROM reviews WHERE <pos>)",
        "DELETE FROM bare WHERE n < (SELECT count(*) FROM reviews WHERE <pos>)",
        "UPDATE bare SET n = 8 WHERE n IN (SELECT id FROM reviews WHERE <pos>)",
        "MERGE INTO bare USING (SELECT id FROM reviews WHERE <pos>) s ON s.id = bare.n WHEN NOT MATCHED THEN INSERT VALUES (s.id)",
    ],
)
def test_rows_that_a_part_chose_are_changed_where_that_is_said(con, statement):
    refused(con, statement, "bare")
    run(con, f"{statement} {OK}")
    is_no_fact(con, "bare")


@pytest.mark.thorough
@pytest.mark.one_in(7)
@pytest.mark.parametrize(
    "statement",
    [
        "INSERT INTO bare SELECT n FROM {0}",
        "INSERT INTO bare BY NAME SELECT n FROM {0}",
        "INSERT INTO bare (n) SELECT n FROM {0} RETURNING n",
        "UPDATE bare SET n = e.n FROM {0} e",
        "UPDATE bare SET n = (SELECT max(n) FROM {0})",
        "WITH x AS (FROM {0}) UPDATE bare SET n = x.n FROM x",
        "MERGE INTO bare USING {0} e ON e.n = bare.n WHEN NOT MATCHED THEN INSERT VALUES (e.n)",
        "DELETE FROM bare WHERE n NOT IN (SELECT n FROM {0})",
        "COPY (SELECT n FROM {0}) TO '{1}'",
        "COPY {0} TO '{1}'",
    ],
)
@pytest.mark.parametrize("source", ["kept", "seen", "over", "main.over"])
def test_what_a_table_of_estimates_holds_is_no_fact_by_way_of_a_second_statement(con, statement, source, tmp_path):
    run(con, "SELECT count(*) AS n FROM reviews WHERE <pos> TO kept")
    con.execute(
        "CREATE VIEW seen AS SELECT n FROM kept; CREATE VIEW over AS WITH x AS (FROM seen) SELECT x.n, 1 AS a FROM x"
    )
    statement = statement.format(source, tmp_path / "out.csv")
    if source == "main.over":
        statement = statement.replace("main.over e", "main.over AS e")
    refused(con, statement, "bare")
    assert con.uql("FROM bare").exact and not (tmp_path / "out.csv").exists()
    if statement.startswith("INSERT"):
        con.execute("ALTER TABLE bare ADD COLUMN n_low DOUBLE; ALTER TABLE bare ADD COLUMN n_high DOUBLE")
    tail = statement.replace(" RETURNING", f" {OK} RETURNING") if "RETURNING" in statement else f"{statement} {OK}"
    run(con, statement.replace(")", f" {OK})", 1) if statement.startswith("COPY (") else tail)
    if "COPY" not in statement:
        is_no_fact(con, "bare")
    else:
        assert (tmp_path / "out.csv").exists()


def test_a_view_over_estimates_is_no_fact_and_shows_the_intervals_that_it_has(con):
    run(con, "CREATE TABLE kept AS SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film")
    con.uql("CREATE VIEW seen AS SELECT * FROM kept")
    con.uql("CREATE VIEW other AS SELECT film FROM seen JOIN films USING (film)")
    con.uql("CREATE VIEW plain AS SELECT film FROM films")
    is_no_fact(con, "seen")
    is_no_fact(con, "other")
    assert con.uql("FROM plain").exact
    held = con.uql("SELECT film, n FROM seen ORDER BY film").estimates["n"]
    ends = con.sql("SELECT n_low, n_high FROM kept ORDER BY film").fetchall()
    assert [(e.low, e.high) for e in held] == ends
    assert not con.uql("PIVOT seen ON film USING sum(n)").exact
    assert con.uql("PIVOT plain ON film USING count(*)").exact


@pytest.mark.thorough
def test_a_database_that_is_opened_again_knows_what_is_no_fact(labels, tmp_path):
    path = str(tmp_path / "kept.duckdb")
    with labels.uql(budget=48) as con, duckdb.connect(path) as made:
        made.register("source", con.sql("FROM reviews").to_arrow_table())
        made.execute("CREATE TABLE reviews AS FROM source; CREATE TABLE t (n BIGINT, n_low DOUBLE, n_high DOUBLE)")
        made.execute("COMMENT ON TABLE t IS 'counts of all days'; INSERT INTO t VALUES (5, NULL, NULL)")
        made.execute("CREATE VIEW seen AS SELECT n FROM t")
    model = con.configured.model
    with uql.connect(path, model=model, ledger=":memory:", budget=48) as con:
        assert con.uql("FROM seen").exact
        run(con, f"INSERT INTO t (n) SELECT count(*) FROM reviews WHERE <pos> {OK}")
    for _ in range(2):
        with uql.connect(path, model=model, ledger=":memory:", budget=48) as con:
            is_no_fact(con, "t")
            is_no_fact(con, "seen")
            comment = con.sql("SELECT comment FROM duckdb_tables() WHERE table_name = 't'").fetchall()[0][0]
            assert comment.startswith("counts of all days\n") and comment.count("estimated by UQL") == 1
            run(con, f"INSERT INTO t (n) SELECT sum(stars) FROM reviews WHERE <pos> {OK}")


def test_an_insert_with_estimates_is_whole_or_not_there(con):
    con.execute("CREATE TABLE small (n TINYINT CHECK (n < 5), n_low DOUBLE, n_high DOUBLE)")
    with pytest.raises(uql.UQLError):
        run(con, f"INSERT INTO small (n) SELECT count(*) FROM reviews WHERE <pos> {OK}")
    assert con.uql("FROM small").exact and con.uql("FROM small").fetchall() == []
    con.uql("BEGIN")
    run(con, f"INSERT INTO t (n) SELECT count(*) FROM reviews WHERE <pos> {OK}")
    con.uql("ROLLBACK")
    assert con.uql("FROM t").exact


def test_exact_rows_in_a_table_of_estimates_have_an_interval_too(con):
    run(con, "SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film TO kept")
    run(con, "INSERT INTO kept SELECT 'all', count(*) AS n FROM reviews WHERE <pos> WITH (budget = 'all')")
    n, low, high = con.sql("SELECT n, n_low, n_high FROM kept WHERE film = 'all'").fetchall()[0]
    assert n == low == high


def test_columns_of_the_users_that_are_called_like_ends_are_left_alone(con):
    run(con, "SELECT count(*) AS n FROM reviews WHERE <pos> TO kept")
    run(con, "INSERT INTO t (n) SELECT count(*) AS n FROM reviews WHERE <pos> WITH (budget = 'all')")
    assert con.execute("SELECT n_low, n_high FROM t").fetchall() == [(None, None)] * 2
    assert con.uql("FROM t").exact


def test_the_ends_of_what_was_asked_of_every_row_are_its_value(con):
    statement = f"UPDATE film SET n = s.n, n_low = s.n_low, n_high = s.n_high FROM {SUB} s WHERE s.film = film.film"
    run(con, f"{statement} WITH (budget = 'all')")
    assert all(n == low == high for _, n, low, high in con.execute("FROM film").fetchall())
    assert con.uql("FROM film").exact


def test_a_table_of_the_users_is_not_replaced_by_to_because_estimates_went_into_it(con):
    run(con, f"INSERT INTO t (n) SELECT count(*) FROM reviews WHERE <pos> {OK}")
    with pytest.raises(uql.UQLError) as error:
        run(con, "SELECT id FROM reviews WHERE id < 3 TO t")
    assert error.value.code == "UQL203"


def test_copy_writes_the_intervals_where_a_part_is_said_to_do(con, tmp_path):
    path = tmp_path / "n.csv"
    query = "SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film"
    refused(con, f"COPY ({query}) TO '{path}'")
    assert not path.exists()
    assert run(con, f"COPY ({query} {OK}) TO '{path}'").fetchall() == [(3,)]
    assert path.read_text().startswith("film,n,n_low,n_high\n")


def test_a_registered_result_that_is_no_fact_is_none_under_its_name(con):
    found = run(con, "SELECT count(*) AS n FROM reviews WHERE <pos>")
    con.register("mine", found)
    is_no_fact(con, "mine")
    assert con.uql("SELECT n FROM mine").estimates["n"][0].low == found.estimates["n"].low


@pytest.mark.thorough
def test_a_created_table_has_the_intervals_however_it_is_created(con):
    for name, statement in {
        "a": f"CREATE TABLE a AS {SUB[1:-1]}",
        "b": f"CREATE TEMP TABLE b AS FROM {SUB} x",
        "c": f"CREATE TABLE c AS SELECT x.film, x.n, x.n_low, x.n_high FROM {SUB} x WINDOW w AS (), v AS ()",
        "l": f"CREATE TABLE l AS SELECT x.film, x.n FROM {SUB} x JOIN LATERAL (SELECT x.n) USING (n)",
    }.items():
        run(con, statement)
        rows = con.sql(f"SELECT n, n_low, n_high FROM {name}").fetchall()
        assert len(rows) == 3 and all(low <= n <= high for n, low, high in rows), name
        is_no_fact(con, name)
    run(con, "CREATE TABLE d(x) AS SELECT id FROM reviews WHERE <pos>")
    is_no_fact(con, "d")
    assert "_low" in refused(con, f"CREATE TABLE e(x, y) AS {SUB[1:-1]}").help


def test_the_setting_says_it_for_all_statements_of_a_session(con):
    con.uql("SET uql.partial = true")
    run(con, "INSERT INTO bare SELECT id FROM reviews WHERE <pos>")
    is_no_fact(con, "bare")


def test_a_semantic_table_stays_one_and_says_what_was_put_into_it(con):
    run(con, "CREATE SEMANTIC TABLE liked AS SELECT id, <name> AS n FROM reviews WHERE id < 9 KEY (id)")
    assert con.uql("FROM liked").exact
    run(con, f"INSERT INTO liked SELECT id + 1000, 'x' FROM reviews WHERE <pos> {OK}")
    is_no_fact(con, "liked")
    con.uql("REFRESH liked")
    is_no_fact(con, "liked")
    run(con, "CREATE OR REPLACE SEMANTIC TABLE liked AS SELECT id, <name> AS n FROM reviews WHERE id < 9 KEY (id)")
    assert con.uql("FROM liked").exact


def test_a_semantic_table_over_a_view_of_estimates_is_no_fact(con):
    run(con, "CREATE TABLE kept AS SELECT film, count(*) AS n FROM reviews WHERE <pos> GROUP BY film")
    con.uql("CREATE VIEW seen AS FROM kept")
    con.uql("CREATE SEMANTIC TABLE again AS SELECT film, n FROM seen KEY (film)")
    is_no_fact(con, "again")


RARE = "FROM reviews WHERE <joke> AND <plot> AND stars = 5"


@pytest.mark.thorough
@pytest.mark.parametrize(
    ("asked", "where_found"),
    [
        (f"EXISTS ({RARE})", True),
        (f"NOT EXISTS ({RARE})", False),
        (f"'Alien' IN (SELECT film {RARE})", True),
        (f"'Alien' NOT IN (SELECT film {RARE})", False),
        (f"'Alien' = ANY (SELECT film {RARE})", True),
        (f"'Alien' <> ALL (SELECT film {RARE})", False),
        (f"EXISTS (SELECT id {RARE} UNION SELECT id FROM reviews WHERE <joke> AND stars = 1)", True),
        (f"EXISTS (SELECT 1 FROM (SELECT id {RARE}) q)", True),
    ],
)
def test_of_rows_that_were_not_asked_a_sub_query_says_nothing(labels, asked, where_found):
    statement = f"SELECT {asked} AS e"
    asked, over_labels, _ = both(statement)
    truth, values = labels.truth.execute(over_labels).fetchall()[0][0], []
    for budget in (1, 4, 16, "all"):
        result = labels.uql(budget=budget).uql(asked)
        values.append(result.fetchall()[0][0])
        assert values[-1] == truth if result.exact else values[-1] in (None, where_found)
    assert values[0] is None and values[-1] == truth


def test_a_row_is_not_returned_because_nobody_was_asked_about_it(labels):
    result = run(labels.uql(budget=4), f"SELECT film FROM films WHERE film NOT IN (SELECT film {RARE})")
    assert result.fetchall() == [] and not result.exact


def test_exists_asks_until_one_row_passes(labels):
    result = run(labels.uql(budget="all"), "SELECT EXISTS (FROM reviews WHERE <joke>) AS e")
    assert result.fetchall() == [(True,)] and result.exact and result.cost.calls < 100

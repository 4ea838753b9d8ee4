"""uql.model.toml: what it changes in prompts, what is refused in it, what `verify` keeps, and the commands."""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from nl.shop import Connected, database, plan, uql_node
from typer.testing import CliRunner

import uql
from uql.base.errors import ConfigError, DataError
from uql.command.model import app
from uql.llm.providers.scripted import Scripted
from uql.nl.prompts.statements import TASK
from uql.nl.schema.discover import discover
from uql.nl.schema.name_words import in_common
from uql.nl.schema.scope import Column, Link
from uql.nl.schema.semantic_model import FILE, UNKNOWN, Verified, keep, proposed, read, read_if_present
from uql.sources.catalog import Catalog

TEXT = """
[tables.shops]
description = "shops that we supply"
synonyms = ["stores", "branches"]
columns.city = { description = "town of the shop", private = true }
columns.id = { synonyms = ["number"] }

[metrics.loyalty]
description = "shops with a letter a year"
uql = "SELECT count(DISTINCT shop_id) FROM letters"

[[joins]]
left = "letters.shop_id"
right = "shops.id"

[[verified]]
question = "Which shops are old?"
uql = "SELECT name FROM shops WHERE id < 2"
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    (tmp_path / FILE).write_text(TEXT, encoding="utf-8")
    return tmp_path / FILE


def test_the_file_says_what_tables_and_columns_mean(path: Path) -> None:
    model = read(path)
    scope = discover("Which stores?", Catalog(database()), None, model=model)
    shops = scope.sources["shops"]
    assert shops.description == "shops that we supply; also called stores, branches"
    fields = {f.name: f for f in shops.fields}
    assert fields["city"].private and fields["owner_phone"].private and fields["id"].description == "also called number"
    assert scope.links[0] == Link(Column("letters", "shop_id"), Column("shops", "id"))


def test_a_column_that_the_file_calls_private_is_in_no_prompt(path: Path) -> None:
    shop = Connected([Scripted(TASK, "SELECT count(*) FROM shops")] * 3, small=True)
    answer = shop.con.ask("How many shops are there?", semantic_model=path, without="reading")
    prompts = " ".join(shop.prompts(TASK))
    assert answer.value == 3 and "Leeds" not in prompts and "city" not in prompts
    assert "loyalty, shops with a letter a year, is: SELECT count(DISTINCT shop_id) FROM letters" in prompts


def test_only_verified_questions_that_are_near_stand_in_the_prompt(path: Path) -> None:
    model = read(path)
    assert any("Which shops are old?" in rule for rule in model.rules("Which shops are very old?", in_common))
    assert not any("Which shops are old?" in rule for rule in model.rules("How long is the average letter?", in_common))
    assert any("old" in rule for rule in model.rules("x", lambda text, others: [0.9] * len(others)))


def test_without_a_file_nothing_is_known(tmp_path: Path) -> None:
    assert read_if_present(tmp_path / FILE) is UNKNOWN and UNKNOWN.rules("How many?", in_common) == ()


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("tables = 3", "tables"),
        ("[tables.shops]\ncomment = 'x'", "tables.shops has no 'comment'"),
        ("[tables.shops]\nsynonyms = 'x'", "synonyms is not a list"),
        ("[tables.shops]\ncolumns.id = { private = 'yes' }", "tables.shops.columns.id.private"),
        ("[metrics.n]\ndescription = 'x'", "metrics.n.uql"),
        ("[[joins]]\nleft = 'shop_id'\nright = 'shops.id'", "joins 1.left is not a column"),
        ("[[verified]]\nquestion = 'x'", "verified 1.uql"),
        ("verified = { question = 'x' }", "verified is not a list"),
        ("not toml", "cannot be read"),
    ],
)
def test_what_does_not_belong_in_the_file_is_said_with_its_place(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / FILE).write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=problem):
        read(tmp_path / FILE)


def asked(path: Path, *statements: str) -> uql.Answer:
    shop = Connected([plan(*[uql_node(f"n{i}", text) for i, text in enumerate(statements)])])
    return shop.con.ask("Which shops are in Leeds?", readings=False, semantic_model=path)


def test_verify_keeps_the_question_with_one_statement(path: Path) -> None:
    asked(path, "SELECT name FROM shops WHERE id IN (1, 3)").verify()
    assert read(path).verified[-1] == Verified("Which shops are in Leeds?", "SELECT name FROM shops WHERE id IN (1, 3)")
    assert path.read_text(encoding="utf-8").startswith(TEXT)
    asked(path, "SELECT name FROM shops WHERE id IN (1, 3)").verify()  # the same again is kept once
    assert len(read(path).verified) == 2
    with pytest.raises(ConfigError, match="has other UQL"):
        asked(path, "SELECT name FROM shops WHERE id = 1").verify()


def test_verify_makes_one_statement_of_several_nodes(path: Path) -> None:
    answer = asked(path, "SELECT id, name FROM shops WHERE id < 3", "SELECT count(*) AS n FROM n0")
    answer.verify()
    kept = read(path).verified[-1].uql
    assert kept.startswith("WITH n0 AS (")
    con = uql.attach(database(), model="scripted:none", ledger=":memory:")
    assert con.uql(kept).arrow().to_pylist() == [{"n": 2}]


def test_what_is_no_answer_is_not_verified(path: Path) -> None:
    shop = Connected([plan(cannot="there is nothing about it")])
    with pytest.raises(DataError, match="no answer to verify"):
        shop.con.ask("Which giraffes?", readings=False, semantic_model=path).verify()


def test_a_file_that_is_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no file"):
        Connected([]).con.ask("How many?", semantic_model=tmp_path / "none.toml")


def test_texts_survive_the_way_into_the_file_and_back(tmp_path: Path) -> None:
    kept = Verified('a "quoted" \\ text\nwith lines\t\x00 and ü \U000e0001x', "SELECT '\"' || 'x\\y'")
    keep(tmp_path / FILE, kept)
    assert read(tmp_path / FILE).verified == (kept,)


def test_init_proposes_a_file_that_can_be_read_and_check_runs_it(tmp_path: Path) -> None:
    file = tmp_path / "shop.duckdb"
    with duckdb.connect(file) as con:
        con.execute("CREATE TABLE shops AS SELECT i AS id, 'shop ' || i AS \"the name\" FROM range(9) t(i)")
        con.execute("CREATE TABLE letters AS SELECT i % 9 AS shop_id, i AS year FROM range(60) t(i)")
        con.execute("COMMENT ON TABLE shops IS 'all \"our\" shops'")
    run = CliRunner()
    assert run.invoke(app, ["init", str(file)]).exit_code == 0
    model = read(tmp_path / FILE)
    assert model.tables["shops"].description == 'all "our" shops' and ("shops", "the name") in model.columns
    assert model.joins
    with (tmp_path / FILE).open("a", encoding="utf-8") as stream:
        stream.write('\n[metrics.shops]\nuql = "SELECT count(*) AS n FROM shops"\n')
    assert run.invoke(app, ["init", str(file)]).exit_code != 0  # it is there already
    checked = run.invoke(app, ["check", str(file)])
    assert checked.exit_code == 0 and "ok     metric shops: 1 row" in checked.output
    keep(tmp_path / FILE, Verified("How many?", "SELECT count(*) FROM no_such_table"))
    checked = run.invoke(app, ["check", str(file)])
    assert checked.exit_code == 1 and "FAILS  How many?" in checked.output


def test_what_is_written_into_the_file_is_no_longer_than_what_is_read_from_it(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute("CREATE TABLE shops (id INTEGER)")
        con.execute(f"COMMENT ON TABLE shops IS '{'a' * 9_000}'; COMMENT ON COLUMN shops.id IS '{'b' * 9_000}'")
    assert CliRunner().invoke(app, ["init", str(tmp_path / "shop.duckdb")]).exit_code == 0
    assert len(read(tmp_path / FILE).tables["shops"].description) == 4_000
    with pytest.raises(ConfigError, match="at most 4,000 characters"):
        keep(tmp_path / FILE, Verified("How many?", f"SELECT '{'c' * 4_000}'"))
    assert not read(tmp_path / FILE).verified


def test_nothing_is_written_through_a_link_that_leads_to_no_file_yet(tmp_path: Path) -> None:
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute("CREATE TABLE shops (id INTEGER)")
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    made = CliRunner().invoke(app, ["init", str(tmp_path / "shop.duckdb")])
    assert made.exit_code != 0 and "is there already" in made.output
    with pytest.raises(FileExistsError):
        keep(tmp_path / FILE, Verified("How many?", "SELECT 1"))
    assert not (tmp_path / "elsewhere").exists()


def test_a_proposal_has_every_table_and_private_column() -> None:
    con = Connected([]).con
    tables = [con.catalog.named(name) for name in con.catalog.names()]
    text = proposed(tables, [Link(Column("letters", "shop_id"), Column("shops", "id"))])
    assert "[tables.shops]" in text and "columns.owner_phone" in text and "private = true" in text


@pytest.mark.parametrize(
    "uql",
    [
        "COPY (SELECT 1 AS a) TO 'written.csv'",
        "SELECT 1 AS a; COPY (SELECT 1 AS a) TO 'written.csv'",
        "EXPLAIN ANALYZE COPY (SELECT 1 AS a) TO 'written.csv'",
        "SELECT 1 AS a TO 'written.csv'",
        "SET uql.model = 'http://127.0.0.1:9/v1#m'",
        "SET threads = 1",
        "SELECT content FROM read_text('secret.txt')",
        "SELECT * FROM 'secret.csv'",
        "SELECT content FROM (FROM read_blob('secret.txt'))",
        "SELECT name FROM shops WHERE \"it is large\" WITH (model = 'http://127.0.0.1:9/v1#m')",
        "SELECT name FROM shops WHERE \"it is large\" WITH (ledger = 'written.csv')",
        "FROM uql_runs()",
    ],
)
def test_a_semantic_model_that_somebody_sent_reads_and_writes_no_file_and_sets_nothing(
    uql: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("UQL_HOME", str(tmp_path / "home"))
    with duckdb.connect(tmp_path / "shop.duckdb") as con:
        con.execute("CREATE TABLE shops AS SELECT 'shop ' || i AS name FROM range(9) t(i)")
    for name in ("secret.txt", "secret.csv"):
        (tmp_path / name).write_text("key\nof the user\n")
    (tmp_path / FILE).write_text(f"[metrics.sent]\nuql = '''{uql}'''\n")
    checked = CliRunner().invoke(app, ["check", "shop.duckdb"])
    assert checked.exit_code == 1 and "FAILS  metric sent" in checked.output
    assert not (tmp_path / "written.csv").exists() and "of the user" not in checked.output

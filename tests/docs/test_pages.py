"""The pages of docs/: every statement in them parses and has a plan, every link leads somewhere."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import duckdb
import pytest
from hash_model import HashModel
from PIL import Image

import uql
from uql.compiler.parser import parse_script

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(DOCS.rglob("*.md"))
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_LINK = re.compile(r"\]\((?!https?:)([^)#\s]*)(?:#([^)\s]*))?\)")
_HEADING = re.compile(r"^#+ (.*)$", re.M)
_MARK = re.compile(r"(<{7}|={7}|>{7})( |$)")


def blocks(page: Path, kind: str) -> list[str]:
    """The fenced blocks of a kind."""
    return [body for name, body in _FENCE.findall(page.read_text("utf-8")) if name == kind]


def statements(block: str) -> Iterator[str]:
    """The statements of a block, comments left out."""
    for _, span in parse_script(block):
        yield block[span.start : span.end]


@pytest.fixture(scope="module")
def con() -> Iterator[uql.Connection]:
    duck = duckdb.connect(":memory:")
    duck.execute("CREATE TABLE reviews (id INTEGER, film VARCHAR, stars INTEGER, body VARCHAR)")
    duck.execute(
        "INSERT INTO reviews SELECT i, 'film ' || i % 3, i % 6, 'a long text of review number ' || i FROM range(40) r(i)"
    )
    duck.execute(
        "CREATE TABLE films AS SELECT 'film ' || i AS title, 1990 + i::INTEGER AS year, 'the plot of film number ' || i AS plot FROM range(3) r(i)"
    )
    duck.execute("CREATE TABLE shots (id INTEGER, film VARCHAR, picture BLOB)")
    duck.execute("CREATE TABLE clips (clip VARCHAR)")
    duck.execute("COMMENT ON COLUMN clips.clip IS 'video'")
    duck.execute("CREATE TABLE calls (call VARCHAR)")
    duck.execute("COMMENT ON COLUMN calls.call IS 'audio'")
    duck.execute("CREATE TABLE reports (doc VARCHAR)")
    duck.execute("COMMENT ON COLUMN reports.doc IS 'document'")
    with uql.attach(duck, model=HashModel(), ledger=":memory:") as made:
        yield made


@pytest.mark.parametrize("block", blocks(DOCS / "language.md", "sql"))
def test_every_statement_of_the_language_page_runs(con: uql.Connection, block: str) -> None:
    found = [con.uql(statement) for statement in statements(block)]  # a later one may need what an earlier one made
    assert found and all(result.columns is not None for result in found)


@pytest.fixture
def shop() -> Iterator[uql.Connection]:
    """The tables that the how-to guides name."""
    duck = duckdb.connect(":memory:")
    duck.execute(
        "CREATE TABLE reviews AS SELECT i AS id, 'a long text of review number ' || i AS body FROM range(40) r(i)"
    )
    duck.execute("CREATE TABLE answered AS SELECT body, id % 2 = 0 AS answer FROM reviews WHERE id < 9")
    for columns in (
        "shots (id INTEGER, picture BLOB)",
        "products (photo VARCHAR)",
        "files (path VARCHAR)",
        "clips (file VARCHAR)",
        "calls (call VARCHAR)",
        "invoices (doc VARCHAR)",
    ):
        duck.execute(f"CREATE TABLE {columns}")
    duck.execute("COMMENT ON COLUMN invoices.doc IS 'document'")
    picture = BytesIO()
    Image.new("RGB", (4, 4), "red").save(picture, "PNG")
    duck.execute("INSERT INTO shots VALUES (1, ?)", [picture.getvalue()])
    with uql.attach(duck, model=HashModel(), ledger=":memory:") as made:
        yield made


@pytest.mark.parametrize("block", [block for block in blocks(DOCS / "howto.md", "sql") if "models =" not in block])
def test_every_statement_of_the_guides_runs(shop: uql.Connection, block: str) -> None:
    found = [shop.uql(statement).run() for statement in statements(block)]
    assert found and not any(outcome.errors for outcome in found)


def statements_of_tables(page: Path) -> list[str]:
    """The statements in the last cells of a page's tables."""
    return re.findall(r"^\| .* \| `([A-Z].*)` \|$", page.read_text("utf-8"), re.M)


@pytest.mark.parametrize("statement", dict.fromkeys(statements_of_tables(DOCS / "coming-from.md")))
def test_every_translation_from_another_tool_runs(con: uql.Connection, statement: str) -> None:
    assert con.uql(statement).columns


def test_every_row_of_the_translations_has_a_statement() -> None:
    page = DOCS / "coming-from.md"
    rows = [line for line in page.read_text("utf-8").splitlines() if line.startswith("| ") and "`" in line]
    assert len(rows) == len(statements_of_tables(page)) > 40


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_link_leads_to_a_file_and_a_heading(page: Path) -> None:
    for target, anchor in _LINK.findall(page.read_text("utf-8")):
        path = page.parent / target if target else page
        assert path.exists(), f"{page.name}: {target}"
        assert not anchor or anchor in anchors(path), f"{page.name}: {target}#{anchor}"


def anchors(page: Path) -> set[str]:
    """The anchors of a page's headings, as Python-Markdown makes them."""
    text = re.sub(r"^```.*?^```", "", page.read_text("utf-8"), flags=re.M | re.S)
    plain = [re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).replace("`", "") for heading in _HEADING.findall(text)]
    return {re.sub(r"[-\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in plain}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_every_example_in_python_compiles(page: Path) -> None:
    for block in blocks(page, "python"):
        if block.startswith(">>>"):
            continue  # run as a doctest
        compile(block, page.name, "exec")


def test_no_page_holds_the_marks_of_a_merge() -> None:
    marks = [
        f"{page.name}: {line}" for page in PAGES for line in page.read_text("utf-8").splitlines() if _MARK.match(line)
    ]
    assert marks == []

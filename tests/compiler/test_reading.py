"""How quoted texts are read: each file of golden/reading is a list of cases `query, ----, how each text was read or the error`.

`pytest --update-golden` rewrites the files.
"""

from __future__ import annotations

from pathlib import Path

import duckdb
import pytest
from hypothesis import given, settings, strategies as st

from uql.base.errors import UQLError
from uql.base.names import distance
from uql.compiler.bind.reading import near_name
from uql.compiler.binder import bind
from uql.compiler.parser import parse
from uql.sources.catalog import Catalog

GOLDEN = sorted((Path(__file__).parents[1] / "golden" / "reading").glob("*.test"))
TABLES = """
CREATE TABLE reviews AS SELECT i AS id, repeat('some words ', 10) AS text, i AS stars, 'Rome' AS city,
    DATE '2024-01-01' AS d FROM range(5) r(i);
CREATE TABLE films AS SELECT i AS id, 'Jaws' AS title, 'ok' AS notes FROM range(5) r(i);
COMMENT ON COLUMN films.notes IS 'private remarks';
CREATE TABLE scripts AS SELECT i AS id, repeat('a shark ', 9) AS script FROM range(5) r(i);
CREATE TABLE numbers AS SELECT i AS n FROM range(5) r(i);
CREATE TABLE people AS SELECT i AS id, DATE '2024-01-01' AS sign_up_date, 'Ann' AS name,
    '\\x89PNG\\x0D\\x0A\\x1A\\x0A'::BLOB AS photo FROM range(5) r(i);
"""


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    connection = duckdb.connect()
    connection.execute(TABLES)
    return Catalog(connection)


def cases(path: Path) -> list[tuple[str, str]]:
    blocks = path.read_text(encoding="utf-8").strip().split("\n\n")
    return [(query.strip(), said.strip()) for query, _, said in (block.partition("----") for block in blocks)]


def said(query: str, catalog: Catalog) -> str:
    try:
        statement = bind(parse(query), catalog, text=query)
    except UQLError as error:
        assert 0 <= error.start < error.end <= len(query), "an error has a place in the text"
        place = query[error.start : error.end]
        return f"{error.code} at {place}: {error.message}" + (f"\nhelp: {error.help}" if error.help else "")
    lines = [f"{r.text} → {r.read_as} {r.detail}".rstrip() for r in statement.readings]
    return "\n".join([*lines, *statement.warnings])


@pytest.mark.parametrize("path", GOLDEN, ids=lambda path: path.stem)
def test_every_quoted_text_is_read_as_the_fixture_says(path: Path, catalog: Catalog, update_golden: bool) -> None:
    found = [(query, said(query, catalog)) for query, _ in cases(path)]
    if update_golden:
        path.write_text("\n\n".join(f"{q}\n----\n{s}".rstrip() for q, s in found) + "\n", encoding="utf-8")
    for (query, now), (_, wanted) in zip(found, cases(path), strict=True):
        assert now == wanted, query


def test_there_are_at_least_forty_cases() -> None:
    assert sum(len(cases(path)) for path in GOLDEN) >= 40


WORDS = st.text(alphabet="abcdefgh", min_size=1, max_size=9)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(a=WORDS, b=WORDS)
def test_distance_is_symmetric_and_zero_only_for_equal_words(a: str, b: str) -> None:
    assert distance(a, b, 9) == distance(b, a, 9)
    assert (distance(a, b, 9) == 0) == (a == b)


@settings(max_examples=200, deadline=None, database=None, derandomize=True)
@given(
    word=st.text(alphabet="abcdefgh", min_size=5, max_size=12), where=st.integers(0, 11), letter=st.sampled_from("xyz")
)
def test_one_wrong_letter_is_always_caught_by_the_guard(word: str, where: int, letter: str) -> None:
    where = min(where, len(word) - 1)
    assert near_name(word[:where] + letter + word[where + 1 :], [word]) == word
    assert near_name(f"is the {word} right", [word]) is None


@pytest.mark.parametrize("swapped", ["satrs", "strars", "star", "starss"])
def test_a_swap_an_insertion_and_an_omission_each_count_one(swapped: str) -> None:
    assert near_name(swapped, ["stars"]) == "stars"


def test_words_below_four_letters_are_never_taken_for_misspelt_names() -> None:
    assert near_name("sta", ["star"]) is None


def test_two_wrong_letters_are_caught_from_eight_letters_on() -> None:
    assert near_name("complamt", ["complaint"]) == "complaint"

"""Whatever the text, the parser gives a tree or a UQLSyntaxError."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from uql.base.errors import UQLSyntaxError
from uql.compiler.lexer import SYMBOLS, WORDS, statements
from uql.compiler.parser import parse, parse_script
from uql.compiler.unparse import unparse

VALID = (
    'SELECT "reason" AS reason, COUNT(*) AS count FROM reviews WHERE stars < 3 GROUP BY reason ORDER BY count DESC LIMIT 5',
    "WITH a (x) AS (SELECT 1) SELECT t.*, CASE WHEN x THEN 'a' ELSE \"b\" END FROM a t LEFT JOIN u USING (k) UNION ALL SELECT 2",
    "SELECT DISTINCT a::DECIMAL(10,2)[], \"t\"::ENUM('a') FROM 'x.csv' WHERE a NOT IN (1, $p) AND b BETWEEN 1 AND \"x\" TO y",
    "SELECT a FROM t GROUP BY \"t\" INTO 5 MANY AS g HAVING sum(x) FILTER (WHERE y) > 3 OFFSET 3 WITH (budget = 3, models = ['a'], exact)",
    'EXPLAIN SAMPLE 3 (FORMAT json) SELECT TRY "a" USING (b), INTERVAL 3 DAY, x IS NOT DISTINCT FROM y FROM f(1, a = 2)',
    "COPY (SELECT 1) TO 'x' (FORMAT csv)",
    "SET uql.budget = -3",
    "CREATE OR REPLACE TEMP TABLE t AS SELECT rank() OVER (PARTITION BY a ORDER BY b NULLS LAST) FROM t",
)
EXTRA = [
    "x",
    "12",
    "1.5",
    "'s'",
    '"a text"',
    "$p",
    "end",
    "--",
    "/*",
    "*/",
    "'",
    '"',
    "\\",
    "\0",
    "\ud800",
    "é",
    "“",
    "{",
    "\n",
]
PIECES = [*sorted(WORDS), *SYMBOLS, *EXTRA]


def soups(count: int, seed: int) -> Iterator[str]:
    """Token soups, damaged statements, random characters."""
    draw = random.Random(seed)
    for i in range(count):
        if i % 3 == 0:
            start = draw.choice(["", "SELECT ", "SELECT a FROM t ", "SELECT * FROM t WHERE "])
            yield start + " ".join(draw.choices(PIECES, k=draw.randint(1, 25)))
        elif i % 3 == 1:
            yield damaged(draw)
        else:
            yield "".join(chr(draw.randrange(draw.choice([128, 0x300, 0x110000]))) for _ in range(draw.randint(0, 40)))


def damaged(draw: random.Random) -> str:
    text = draw.choice(VALID)
    for _ in range(draw.randint(1, 3)):
        at, to = sorted((draw.randrange(len(text) + 1), draw.randrange(len(text) + 1)))
        match draw.randrange(4):
            case 0:
                text = text[:at] + text[min(to, at + 6) :]
            case 1:
                text = text[:at] + draw.choice(PIECES) + text[at:]
            case 2:
                text = text[:to] + text[at:to] + text[to:]
            case _:
                words = text.split(" ")
                draw.shuffle(words)
                text = " ".join(words)
    return text


def check(count: int, seed: int) -> int:
    read = 0
    for text in soups(count, seed):
        try:
            tree = parse(text)
        except UQLSyntaxError as error:
            assert error.text == text and 0 <= error.start <= error.end <= len(text), text
            assert str(error)
        else:
            read += 1
            assert parse(unparse(tree)) == tree, text
        for start, end in statements(text):
            assert 0 <= start < end <= len(text)
    return read


def test_five_thousand_texts_give_a_tree_or_a_syntax_error() -> None:
    assert check(5_000, seed=1) > 20


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 12))
def test_a_hundred_thousand_texts_give_a_tree_or_a_syntax_error(seed: int) -> None:
    check(10_000, seed)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 3_000,
        "SELECT " + "(" * 3_000 + "1" + ")" * 3_000,
        "SELECT " + "NOT " * 3_000 + "a",
        "SELECT " + "-" * 3_001 + "a",
        "SELECT " + "- " * 3_000 + "a",
        "SELECT " + "[" * 3_000,
        "SELECT " + "CASE WHEN " * 3_000,
        "SELECT " + "f(" * 3_000,
        "SELECT * FROM " + "(SELECT * FROM " * 3_000,
        "SELECT " + " + ".join("a" * 3_000),
        "SELECT " + " || ".join("a" * 3_000),
        "SELECT a" + "::INT" * 3_000,
        "SELECT a" + " IS NULL" * 3_000,
        "SELECT 1" + " UNION SELECT 1" * 3_000,
        "SELECT * FROM a" + ", a" * 3_000,
        "SELECT * FROM a" + " CROSS JOIN a" * 3_000,
        "SELECT '" + "x" * 200_000,
        "SELECT /*" + "x" * 200_000,
        '"' * 200_001,
        "x" * 200_000,
    ],
    ids=lambda text: text[:24],
)
def test_a_hopeless_text_is_a_syntax_error_and_quick(text: str) -> None:
    with pytest.raises(UQLSyntaxError):
        parse(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT " + " AND ".join("a" * 3_000),
        "SELECT " + " OR ".join("a" * 3_000),
        "SELECT " + ", ".join("a" * 3_000),
        "SELECT a IN (" + ", ".join("1" * 3_000) + ")",
        "SELECT '" + "x" * 200_000 + "'",
        'SELECT "' + "x" * 200_000 + '"',
        "SELECT 1 /*" + "x" * 200_000 + "*/",
        "SELECT a" + " " * 200_000,
        "SELECT a" + ".b" * 1_000,
    ],
    ids=lambda text: text[:24],
)
def test_long_but_flat_texts_are_read(text: str) -> None:
    assert parse(unparse(parse(text))) == parse(text)


def test_a_script_of_any_kind_is_cut_without_error() -> None:
    for text in soups(300, seed=5):
        parse_script(text)

"""Characters to tokens."""

from __future__ import annotations

import time
from contextlib import suppress

import pytest

from uql.base.errors import UQLSyntaxError
from uql.compiler.lexer import statements, tokenize


def kinds(text: str) -> list[str]:
    return [token.type for token in tokenize(text)]


def values(text: str) -> list[str]:
    return [token.value for token in tokenize(text)]


def test_every_token_knows_its_exact_place() -> None:
    text = "SELECT  'it''s', \"a \\\" b\" /* c */ FROM t -- end\n WHERE x>=1.5e3"
    pieces = [text[t.lexpos : t.endlexpos] for t in tokenize(text)]
    assert pieces == ["SELECT", "'it''s'", ",", '"a \\" b"', "FROM", "t", "WHERE", "x", ">=", "1.5e3"]


def test_quotes_inside_texts_and_strings_are_resolved_and_holes_are_kept() -> None:
    assert values("'it''s'") == ["it's"]
    assert values(r'"a \" b"') == ['a " b']
    assert values('"a "" b"') == ['a " b']
    assert values(r'"a \\ b \d"') == [r"a \ b \d"]
    assert values('"{col} and {{x}}"') == ["{col} and {{x}}"]
    assert values('""') == [""]
    assert values('""""') == ['"']


def test_a_comment_holds_comments() -> None:
    assert values("a /* b /* c */ d */ e /* /* */ */ f /***/ g") == ["a", "e", "f", "g"]
    assert statements("SELECT 1 /* ; /* ; */ ; */; SELECT 2") == [(0, 8), (28, 36)]


def test_keywords_are_read_in_any_case_and_operators_in_one_spelling() -> None:
    assert kinds("select SeLeCt SELECT") == ["SELECT"] * 3
    assert values("a == b != c") == ["a", "=", "b", "<>", "c"]


def test_numbers_are_unsigned() -> None:
    assert kinds("-5 .5 1. 1e5 1_000") == ["MINUS"] + ["NUMBER"] * 5
    assert values("1_000") == ["1000"]


@pytest.mark.parametrize(
    "text",
    [
        "'open",
        '"open',
        "/* open",
        "/* open /* in a comment */",
        "x'4g'",
        "x'414'",
        "b'012'",
        "5abc",
        "“x”",
        "a ? b",
        "\0",
        "'\0'",
        "\ud800",
        "'\udfff'",
        r"E'\ud800'",
        r"E'\777'",
        r"E'\xff'",
        "$",
        "`a`",
        "!",
    ],
)
def test_what_is_no_token_is_a_syntax_error_with_a_place(text: str) -> None:
    with pytest.raises(UQLSyntaxError) as caught:
        tokenize(text)
    assert caught.value.code == "UQL107"
    assert 0 <= caught.value.start < caught.value.end <= len(text)


def test_octal_and_hex_escapes_are_bytes() -> None:
    (token,) = tokenize(r"E'\303\251\xc3\xA9\101é\é'")
    assert token.value == "ééAéé"


def test_a_script_is_cut_only_at_semicolons_outside_quotes_and_comments() -> None:
    text = "SELECT ';' ; -- one; two\n /* ; */ SELECT \"a;b\" ;; SELECT 'open ;"
    assert [text[a:b] for a, b in statements(text)] == ["SELECT ';'", 'SELECT "a;b"', "SELECT 'open ;"]


@pytest.mark.thorough
@pytest.mark.parametrize("piece", ["a ", "'x' ", '"x" ', "''", '""', "/* */", "1.5 ", "\\", "--\n", "(", "/*", '\\"'])
def test_lexing_is_linear(piece: str) -> None:
    def seconds(length: int) -> float:
        text = ("'" if piece == "''" else "") + piece * (length // len(piece))
        best = float("inf")
        for _ in range(2):
            start = time.thread_time()
            with suppress(UQLSyntaxError):
                tokenize(text)
            best = min(best, time.thread_time() - start)
        return best

    assert seconds(160_000) < 40 * seconds(16_000) + 0.05  # quadratic would be 100 times

"""Characters to tokens. Linear in the length of the text; every token knows its exact place.

Only a few words are reserved. Every other keyword comes out as the token of its keyword, and `uql.compiler.parser` turns it
into a NAME wherever the grammar has no place for the keyword.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import NoReturn, TypeAlias

from ply import lex

from uql.base.errors import UQLSyntaxError

_words = re.compile(r"\w+").findall
RESERVED = frozenset(_words("SELECT FROM WHERE GROUP ORDER BY LIMIT AS AND OR NOT ON JOIN UNION HAVING CASE WHEN"))
"""Never a name without quotes."""

SOFT = frozenset(
    _words(
        """ALL ANALYZE ANTI ANY ARRAY ASC ASOF BETWEEN CAST COLLATE COPY CREATE CROSS CURRENT DESC DISTINCT DROP ELSE END ESCAPE
        EXCEPT EXCLUDE EXISTS EXPLAIN FALSE FILTER FIRST FOLLOWING FOR FORMAT FULL GLOB GROUPING IF ILIKE IN INNER INSERT
        INTERSECT INTERVAL INTO IS ISNULL KEY LAMBDA LAST LATERAL LEFT LIKE MANY MAP MATERIALIZED NATURAL NOTNULL NULL NULLS OFFSET
        OUTER OVER PARTITION PERCENT PLACING POSITIONAL PRECEDING PROMPT QUALIFY REFRESH RENAME REPEATABLE REPLACE RESET RIGHT ROW SAMPLE
        SEMANTIC SEMI SET SETS SIMILAR TABLE TABLESAMPLE THEN TO TRUE TRY TRY_CAST UNBOUNDED USING VALUES WINDOW WITH WITHIN"""
    )
)
"""Keywords by position: names wherever the keyword cannot stand."""

TEMPORAL = _words("DATE TIME TIMETZ TIMESTAMP TIMESTAMPTZ TIMESTAMP_S TIMESTAMP_MS TIMESTAMP_NS JSON UUID BLOB BIT")
"""Types that a string may follow: DATE '2024-01-31'."""

_REGULAR = _words("MICROSECOND MILLISECOND SECOND MINUTE HOUR DAY WEEK MONTH QUARTER YEAR DECADE")
UNITS = {
    **{name: f"{unit}S" for unit in _REGULAR for name in (unit, f"{unit}S")},
    **dict.fromkeys(("CENTURY", "CENTURIES"), "CENTURIES"),
    **dict.fromkeys(("MILLENNIUM", "MILLENNIA"), "MILLENNIA"),
}
"""Units of time, each with its plural."""
WORDS = {
    **{word: word for word in RESERVED | SOFT},
    **dict.fromkeys(TEMPORAL, "TEMPORAL"),
    **dict.fromkeys(UNITS, "UNIT"),
    "TEMP": "TEMPORARY",
    "TEMPORARY": "TEMPORARY",
    "BOTH": "SIDE",
    "LEADING": "SIDE",
    "TRAILING": "SIDE",
    "ROWS": "FRAME",
    "RANGE": "FRAME",
    "GROUPS": "FRAME",
    "SOME": "ANY",
    "ASCENDING": "ASC",
    "DESCENDING": "DESC",
}
"""Word in upper case → the type of its token."""

TOGETHER = {
    ("WITH", "TIME", "ZONE"): "WITH_TIME_ZONE",
    ("WITHOUT", "TIME", "ZONE"): "WITH_TIME_ZONE",
    ("AT", "TIME", "ZONE"): "AT_TIME_ZONE",
    ("USING", "SAMPLE"): "USING_SAMPLE",
    ("IS", "UNKNOWN"): "ISNULL",
    ("IS", "NOT", "UNKNOWN"): "NOTNULL",
    ("NOT", "NULL"): "NOTNULL",
    ("IGNORE", "NULLS"): "IGNORE_NULLS",
    ("RESPECT", "NULLS"): "RESPECT_NULLS",
    ("DOUBLE", "PRECISION"): "LONG_TYPE",
    ("CHARACTER", "VARYING"): "LONG_TYPE",
    ("CHAR", "VARYING"): "LONG_TYPE",
    ("FETCH", "FIRST"): "FETCH_FIRST",
    ("FETCH", "NEXT"): "FETCH_FIRST",
    ("ROWS", "ONLY"): "ROWS_ONLY",
    ("ROW", "ONLY"): "ROWS_ONLY",
}
"""Words that are one token, where the grammar has a place for it; each is a name elsewhere."""

SYMBOLS = {
    "(": "LPAREN",
    ")": "RPAREN",
    "[": "LBRACKET",
    "]": "RBRACKET",
    "{": "LBRACE",
    "}": "RBRACE",
    ",": "COMMA",
    ".": "DOT",
    ";": "SEMICOLON",
    ":": "COLON",
    "::": "DCOLON",
    ":=": "ASSIGN",
    "+": "PLUS",
    "-": "MINUS",
    "*": "STAR",
    "->": "ARROW",
    "->>": "TEXT_ARROW",
    "~": "TILDE",
    **dict.fromkeys(("/", "//", "%"), "SLASH"),
    **dict.fromkeys(("**", "^"), "POWER"),
    **dict.fromkeys(("||", "&&", "@>", "<@", "^@"), "CONCAT"),
    **dict.fromkeys(("&", "|", "<<", ">>"), "BITS"),
    **dict.fromkeys(("!~", "~*", "!~*", "~~~", "~~", "!~~", "~~*", "!~~*"), "MATCHES"),
    **dict.fromkeys(("=", "=="), "EQUALS"),
    **dict.fromkeys(("<>", "!=", "<", "<=", ">", ">="), "COMPARE"),
}
CANONICAL = {"==": "=", "!=": "<>", "**": "^"}

_PLAIN = _words("NAME QUOTED STRING HEX NUMBER PARAMETER POSITION")
tokens = tuple(sorted({*_PLAIN, *TOGETHER.values(), *WORDS.values(), *SYMBOLS.values()} - {"SEMICOLON"}))
"""The terminals of the grammar; SEMICOLON ends a statement before the grammar sees it."""

Token: TypeAlias = lex.LexToken

_FOREIGN = {
    "#": "a comment begins with --",
    "?": 'a parameter is written $name; a question in words is for con.ask("…"), uql ask "…", or ? … in the shell',
    "@": "a parameter is written $name, the size of a number abs(x)",
}
_ESCAPE = re.compile(r'\\(["\\])|""')
_UNREADABLE = re.compile("[\x00\ud800-\udfff]")


def _comment(nested: int) -> str:
    """The pattern of a comment, which may hold comments that are nested so deep."""
    inside = r"[^*/]++|\*(?!/)|/(?!\*)" + (f"|{_comment(nested - 1)}" if nested else "")
    return rf"/\*(?:{inside})*+\*/"


COMMENT = _comment(nested=16)
PIECE = re.compile(
    r"(?<!\w)[eE]'(?:[^'\\]++|''|\\.)*+'?|\$((?:[^\W\d]\w*)?)\$.*?(?:\$\1\$|\Z)|'(?:[^']++|'')*+'?"
    r"|\"(?:[^\"\\]++|\"\"|\\.)*+\"?|--[^\n]*|"
    rf"{COMMENT}|/\*.*\Z|;",
    re.DOTALL,
)
"""What is read as a whole, a string, a text or a comment, though it may have no end; and `;`."""

_BACKSLASH = re.compile(rb"\\(x[0-9a-fA-F]{1,2}|u[0-9a-fA-F]{4}|U[0-9a-fA-F]{8}|[0-7]{1,3}|.)|''", re.DOTALL)
_CONTROL = {b"b": b"\b", b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}


def _unescaped(text: str) -> str:
    """What stands in E'…': \\n, \\t, \\u00e9, the bytes \\xc3\\xa9 or \\303\\251 of UTF-8, and any other character for itself."""

    def character(m: re.Match[bytes]) -> bytes:
        escape = m[1]
        if escape is None:
            return b"'"
        if escape.isdigit() and escape < b"8":
            return bytes([int(escape, 8) % 256])
        if escape[:1] == b"x" and len(escape) > 1:
            return bytes([int(escape[1:], 16)])
        if escape[:1] in b"uU" and len(escape) > 1:
            return chr(min(int(escape[1:], 16), 0x10FFFF)).encode("utf-8", "surrogatepass")
        return _CONTROL.get(escape, escape)

    return _BACKSLASH.sub(character, text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogateescape")


def _ended(t: Token) -> Token:
    t.endlexpos = t.lexer.lexpos
    return t


class _Rules:
    """The rules of ply.lex, tried in the order of the file."""

    tokens = (*tokens, "SEMICOLON")

    def t_ignored(self, t: Token) -> None:
        pass

    t_ignored.__doc__ = rf"[\s\ufeff]+|--[^\n]*|{COMMENT}"

    def t_ESCAPED(self, t: Token) -> Token:
        r"[eE]'(?:[^'\\]++|''|\\.)*+'"
        t.value, t.type = _unescaped(t.value[2:-1]), "STRING"
        if _UNREADABLE.search(t.value):
            where = {"text": t.lexer.lexdata, "start": t.lexpos, "end": t.lexer.lexpos}
            raise UQLSyntaxError(
                "a string cannot contain NUL, half of a surrogate pair or bytes that are no UTF-8",
                code="UQL107",
                **where,
            )
        return _ended(t)

    def t_HEX(self, t: Token) -> Token:
        r"[xXbB]'[^']*'"
        digits, is_bits = t.value[2:-1], t.value[0] in "bB"
        if not re.fullmatch("[01]*" if is_bits else "([0-9a-fA-F]{2})*", digits):
            where = {"text": t.lexer.lexdata, "start": t.lexpos, "end": t.lexer.lexpos}
            said = "bits, 0 or 1 each" if is_bits else "pairs of hexadecimal digits"
            raise UQLSyntaxError(f"{t.value} is not {said}", code="UQL107", **where)
        pairs = "".join(f"\\x{digits[i : i + 2]}" for i in range(0, len(digits), 2))
        t.value = ("BIT", digits or "0") if is_bits else ("BLOB", pairs)
        return _ended(t)

    def t_DOLLAR(self, t: Token) -> Token:
        r"\$(?P<tag>(?:[^\W\d]\w*)?)\$.*?\$(?P=tag)\$"
        border = t.value.index("$", 1) + 1
        t.value, t.type = t.value[border:-border], "STRING"
        return _ended(t)

    def t_STRING(self, t: Token) -> Token:
        r"'(?:[^']++|'')*+'"
        t.value = t.value[1:-1].replace("''", "'")
        return _ended(t)

    def t_QUOTED(self, t: Token) -> Token:
        r'"(?:[^"\\]++|""|\\.)*+"'
        t.value = _ESCAPE.sub(lambda m: m.group(1) or '"', t.value[1:-1])
        return _ended(t)

    def t_NUMBER(self, t: Token) -> Token:
        r"(?:[0-9](?:_?[0-9])*(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?(?!\w)"
        t.value = t.value.replace("_", "")
        return _ended(t)

    def t_NAME(self, t: Token) -> Token:
        r"[^\W\d]\w*"
        t.type = WORDS.get(t.value.upper(), "NAME")
        return _ended(t)

    def t_PARAMETER(self, t: Token) -> Token:
        r"\$\w+"
        t.value = t.value[1:]
        return _ended(t)

    def t_POSITION(self, t: Token) -> Token:
        r"\#[0-9]+(?!\w)"
        t.value = t.value[1:]
        return _ended(t)

    def t_SYMBOL(self, t: Token) -> Token:
        r"->>|->|<=|>=|<>|!=|==|<<|>>|&&|@>|<@|\^@|\|\||//|/(?!\*)|\*\*|::|:=|!?~~\*|~~~|!?~\*|!?~~?|[-+*%<>=(),.;:^{}&|\[\]]"
        t.type = SYMBOLS[t.value]
        t.value = CANONICAL.get(t.value, t.value)
        return _ended(t)

    def t_error(self, t: Token) -> NoReturn:
        raise _unreadable(t.lexer.lexdata, t.lexpos)


def _unreadable(text: str, at: int) -> UQLSyntaxError:
    """What to say of a place where no token begins."""

    def error(message: str, end: int, help: str | None = None) -> UQLSyntaxError:
        return UQLSyntaxError(message, code="UQL107", text=text, start=at, end=end, help=help)

    char = text[at]
    if char == "'":
        return error("this string is never closed", at + 1, "end it with '; a quote inside a string is written ''")
    if char == '"':
        return error("this text is never closed", at + 1, 'end it with "; a quote inside a text is written \\" or ""')
    if text.startswith("/*", at):
        return error("this comment is never closed", at + 2, "end it with */")
    if char in "“”„‟«»″":
        return error(
            f"{char} is a typographic quote", at + 1, "write straight quotes: \"…\" for a text, '…' for a string"
        )
    if char in "‘’‚‛′`´":
        return error(
            f"{char} is not a quote of UQL",
            at + 1,
            "write straight quotes: \"…\" for a text or a name, '…' for a string",
        )
    if "0" <= char <= "9" or (char == "." and text[at + 1 : at + 2].isdigit()):
        word = re.compile(r"[\w.]+").match(text, at)
        assert word is not None
        return error(
            f"{word.group()} is neither a number nor a name",
            word.end(),
            "a name that begins with a digit stands in quotes",
        )
    if char == "$" and (border := re.compile(r"\$\w*\$").match(text, at)) is not None:
        return error("this string is never closed", border.end(), f"end it with {border.group()}")
    if char == "$":
        return error("$ needs a name", at + 1, "a parameter is written $name")
    if char == "!":
        return error("! alone is not an operator", at + 1, "write NOT, or <> for “not equal”")
    if char in _FOREIGN:
        return error(f"{char} has no meaning here", at + 1, _FOREIGN[char])
    glyph = char if char.isprintable() else ascii(char)[1:-1]
    return error(f"{glyph} (U+{ord(char):04X}) has no meaning here", at + 1)


@cache
def _lexer() -> lex.Lexer:
    return lex.lex(object=_Rules(), optimize=True, lextab="", reflags=int(re.DOTALL))  # no table is read or written


def tokenize(text: str, start: int = 0, end: int | None = None) -> list[Token]:
    """The tokens of `text[start:end]`; `lexpos` and `endlexpos` count from the beginning of `text`.

    Args:
        start, end: positions in `text`; None: its end.
    Raises UQLSyntaxError (UQL107) where no token begins: unclosed quotes or comments, NUL, lone surrogates, …
    """
    end = len(text) if end is None else end
    bad = _UNREADABLE.search(text, start, end)
    if bad:
        what = "a NUL byte" if bad.group() == "\0" else "half of a character (a lone surrogate)"
        raise UQLSyntaxError(f"the text holds {what}", code="UQL107", text=text, start=bad.start(), end=bad.end())
    lexer = _lexer().clone()
    lexer.input(text)
    lexer.lexpos, lexer.lexlen = start, end
    return list(lexer)


def is_free_text(token: Token) -> bool:
    """Is it quoted, with white space in it? A name rarely is."""
    return token.type == "QUOTED" and len(token.value.split()) > 1


def closing(tokens: Sequence[Token], at: int) -> int | None:
    """The place of the parenthesis that closes the one at `at`."""
    depth = 0
    for i in range(at, len(tokens)):
        depth += {"LPAREN": 1, "RPAREN": -1}.get(tokens[i].type, 0)
        if depth == 0:
            return i
    return None


def _without_comment(piece: re.Match[str]) -> str:
    """A string or text as it is, a comment as spaces; one without an end stays, to be refused."""
    text = piece.group()
    comment = text.startswith("--") or (text.startswith("/*") and text.endswith("*/"))
    return " " * len(text) if comment else text


def statements(text: str) -> list[tuple[int, int]]:
    """The (start, end) of each statement of a script: split at `;` outside strings, texts and comments; empty ones left out."""
    cuts = [m.start() for m in PIECE.finditer(text) if m.group() == ";"]
    places = []
    for start, end in zip([0, *(cut + 1 for cut in cuts)], [*cuts, len(text)], strict=True):
        piece = text[start:end]
        words = PIECE.sub(_without_comment, piece)
        if words.strip():
            left = len(words) - len(words.lstrip())
            places.append((start + left, start + len(words.rstrip())))
    return places

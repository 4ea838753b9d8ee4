"""Which table a statement of DuckDB's own changes, and which it reads: told from its tokens.

DuckDB tells the tables of a query (`get_table_names`), but not those of UPDATE, DELETE and MERGE.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise, takewhile

from uql.base.settings import NAMES

_TOKEN = re.compile(
    r"""(?P<skip>--[^\r\n]*|/\*|[\s\u200b\u2060\ufeff]+)
    |(?P<string>[eE]'(?:[^'\\]|\\.|'')*'|'(?:[^']|'')*'|\$(?P<tag>(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?)\$.*?\$(?P=tag)\$)
    |(?P<quoted>"(?:[^"]|"")*"|`(?:[^`]|``)*`)|(?P<word>\w[\w$]*)|(?P<other>.)""",
    re.DOTALL | re.VERBOSE,
)
_COMMENT = re.compile(r"/\*|\*/")
_VERBS = {"INSERT": "INTO", "UPDATE": "", "DELETE": "FROM", "MERGE": "INTO", "CREATE": "TABLE", "COPY": ""}
_BEFORE_TABLE = {
    "FROM", "JOIN", "USING", "COPY", "PIVOT", "PIVOT_WIDER", "PIVOT_LONGER", "UNPIVOT", "SUMMARIZE", "TABLE", "INTO",
}  # fmt: skip
_AFTER_FROM = {
    "SELECT", "WHERE", "GROUP", "HAVING", "WINDOW", "QUALIFY", "ORDER", "LIMIT", "OFFSET", "UNION", "EXCEPT", "INTERSECT",
    "SET", "ON", "RETURNING", "WHEN", "VALUES",
}  # fmt: skip
_MEASURES = ("ANALYZE", "ANALYSE")
_OF_STRINGS = ("query", "query_table")  # functions that run SQL, or read tables, that a string names
# the same, with those that give statistics of a table, or read one that a name names
READ_BY_NAME = {
    *_OF_STRINGS, "duckdb_table_sample", "histogram", "histogram_values", "json_execute_serialized_sql", "pragma_storage_info",
}  # fmt: skip
_TAIL = re.compile(r"\bWITH\s*\(([^()]*)\)(?=[\s;]*$|\s+RETURNING\b)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Token:
    """A word, a name or a sign: `name` is that of an identifier, "" of a sign or a string."""

    text: str
    name: str
    start: int
    end: int

    @property
    def word(self) -> str:
        """A word that is not quoted, in upper case."""
        return self.text.upper() if self.name == self.text else ""


@dataclass(frozen=True, slots=True)
class Change:
    """What a statement changes.

    `name`: the parts of the table's name; () where COPY writes a file. `columns`: those that INSERT lists. `end`: of the name with its
    alias and its columns, `head`: of the two first. `by_name`: INSERT BY NAME.
    """

    verb: str
    name: tuple[str, ...]
    start: int
    end: int
    columns: tuple[str, ...] = ()
    by_name: bool = False
    head: int = 0


def _comment_end(sql: str, at: int) -> int:
    """Where a comment ends that began before: comments hold comments."""
    depth = 1
    for m in _COMMENT.finditer(sql, at):
        depth += 1 if m[0] == "/*" else -1
        if not depth:
            return m.end()
    return len(sql)


def tokens(sql: str) -> list[Token]:
    """The tokens of a statement as DuckDB reads them, without comments."""
    stream = []
    at = 0
    while (m := _TOKEN.match(sql, at)) is not None:
        at = m.end()
        if m["skip"] == "/*":
            at = _comment_end(sql, at)
        if m["skip"] is not None:
            continue
        name = m["word"] or (m["quoted"][1:-1].replace(m[0][0] * 2, m[0][0]) if m["quoted"] else "")
        stream.append(Token(m[0], name, m.start(), m.end()))
    return stream


def without_comments(sql: str) -> str:
    """The statement with blanks in the place of its comments, so that every place stays where it is.

    >>> without_comments("SELECT '--' -- two")
    "SELECT '--'       "
    """
    text, at = "", 0
    for token in tokens(sql):
        text += re.sub(r"\S", " ", sql[at : token.start]) + token.text
        at = token.end
    return text + re.sub(r"\S", " ", sql[at:])


def changed(sql: str) -> Change | None:
    """What a statement changes; None where it only reads, or changes no rows, as CREATE VIEW.

    >>> changed('INSERT INTO s."the T" (a, b) SELECT 1, 2').name
    ('s', 'the T')
    """
    stream = tokens(sql)
    at = _verb(stream)
    if at is None:
        return None
    verb = stream[at].word
    if verb == "CREATE":
        words = [t.word for t in stream[at : at + 6]]
        if "TABLE" not in words or any(word in words for word in ("VIEW", "MACRO", "FUNCTION")):
            return None
        at += words.index("TABLE") + 1
        while at < len(stream) and stream[at].word in ("IF", "NOT", "EXISTS"):
            at += 1
    elif verb == "COPY":
        at += 1
        if at < len(stream) and stream[at].text == "(":
            return Change(verb, (), stream[at].start, stream[at].end)
    else:
        opener = _VERBS[verb]
        at += 1
        while opener and at < len(stream) and stream[at].word != opener:
            at += 1
        at += bool(opener)
        if verb == "UPDATE" and at < len(stream) and stream[at].word == "OR":
            at += 2
    name, end = _dotted(stream, at)
    if not name:
        return None
    last = stream[end - 1].end
    if verb == "COPY" and not (end < len(stream) and (stream[end].text == "(" or stream[end].word == "FROM")):
        return Change(verb, (), stream[at].start, last)
    columns: tuple[str, ...] = ()
    by_name, head = False, last
    if verb == "INSERT":
        if end < len(stream) and stream[end].word == "AS":
            end += 2
        head = stream[end - 1].end
        if (
            end < len(stream)
            and stream[end].text == "("
            and stream[end + 1].word not in ("SELECT", "FROM", "WITH", "VALUES")
        ):
            close = next((i for i in range(end, len(stream)) if stream[i].text == ")"), end)
            columns = tuple(t.name for t in stream[end:close] if t.name)
            end = close + 1
        last = stream[end - 1].end
        by_name = [t.word for t in stream[end : end + 2]] == ["BY", "NAME"]
    return Change(verb, name, stream[at].start, last, columns, by_name, head)


def altered(sql: str) -> Change | None:
    """The table that a statement drops, alters or empties.

    >>> altered("DROP TABLE IF EXISTS s.t CASCADE").name, altered("SELECT 1")
    (('s', 't'), None)
    """
    stream = tokens(sql)
    if not stream or stream[0].word not in ("DROP", "ALTER", "TRUNCATE"):
        return None
    at = next((i for i, token in enumerate(stream[1:], 1) if token.word not in ("TABLE", "IF", "EXISTS")), len(stream))
    name, end = _dotted(stream, at)
    return Change(stream[0].word, name, stream[at].start, stream[end - 1].end) if name else None


def is_export(sql: str) -> bool:
    """Does a statement write all tables of a database into files?"""
    return [token.word for token in tokens(sql)[:2]] == ["EXPORT", "DATABASE"]


def executed(sql: str, prepared: Callable[[], Mapping[str, str]]) -> str:
    """The statement that one runs: what EXPLAIN ANALYZE measures, what EXECUTE names; another as it is.

    Args:
        prepared: gives the prepared statements by their names in lower case.

    >>> executed("EXPLAIN (ANALYZE) EXECUTE p(1)", lambda: {"p": "DELETE FROM t"})
    'DELETE FROM t'
    """
    stream = tokens(sql)
    at = 0
    if stream and stream[0].word == "EXPLAIN":
        at = 1
        while at < len(stream) and (stream[at].word in _MEASURES or stream[at].text == "("):
            close = (i for i in range(at, len(stream)) if stream[i].text == ")")
            at = 1 + (next(close, at) if stream[at].text == "(" else at)
        if not any(token.name.upper() in _MEASURES for token in stream[1:at]):
            return sql
    if at + 1 < len(stream) and stream[at].word == "EXECUTE":
        return prepared().get(stream[at + 1].name.lower(), sql)
    return sql[stream[at].start :] if at < len(stream) else sql


def tables(sql: str) -> Iterator[tuple[str, ...]]:
    """The names that stand where a statement names tables, WITH's among them; perhaps a few that are none.

    So do the names of what it calls or executes, as `call_of` has them, and the tables that a string names in query('…') or
    query_table('…').

    >>> list(tables("SELECT f(1) FROM m(), query('FROM t') WHERE g.h() > 0"))
    [('f()',), ('m',), ('m()',), ('query',), ('query()',), ('t',), ('g', 'h()')]
    """
    stream = tokens(sql)
    from_: list[bool] = [False]  # by depth of parentheses: is this place between FROM and the next clause?
    for i, token in enumerate(stream):
        before = stream[i - 1] if i else None
        if token.text == "(":
            from_.append(from_[-1] and before is not None and (before.text == "," or before.word in _BEFORE_TABLE))
        elif token.text == ")":
            from_[:] = from_[:-1] or [False]
        elif token.word in ("FROM", "USING"):
            from_[-1] = True
        elif token.word in _AFTER_FROM:
            from_[-1] = False
        elif token.name and before is not None and before.text != ".":
            listed = from_[-1] and before.text in (",", "(")
            if before.word in _BEFORE_TABLE or listed:
                yield _dotted(stream, i)[0]
        yield from _called(stream, i)


def may_name(sql: str) -> Callable[[str], bool]:
    """Tells of the name of a table whether a statement may read it, wherever its name stands.

    A name is one, and where the statement calls a function that reads tables by their names, so is a part of a string. Where such a
    function may be given what is no constant, every name is.

    >>> [may_name(sql)("T") for sql in ("FROM ((t))", "SELECT 't'", "FROM query($$FROM t$$)", "FROM query_table('a' || 'b')")]
    [True, False, True, True]
    """
    stream = tokens(sql)
    names = {token.name.lower() for token in stream}
    if names.isdisjoint(READ_BY_NAME):
        return lambda name: name.lower() in names
    strings = [_bare(token.text) for token in stream if token.text[0] in "'$"]
    calls = [at for at, token in enumerate(stream) if token.name.lower() in READ_BY_NAME]
    if not all(_constant(stream[at + 1 :]) for at in calls):
        return lambda name: True
    return lambda name: name.lower() in names or any(_bare(name) in text for text in strings)


def _bare(text: str) -> str:
    return re.sub("""['"]""", "", text).lower()


def _constant(stream: list[Token]) -> bool:
    """Do names, and strings that nothing is added to, stand between the parentheses that begin here, if any do?"""
    parts = list(takewhile(lambda token: token.text != ")", stream[1:])) if stream and stream[0].text == "(" else []
    beside = any(a.text[0] in "'$" and b.text[0] in "'$" for a, b in pairwise(parts))
    return not beside and all(token.name or token.text[0] in "'$[]," for token in parts)


def call_of(name: str) -> str:
    """The name of a macro, or of a prepared statement, among those of tables."""
    return f"{name.lower()}()"


def is_call(name: str) -> bool:
    return name.endswith("()")


def _called(stream: list[Token], at: int) -> Iterator[tuple[str, ...]]:
    """The function whose call begins at a token, or the prepared statement that it executes, and the tables that its strings name."""
    token = stream[at]
    after = stream[at + 1].text if at + 1 < len(stream) else ""
    if at and token.name and stream[at - 1].word == "EXECUTE":
        yield (call_of(token.name),)
    elif token.name and after == "(":
        first = at
        while first >= 2 and stream[first - 1].text == "." and stream[first - 2].name:
            first -= 2
        *parts, name = _dotted(stream, first)[0]
        yield (*parts, call_of(name))
        if name.lower() in _OF_STRINGS:
            for part in stream[at + 2 :]:
                if part.text == ")":
                    break
                if part.text.startswith("'"):
                    inside = part.text[1:-1].replace("''", "'")
                    yield from tables(inside if name.lower() == "query" else f"FROM {inside}")


def query_in(sql: str) -> str:
    """The query of CREATE VIEW; anything else as it is.

    >>> query_in('CREATE VIEW "a AS b" (c) AS SELECT 1;'), query_in("FROM t")
    (' SELECT 1', 'FROM t')
    """
    stream = tokens(sql)
    if stream[0].word != "CREATE":
        return sql
    return sql[next(token.end for token in stream if token.word == "AS") :].rstrip().removesuffix(";")


def without_options(sql: str) -> tuple[str, str]:
    """A statement of DuckDB's own without the `WITH (name = value)` of UQL's settings at its end, and that text; "" where it has none.

    It may stand before RETURNING.

    >>> without_options("UPDATE t SET a = b WITH (partial = true)")
    ('UPDATE t SET a = b ', 'WITH (partial = true)')
    """
    tail = _TAIL.search(sql)
    if tail is None:
        return sql, ""
    names = [part.partition("=")[0].strip().lower() for part in tail[1].split(",")]
    if not all(name in NAMES for name in names):
        return sql, ""
    return sql[: tail.start()] + sql[tail.end() :], tail[0]


def _verb(stream: list[Token]) -> int | None:
    """The place of the word that says what the statement does, behind its WITH."""
    if not stream:
        return None
    if stream[0].word in _VERBS:
        return 0
    depth = 0
    for i, token in enumerate(stream):
        depth += {"(": 1, ")": -1}.get(token.text, 0)
        if stream[0].word == "WITH" and not depth and token.word in ("INSERT", "UPDATE", "DELETE", "MERGE"):
            return i
        if not depth and token.word in ("SELECT", "FROM", "VALUES"):
            return None
    return None


def _dotted(stream: list[Token], at: int) -> tuple[tuple[str, ...], int]:
    """The parts of a name that begins at a token, and the place of the token behind it."""
    parts: list[str] = []
    while at < len(stream) and stream[at].name:
        parts.append(stream[at].name)
        at += 1
        if at >= len(stream) or stream[at].text != ".":
            break
        at += 1
    return tuple(parts), at

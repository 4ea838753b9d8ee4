"""UPDATE and DELETE with texts of their own, as DuckDB can run them: the rows are chosen and asked by a sub-query.

`DELETE FROM t WHERE "it is spam"` becomes `DELETE FROM t WHERE t.rowid IN (SELECT t.rowid FROM t WHERE "it is spam")`, and UPDATE takes
its new values from such a sub-query. A text that is all of a new value is asked as the type of its column.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass

from uql.base.errors import DataError, UnknownColumnError, UQLError, UQLSyntaxError
from uql.base.names import suggestion
from uql.base.schema import Table
from uql.base.sql_text import quote
from uql.compiler.parser import parse
from uql.compiler.statement_targets import Token, changed, tokens, without_comments

Piece = str | tuple[int, int]
ROW, NEW = "__uql_row", "__uql_new"
_CLAUSES = {"UPDATE": ("SET", "FROM", "WHERE", "RETURNING"), "DELETE": ("USING", "WHERE", "RETURNING")}
_DEPTHS = {"(": 1, "[": 1, "{": 1, ")": -1, "]": -1, "}": -1}


@dataclass(frozen=True, slots=True)
class Rewritten:
    """A statement made of pieces of another, (start, end) in it, and of words between them."""

    source: str
    before: tuple[Piece, ...]
    inner: tuple[Piece, ...]  # the sub-query
    after: tuple[Piece, ...]

    @property
    def text(self) -> str:
        return "".join(map(self._words, self._pieces))

    @property
    def _pieces(self) -> tuple[Piece, ...]:
        return (*self.before, *self.inner, *self.after)

    def check(self) -> None:
        """Parses the sub-query. Raises: UQLSyntaxError at the place in the statement as it was written."""
        first = "".join(map(self._words, self.before))
        inner = "".join(map(self._words, self.inner))
        try:
            parse(inner)
        except UQLSyntaxError as error:
            error.start, error.end, error.text = error.start + len(first), error.end + len(first), self.text
            raise self.placed(error) from None

    def placed(self, error: UQLError) -> UQLError:
        """The error with its place in the statement as it was written, its comments apart."""
        if error.text == self.text:
            if error.start >= 0:
                end = self._place(max(error.start, error.end - 1)) + 1
                error.start = self._place(error.start)
                error.end = max(end, error.start + 1)
            error.text = self.source
        return error

    def _words(self, piece: Piece) -> str:
        return piece if isinstance(piece, str) else self.source[piece[0] : piece[1]]

    def _place(self, place: int) -> int:
        """A place in the text as it was written: of a word between the pieces, where the piece before it ends."""
        end = last = 0
        for piece in self._pieces:
            begin, end = end, end + len(self._words(piece))
            if isinstance(piece, str):
                if place < end:
                    break
            elif place < end:
                return piece[0] + place - begin
            else:
                last = max(piece[1] - 1, 0)
        return last


def rewritten(
    source: str,
    table_of: Callable[[tuple[str, ...]], Table],
    parameters: Collection[str] = (),
    nested: bool = False,
) -> Rewritten | None:
    """The statement with its texts in a sub-query; None where it is neither UPDATE nor DELETE, or has no such texts.

    Args:
        source: one statement; EXPLAIN may stand before it.
        table_of: the table of a name.
        parameters: the names of those that are texts.
        nested: texts in sub-queries count too, not only those outside of them.
    Raises: as `table_of`; DataError (UQL509) where the rows are not those of a table.
    """
    source = without_comments(source)
    all_tokens = tokens(source)
    first = 1 if all_tokens and all_tokens[0].word == "EXPLAIN" else 0
    verb = all_tokens[first].word if len(all_tokens) > first else ""
    change = changed(source[all_tokens[first].start :]) if verb in ("UPDATE", "DELETE") else None
    if change is None:
        return None
    from_start = all_tokens[first].start
    name = (change.start + from_start, change.head + from_start)
    clauses = _clauses(source, [t for t in all_tokens if t.start >= name[1]], _CLAUSES[verb])
    table = table_of(change.name)
    parts = [clauses[word] for word in ("SET", "WHERE") if word in clauses]
    if not any(_asks(all_tokens, part, table, parameters, nested) for part in parts):
        return None
    if not table.has_rowid:
        raise DataError(
            f"{verb} changes the rows of a table, and {table.name} is a view, a file or a data frame",
            code="UQL509",
            text=source,
            start=name[0],
            end=name[1],
            help="name the table that it reads",
        )
    alias = [token.text for token in all_tokens if name[1] <= token.start < clauses["head"][1]]
    row = f"{alias[-1] if alias else quote(change.name[-1])}.rowid"
    target: tuple[Piece, ...] = ((name[0], clauses["head"][1]),)
    others = [part for word in ("FROM", "USING") if (part := clauses.get(word))]
    of: list[Piece] = [" FROM ", *target]
    for part in others:
        of += [", ", part]
    if "WHERE" in clauses:
        of += [" WHERE ", clauses["WHERE"]]
    end: list[Piece] = [" RETURNING ", clauses["RETURNING"]] if "RETURNING" in clauses else []
    begin = (0, name[0])
    if verb == "DELETE":
        before = (begin, *target, f" WHERE {row} IN (")
        return Rewritten(source, before, (f"SELECT {row}", *of), (")", *end))
    sets: list[Piece] = []
    values: list[Piece] = []
    assigned = _assignments(source, all_tokens, clauses["SET"], table, parameters)
    if assigned is None:
        return None
    for number, (column, value, type) in enumerate(assigned):
        sets += [", " if sets else "", column, " = "]
        if source[slice(*value)].strip().upper() == "DEFAULT":
            sets.append("DEFAULT")
        else:
            sets.append(f"{NEW}.__uql_{number}")
            values += [", ", value, type, f" AS __uql_{number}"]
    before = (begin, *target, " SET ", *sets, " FROM (")
    inner = (f"SELECT {row} AS {ROW}", *values, *of)
    return Rewritten(source, before, inner, (f") AS {NEW} WHERE {row} = {NEW}.{ROW}", *end))


def _clauses(source: str, rest: Sequence[Token], words: tuple[str, ...]) -> dict[str, tuple[int, int]]:
    """Where the parts behind the table's name stand, by the words with which they begin: `head` is its alias."""
    places: list[tuple[str, int, int]] = []
    depth = 0
    for before, token in zip([None, *rest], rest, strict=False):
        depth += _DEPTHS.get(token.text, 0)
        distinct = before is not None and before.word == "DISTINCT"  # IS DISTINCT FROM
        if depth == 0 and token.word in words and not distinct:
            places.append((token.word, token.start, token.end))
            words = words[words.index(token.word) + 1 :]
    last = len(source.rstrip().rstrip(";"))
    ends = [*(start for _, start, _ in places), last]
    clauses = {"head": (rest[0].start if rest else last, len(source[: ends[0]].rstrip()))}
    for (word, _, start), end in zip(places, ends[1:], strict=True):
        clauses[word] = (start, end)
    return clauses


def _asks(
    all_tokens: Sequence[Token], part: tuple[int, int], table: Table, parameters: Collection[str], nested: bool
) -> bool:
    """Does the part have a text that is not a column of the table, or such a parameter, outside of sub-queries or anywhere?"""
    within = [t for t in all_tokens if part[0] <= t.start < part[1]]
    opened: list[bool] = []
    for before, token, after in zip([None, *within], within, [*within[1:], None], strict=False):
        if token.text == "(":
            opened.append(not nested and after is not None and after.word in ("SELECT", "FROM", "WITH", "VALUES"))
        elif token.text == ")" and opened:
            opened.pop()
        is_column = "." in (before.text if before else "", after.text if after else "") or table.field(token.name)
        aliased = before is not None and before.word == "AS"
        is_parameter = before is not None and before.text == "$" and token.name in parameters
        if (is_parameter or (is_text(token) and not (is_column or aliased))) and not any(opened):
            return True
    return False


def is_text(token: Token) -> bool:
    """Is it quoted, with white space in it?"""
    return token.text.startswith('"') and len(token.name.split()) > 1


def _assignments(
    source: str, all_tokens: Sequence[Token], part: tuple[int, int], table: Table, parameters: Collection[str]
) -> list[tuple[tuple[int, int], tuple[int, int], str]] | None:
    """(column, value, cast of the value) for each `column = value` of SET; None where it is something else.

    Raises: UnknownColumnError (UQL202) for a column that the table does not have.
    """
    within = [t for t in all_tokens if part[0] <= t.start < part[1]]
    cuts, depth = [], 0
    for index, token in enumerate(within):
        depth += _DEPTHS.get(token.text, 0)
        if depth == 0 and token.text == ",":
            cuts.append(index)
    assignments = []
    for begin, end in zip([0, *(c + 1 for c in cuts)], [*cuts, len(within)], strict=True):
        sign = next((i for i in range(begin, end) if within[i].text == "="), end)
        value = within[sign + 1 : end]
        if not value or not within[sign - 1].name:
            return None
        field = table.field(within[sign - 1].name)
        if field is None:
            names = [column.name for column in table.fields]
            raise UnknownColumnError(
                f"no column {within[sign - 1].name} in {table.name}",
                text=source,
                start=within[sign - 1].start,
                end=within[sign - 1].end,
                help=f"{suggestion(within[sign - 1].name, names)}columns: {', '.join(names[:20])}",
            )
        is_literal = len(value) == 1 and is_text(value[0]) and table.field(value[0].name) is None
        only_text = is_literal or (len(value) == 2 and value[0].text == "$" and value[1].name in parameters)
        cast = f"::{field.type}" if only_text and field is not None and field.type != "VARCHAR" else ""
        assignments.append(((within[begin].start, within[sign - 1].end), (value[0].start, value[-1].end), cast))
    return assignments

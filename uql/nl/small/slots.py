"""A query with typed slots: which text or image column is read, what is asked of it, and what is made of the answers; as UQL.

    READ letters.letter number: the number of days that {shops.name} was late
    WHERE answer > 3 AND shops.city = 'Leeds'
    GROUP BY shops.city
    SELECT avg(answer)
    ORDER BY avg(answer) DESC
    LIMIT 1

`answer` is what the model reads in a row. `ALSO letters.letter yes_no: …` is one more condition that is read. The tables of FROM follow
from the columns. "READ nothing" says that plain columns answer the question. Every slot is checked against the columns that are there: a
TEXT or IMAGE is read, a plain column is not.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Literal, get_args

from uql.base.errors import QuestionError
from uql.base.schema import Field
from uql.nl.schema.join_paths import NUMBERS, from_text, joins, named
from uql.nl.schema.scope import Scope
from uql.nl.small.near_names import near_columns

Kind = Literal["yes_no", "number", "text"]
NOTHING = "READ nothing"
ANSWER = "answer"
AGGREGATES = ("sum", "avg", "min", "max", "median")
PARTS = ("year", "month", "decade", "century")
MOST_ROWS = 1_000  # of LIMIT
_NAME = r'(?:"[^"\n]+"|[A-Za-z_]\w*)'
_COLUMN = re.compile(rf"({_NAME})\.({_NAME})")
_READ = re.compile(rf"(READ|ALSO) ({_NAME})\.({_NAME}) ({'|'.join(get_args(Kind))}): (.+)")
_LINE = re.compile(r"(WHERE|GROUP BY|SELECT|ORDER BY|LIMIT) (.+)")
_CALL = re.compile(r"(\w+)\((.*)\)\Z")
_LITERAL = r"'(?:[^']|'')*'|-?\d+(?:\.\d+)?|TRUE|FALSE"
_COMPARED = re.compile(rf"(.+?) (=|<>|<=|>=|<|>|LIKE) ({_LITERAL})\Z", re.IGNORECASE)
_LISTED = re.compile(rf"(.+?) IN \(({_LITERAL})((?:, (?:{_LITERAL}))*)\)\Z", re.IGNORECASE)
_NULL = re.compile(r"(.+?) IS (NOT )?NULL\Z", re.IGNORECASE)
_HOLDS = re.compile(r"list_contains\((.+), ('(?:[^']|'')*')\)\Z", re.IGNORECASE)
_EQUAL = re.compile(rf"({_NAME})\.({_NAME}) = '((?:[^']|'')*)'\Z")
_DAY = re.compile(r"'\d{4}-\d\d-\d\d'")
_HOLE = re.compile(r"\{([^{}]*)\}")
_TYPES = {"number": "DOUBLE", "text": "VARCHAR"}


@dataclass(frozen=True, slots=True)
class Read:
    """What is asked of one text or image column."""

    table: str
    column: str
    kind: Kind
    text: str


@dataclass(frozen=True, slots=True)
class Slots:
    """The slots of a query, each as it was written; `down` is ORDER BY … DESC, `limit` 0 none."""

    reads: tuple[Read, ...]
    where: tuple[str, ...]
    group: tuple[str, ...]
    items: tuple[str, ...]
    order: str = ""
    down: bool = False
    limit: int = 0

    @property
    def normal_form(self) -> tuple[tuple[str, ...], ...]:
        """What two queries that ask the same have in common: all but the words of the texts and the order of conditions and items."""
        reads = tuple(f"{read.table}.{read.column} {read.kind}".lower() for read in self.reads)
        end = (self.order.lower(), str(self.down), str(self.limit)) if self.order else (str(self.limit),)
        return (
            reads,
            tuple(sorted(map(str.lower, self.where))),
            tuple(sorted(map(str.lower, self.group))),
            tuple(sorted(map(str.lower, {*self.items} - {*self.group}))),
            end,
        )


def parse(text: str) -> Slots | None:
    """The slots of a model's reply; None where it says that nothing is read.

    Raises: QuestionError (UQL631) for a line that is none of the form.
    """
    lines = [line.strip() for line in text.strip().removeprefix("```").removesuffix("```").strip().splitlines()]
    lines = [line for line in lines if line]
    if lines and lines[0].lower().startswith(NOTHING.lower()):
        return None
    reads: list[Read] = []
    parts: dict[str, str] = {}
    for line in lines:
        if (read := _READ.fullmatch(line)) is not None and not parts:
            kind: Kind = read[4]  # type: ignore[assignment]  # of the alternatives of the expression
            reads.append(Read(_bare(read[2]), _bare(read[3]), kind, read[5].strip().strip("'")))
        elif (part := _LINE.fullmatch(line)) is not None and part[1] not in parts:
            parts[part[1]] = part[2]
        else:
            raise _wrong(f"the line {line[:80]!r} is none of the form", "READ table.column kind: …, WHERE, GROUP BY …")
    if not reads or "SELECT" not in parts:
        raise _wrong("the query has no READ or no SELECT", "begin with READ table.column yes_no|number|text: …")
    order, _, way = parts.get("ORDER BY", "").partition(" ")
    if way.upper() not in ("", "ASC", "DESC"):
        raise _wrong(f"ORDER BY {parts['ORDER BY']!r} is no order", "ORDER BY answer DESC")
    limit = parts.get("LIMIT", "0")
    if not limit.isdigit() or int(limit) > MOST_ROWS:
        raise _wrong(f"LIMIT {limit!r} is no number of rows", f"a number up to {MOST_ROWS}")
    return Slots(
        tuple(reads[:2]),
        tuple(_split(parts.get("WHERE", ""), " AND ")),
        tuple(_split(parts.get("GROUP BY", ""), ", ")),
        tuple(_split(parts["SELECT"], ", ")),
        order,
        way.upper() == "DESC",
        int(limit),
    )


def equalities(slots: Slots) -> dict[int, tuple[str, str, str]]:
    """The conditions that a column equals a text, by their places in WHERE: table, column, text.

    >>> equalities(Slots((), ("answer > 3", "shops.city = 'King''s Lynn'"), (), ()))
    {1: ('shops', 'city', "King's Lynn")}
    """
    found = ((n, _EQUAL.match(condition.strip())) for n, condition in enumerate(slots.where))
    return {n: (_bare(m[1]), _bare(m[2]), m[3].replace("''", "'")) for n, m in found if m is not None}


def with_value(slots: Slots, place: int, table: str, column: str, value: str) -> Slots:
    """The slots with a condition of WHERE replaced by: this column equals this text.

    Args:
        place: position in WHERE.
        table, column: that it compares.
        value: as it stands in the column.
    """
    text = value.replace("'", "''")
    where = [*slots.where]
    where[place] = f"{named(table, column)} = '{text}'"
    return replace(slots, where=tuple(dict.fromkeys(where)))


def render(slots: Slots, scope: Scope) -> str:
    """The slots as one statement of UQL.

    Raises: QuestionError (UQL631): a column that is not there, a plain column that is read, a text or image that is compared, tables that
        no column links.
    """
    return _Rendering(slots, scope).statement()


@dataclass(slots=True)
class _Rendering:
    slots: Slots
    scope: Scope

    def statement(self) -> str:
        slots = self.slots
        source = self._source()
        self._one_value_each()
        where = [self._condition(each) for each in slots.where]
        where += [self._asked(read) for read in slots.reads[1:]]
        first = slots.reads[0]
        aggregated = any(_aggregate(item) for item in slots.items) or bool(slots.group)
        told = any(_names_answer(part) for part in (*slots.where, *slots.group, *slots.items, slots.order))
        if first.kind == "yes_no" and not told:
            where.insert(0, self._asked(first))
        elif not told:
            raise _wrong("answer is not used", "SELECT answer, max(answer), or WHERE answer > …")
        keys = list(slots.group)
        if aggregated:
            keys += [item for item in slots.items if not _aggregate(item) and item not in keys]
        shown = [*(key for key in keys if key not in slots.items), *slots.items]
        names = self._names(shown)
        text = "SELECT " + ", ".join(f"{self._value(item)} AS {names[item]}" for item in shown) + f" FROM {source}"
        where += [f"{self._value(key)} IS NOT NULL" for key in keys if key != ANSWER]
        text += f" WHERE {' AND '.join(dict.fromkeys(where))}" if where else ""
        text += f" GROUP BY {', '.join(self._value(key) for key in keys)}" if keys and aggregated else ""
        if slots.order:
            by = names.get(slots.order) or self._value(slots.order)
            if (
                aggregated and slots.order not in shown and not _aggregate(slots.order)
            ):  # of a group, the row that comes first
                by = f"{'max' if slots.down else 'min'}({by})"
            text += f" ORDER BY {by}{' DESC' if slots.down else ''}"
        return text + (f" LIMIT {slots.limit}" if slots.limit else "")

    def _one_value_each(self) -> None:
        """A column that equals two texts at once gives no rows."""
        held: dict[str, str] = {}
        for table, column, value in equalities(self.slots).values():
            name = f"{table}.{column}"
            if held.setdefault(name.lower(), value) != value:
                raise _wrong(
                    f"{name} cannot be both {held[name.lower()]!r} and {value!r}", "one condition, or IN ('a', 'b')"
                )

    # ------------------------------------------------------------------------------------------------------- the tables
    def _source(self) -> str:
        """FROM: the fewest tables, joined along their links, that have all columns that are named."""
        needed = {self._field(read.table, read.column)[0] for read in self.slots.reads}
        for written in self._written():
            needed |= {self._field(_bare(table), _bare(column))[0] for table, column in _COLUMN.findall(written)}
        found = next((way for way in joins(self.scope) if needed <= set(way[0])), None)
        if found is None:
            raise _wrong(f"no columns link {', '.join(sorted(needed))}", "use columns of tables that are linked")
        return from_text(*found)

    def _written(self) -> Iterator[str]:
        slots = self.slots
        for part in (*slots.where, *slots.group, *slots.items, slots.order):
            yield re.sub(r"'(?:[^']|'')*'", "''", part)
        for read in slots.reads:
            yield from _HOLE.findall(read.text)

    def _field(self, table: str, column: str) -> tuple[str, Field]:
        """A column that a model may see, by its names in any case, with the name of its table."""
        for name, source in self.scope.sources.items():
            for f in source.shown:
                if (name.lower(), f.name.lower()) == (table.lower(), column.lower()):
                    return name, f
        raise _wrong(f"there is no column {table}.{column}", near_columns(f"{table}.{column}", self.scope))

    def _plain(self, text: str) -> tuple[str, Field]:
        """A plain column, as UQL writes it. A text or an image is not compared or shown: it is read."""
        found = _COLUMN.fullmatch(text.strip())
        if found is None:
            raise _wrong(f"{text!r} is no column", "write columns as table.column")
        table, f = self._field(_bare(found[1]), _bare(found[2]))
        if f.is_unstructured:
            kind = f.modality.value.upper()
            raise _wrong(f"{table}.{f.name} is {kind}: a model reads it, SQL cannot", f"READ {table}.{f.name} …: …")
        return named(table, f.name), f

    # --------------------------------------------------------------------------------------------------- what is read
    def _asked(self, read: Read) -> str:
        """The quoted text of a read, of the one column; a hole for a plain column stands as it is."""
        table, f = self._field(read.table, read.column)
        if not f.is_unstructured:
            raise _wrong(f"{table}.{f.name} is a plain column: it is compared, not read", f"WHERE {table}.{f.name} = …")
        words = read.text.replace("\\", "").replace('"', "’")
        column = named(table, f.name)
        if "{" in words:
            words = _HOLE.sub(lambda hole: "{" + self._plain(hole[1])[0] + "}", words)
            return f'PROMPT "{words}, according to {{{column}}}"'
        return f'PROMPT "{words}" USING ({column})'

    def _answer(self) -> str:
        first = self.slots.reads[0]
        asked = self._asked(first)
        return asked if first.kind == "yes_no" else f"CAST({asked} AS {_TYPES[first.kind]})"

    # --------------------------------------------------------------------------------------------------- expressions
    def _value(self, text: str) -> str:
        """An item, key or order."""
        text = text.strip()
        if text == ANSWER:
            return self._answer()
        if text.lower() == "count(*)":
            return "count(*)"
        call = _CALL.match(text)
        if call is None:
            return self._plain(text)[0]
        name, inner = call[1].lower(), call[2]
        if name == "percent":
            return f"100.0 * avg(CASE WHEN {self._condition(inner)} THEN 1.0 ELSE 0.0 END)"
        if name == "count" and inner.lower().startswith("distinct "):
            return f"count(DISTINCT {self._value(inner[9:])})"
        if name in AGGREGATES:
            return f"{name}({self._number(inner)})"
        if name in PARTS:
            return self._part(name, inner)
        raise _wrong(f"{name}() is no function of the form", f"functions: {', '.join((*AGGREGATES, *PARTS))}")

    def _number(self, text: str) -> str:
        if text == ANSWER and self.slots.reads[0].kind != "number":
            raise _wrong("answer is no number", "READ … number: …")
        return self._value(text)

    def _part(self, part: str, text: str) -> str:
        """The year, month, decade or century of a date, of a text that begins as one, or of the number of a year."""
        column, f = self._plain(text)
        if f.type.startswith(NUMBERS):
            year = column
        elif f.type.startswith(("DATE", "TIMESTAMP")):
            year = f"year({column})"
        else:
            year = f"CAST(regexp_extract({column}, '^-?[0-9]+') AS INTEGER)"
        match part:
            case "month":
                return f"month(TRY_CAST({column} AS DATE))"
            case "decade":
                return f"CAST(floor({year} / 10) AS INTEGER) * 10"
            case "century":
                return f"CAST(floor(({year} - 1) / 100) AS INTEGER) + 1"
        return year

    def _condition(self, text: str) -> str:
        text = text.strip()
        if text.upper().startswith("NOT "):
            return f"NOT {self._condition(text[4:])}"
        if text == ANSWER:
            if self.slots.reads[0].kind != "yes_no":
                raise _wrong("answer is no condition", "answer > 3, answer = 'red', or READ … yes_no: …")
            return self._answer()
        if (held := _HOLDS.match(text)) is not None:
            return f"list_contains({self._plain(held[1])[0]}, {held[2]})"
        if (null := _NULL.match(text)) is not None:
            return f"{self._value(null[1])} IS {null[2] or ''}NULL"
        if (listed := _LISTED.match(text)) is not None:
            return f"{self._value(listed[1])} IN ({listed[2]}{listed[3]})"
        if (compared := _COMPARED.match(text)) is not None:
            op = "ILIKE" if compared[2].upper() == "LIKE" else compared[2]
            return f"{self._of_days(compared[1], compared[3])} {op} {compared[3]}"
        column, f = self._plain(text)
        if f.type != "BOOLEAN":
            raise _wrong(f"{text} is no condition", "compare it with a value")
        return column

    def _of_days(self, text: str, literal: str) -> str:
        """An item that is compared; of a time that is compared with a day, its day."""
        value = self._value(text)
        if _DAY.fullmatch(literal) and _COLUMN.fullmatch(text.strip()):
            return f"CAST({value} AS DATE)" if self._plain(text)[1].type.startswith("TIMESTAMP") else value
        return value

    def _names(self, items: list[str]) -> dict[str, str]:
        """A name for each item that no other has."""
        made: dict[str, str] = {}
        for item in items:
            bare = _bare(item.rpartition(".")[2]) if _COLUMN.fullmatch(item) else re.sub(r"\w+\.|\W+", " ", item)
            name = re.sub(r"\W+", "_", bare.strip()).lower().strip("_") or "n"
            name = "n" if name == "count" else name
            while name in made.values() or named(name) != name:
                name += "_"
            made[item] = name
        return made


def _aggregate(item: str) -> bool:
    call = _CALL.match(item)
    return call is not None and call[1].lower() in (*AGGREGATES, "count", "percent")


def _names_answer(part: str) -> bool:
    return re.search(rf"\b{ANSWER}\b", re.sub(r"'[^']*'", "", part)) is not None


def _split(text: str, between: str) -> list[str]:
    """The parts of a line, not divided within quotes or brackets.

    >>> _split("a = 'x AND y' AND count(b, c) > 1", " AND "), _split("a, max(b, c)", ", ")
    (["a = 'x AND y'", 'count(b, c) > 1'], ['a', 'max(b, c)'])
    """
    parts, start, depth, quoted = [], 0, 0, False
    for n, letter in enumerate(text):
        quoted ^= letter == "'"
        depth += 0 if quoted else (letter == "(") - (letter == ")")
        if not quoted and depth == 0 and n >= start and text.startswith(between, n):
            parts.append(text[start:n])
            start = n + len(between)
    return [part.strip() for part in (*parts, text[start:]) if part.strip()]


def _bare(name: str) -> str:
    return name.strip('"')


def _wrong(message: str, help: str) -> QuestionError:
    return QuestionError(message, code="UQL631", help=help)

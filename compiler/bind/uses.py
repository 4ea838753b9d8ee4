"""The uses of quoted texts in one query block, and the settling of each text's kind and type from all of its uses."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum
from types import MappingProxyType

from uql import operators
from uql.base.errors import BindError
from uql.compiler.syntax import NO_SPAN, Column, Expr, Query, Span
from uql.compiler.virtual import VirtualColumn
from uql.compiler.walk import walk
from uql.operators.statement_text import is_statement, names_quantity

Widest = Callable[[str, str], str | None]
NONE = "none of these"  # the label of a Choice that says no label fits, as in uql.llm.questions


class Place(IntEnum):
    """Where a text stands, in the order in which places settle its type."""

    CAST = 0
    GROUP = 1
    COMPARE = 2
    SELECT = 3
    ORDER = 4
    CONDITION = 5
    PRESENCE = 6  # IS NULL, COUNT: only whether there is an answer matters
    SAME = 7  # DISTINCT ON: which rows are one thing


@dataclass(frozen=True, slots=True)
class Want:
    """What a place asks of the text in it. `type` None: any type will do."""

    place: Place
    type: str | None = None
    labels: tuple[str, ...] = ()
    label_query: Query | None = None
    closed: bool = False  # ENUM: the labels are all there is
    certain: bool = False  # a term of WHERE: rows with another label do not pass
    into: int | None = None
    many: bool = False
    members: tuple[Want, ...] = ()  # of a row: what is asked of each of its values


ANY = Want(Place.SELECT)
CONDITION = Want(Place.CONDITION, "BOOLEAN")
ORDER = Want(Place.ORDER)
NUMBER = Want(Place.COMPARE, "DOUBLE")
WORDS = Want(Place.COMPARE, "VARCHAR")  # numbers may be printed there too
ARGUMENT = Want(Place.COMPARE, "VARCHAR")  # equal to it, and its own: of a function that may take any type
PRINTED = Want(Place.COMPARE, "VARCHAR")  # equal to it, and its own: of MIN and MAX, whatever their text is elsewhere
TEXT = Want(Place.COMPARE, "VARCHAR")  # equal to it, and its own: numbers make no sense there
LIST = Want(Place.COMPARE, "VARCHAR[]")
PRESENCE = Want(Place.PRESENCE)
SAME = Want(Place.SAME, "BIGINT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Expr):
    """A text whose kind and type are not settled yet: number `index` among the block's uses."""

    index: int


def is_pending(expr: Expr | None) -> bool:
    """Does a text stand in it that is not settled yet?"""
    return any(isinstance(node, Pending) for node in walk(expr))


@dataclass(frozen=True, slots=True)
class Use:
    """One occurrence of a text that a model has to answer."""

    text: str
    reads: tuple[Column, ...]
    holes: tuple[Column, ...]
    named: tuple[Column, ...]
    want: Want
    group: bool  # about a group: beside aggregates, outside of them
    before: bool  # WHERE, ON: comes before the groups
    attempt: bool = False
    lenient: bool = False  # in TRY_CAST
    is_key: bool = False  # it is a group key, cast or not
    span: Span = field(default=NO_SPAN, compare=False)
    at: Span = field(default=NO_SPAN, compare=False)  # where an alias stands for it

    @property
    def place(self) -> Span:
        return self.at if self.at.start >= 0 else self.span

    @property
    def key(self) -> tuple[object, ...]:
        return self.text, frozenset(self.reads), frozenset(self.holes), self.attempt


_NUMERAL = re.compile(r"\s*[-+]?(\d+(\.\d*)?|\.\d+)(e[-+]?\d+)?\s*", re.IGNORECASE)
_TYPE_TOKEN = re.compile(r"""'(?:''|[^'])*'|"(?:""|[^"])*"|[(),]|[^'"(),]+""")
_FIELD = re.compile(r"""(?:([^\s"]+)|"((?:[^"]|"")*)")\s+(.*)""", re.DOTALL)
_LABEL = re.compile(r"'(?:[^']|'')*'")
_FREE = (Place.SELECT, Place.ORDER, Place.PRESENCE)  # any type will do there
_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT", "FLOAT", "REAL", "DOUBLE")


def is_numeric(type: str) -> bool:
    return type.startswith(("DECIMAL", "NUMERIC", *_NUMERIC)) and not type.endswith("]")


def member_types(type: str) -> dict[str, str]:
    """The types of the values of a row by "0", "1" …, of the fields of a struct by name, of the items of a list by ""; of others none.

    >>> member_types("TUPLE(INTEGER, DECIMAL(9,2), ENUM('a, b'))")
    {'0': 'INTEGER', '1': 'DECIMAL(9,2)', '2': "ENUM('a, b')"}
    >>> member_types('STRUCT(a INTEGER, "b c" VARCHAR[])'), member_types("STRUCT(a DATE)[]")
    ({'a': 'INTEGER', 'b c': 'VARCHAR[]'}, {'': 'STRUCT(a DATE)'})
    """
    if type.endswith("]"):
        return {"": type[: type.rindex("[")]}
    kind, _, rest = type.partition("(")
    if kind not in ("TUPLE", "STRUCT"):
        return {}
    parts, depth = [""], 0
    for token in _TYPE_TOKEN.findall(rest[:-1]):
        depth += (token == "(") - (token == ")")
        if token == "," and not depth:
            parts.append("")
        else:
            parts[-1] += token
    if kind == "TUPLE":
        return {str(i): part.strip() for i, part in enumerate(parts)}
    fields = [found for part in parts if (found := _FIELD.fullmatch(part.strip()))]
    return {(f[1] or f[2].replace('""', '"')).lower(): f[3] for f in fields} if len(fields) == len(parts) else {}


def settle(
    uses: list[Use],
    widest: Widest,
    conditions: frozenset[str] = frozenset(),
    widths: Mapping[str, str] = MappingProxyType({}),
    by_name: Mapping[str, str] = MappingProxyType({}),
) -> list[VirtualColumn]:
    """The virtual column of each use, in the order of the uses. Raises: BindError (UQL206) on a text of two types.

    Args:
        uses: of one query block.
        widest: the type to which two types are cast together, None where there is none.
        conditions: texts that are conditions elsewhere in the statement: BOOLEAN, unless a place here settles another type.
        widths: the widest type of texts that need several in the statement.
        by_name: the type of texts that are calculated or compared with under a name, unless a place here settles another type.
            (Else a statement, as "the customer is angry", is BOOLEAN, also where it is cast to a number; by which alone rows are ordered,
            it is a score.)
    """
    grouped = {use.key for use in uses if use.is_key or use.want.place is Place.GROUP}
    families: dict[tuple[object, ...], list[int]] = {}
    for index, use in enumerate(uses):
        of_groups, of_pairs = use.group and use.key not in grouped, use.want.place is Place.SAME
        families.setdefault((use.key, of_groups, of_pairs), []).append(index)
    assigned: dict[int, VirtualColumn] = {}
    for members in families.values():
        wants = [uses[index].want for index in members]
        text = uses[members[0]].text
        stated = is_statement(text) and text not in by_name and not all(w.place is Place.ORDER for w in wants)
        loose = [w for w in wants if not stated or (w is not ARGUMENT and w is not PRINTED)]
        if _is_open(loose) and (stated or text in conditions or any(w.place is Place.CONDITION for w in wants)):
            for index in members:
                uses[index] = replace(uses[index], want=CONDITION)
        elif (type := by_name.get(text)) is not None and all(w.place in _FREE for w in wants):
            for index in members:
                uses[index] = replace(uses[index], want=_needed(type))
        for chosen, want, indices in _by_cast(
            uses, members, widest, widths.get(text), stated and not names_quantity(text)
        ):
            column = _column(uses, chosen, want, indices, grouped)
            assigned.update(dict.fromkeys(indices, column))
    numbers: dict[VirtualColumn, int] = {}
    for index in sorted(assigned, key=lambda i: (uses[i].span.start, i)):
        numbers.setdefault(assigned[index], len(numbers))
    return [replace(assigned[index], id=numbers[assigned[index]]) for index in range(len(uses))]


def check_statements(uses: list[Use], columns: list[VirtualColumn], warnings: list[str]) -> None:
    """Warns of a text that says what is true or false where its place, and no cast, asks it for a number or for words.

    Args:
        uses: of one query block.
        columns: the virtual column of each use.
        warnings: of the statement; what they say of a text already is not said again.
    """
    cast = {column for use, column in zip(uses, columns, strict=True) if use.want.place is Place.CAST}
    for column in dict.fromkeys(columns):
        if column.is_value and column not in cast and is_statement(column.text):
            begin = f'UQL102: "{column.text[:40]}" says what is true or false, and '
            if not any(warning.startswith(begin) for warning in warnings):
                warnings.append(
                    f'{begin}is asked as {column.type} here; "{column.text[:40]}"::BOOLEAN asks whether it holds, and a number is '
                    f'asked for by its name, as in "how much …"::DOUBLE'
                )


def _needed(type: str) -> Want:
    """What is asked of a text whose answers have to be of a type."""
    if not type.startswith("ENUM("):
        return Want(Place.COMPARE if _is_scalar(type) else Place.CAST, type)
    labels = [label[1:-1].replace("''", "'") for label in _LABEL.findall(type)]
    return Want(Place.CAST, "VARCHAR", tuple(labels), closed=True)


def open_texts(uses: list[Use]) -> set[str]:
    """The texts to which some place here gives no type; a place of a condition makes them BOOLEAN."""
    return {use.text for use in uses if use.want.place is not Place.CONDITION and _is_open([use.want])}


def _is_open(wants: list[Want]) -> bool:
    """Does no place settle another type than BOOLEAN? What is selected, ordered by, counted or a plain group key may be any."""
    places = (Place.SELECT, Place.ORDER, Place.PRESENCE, Place.CONDITION, Place.GROUP)
    return all(want.place in places and want.into is None and not want.many for want in wants)


def _by_cast(
    uses: list[Use], members: list[int], widest: Widest, width: str | None, stated: bool
) -> list[tuple[int, Want, list[int]]]:
    """(deciding use, what is asked, all uses): one where the types can be cast to one another, else one per type.

    A text that is cast to several types is asked once with the widest, and cast in each place. Labels, lists and structs are other
    questions. Uses without a cast go with the first. A statement that is cast to numbers, and to words beside them, is BOOLEAN: 1 and 0.
    Raises: BindError (UQL206) where a condition or BOOLEAN meets another type.
    """
    casts: dict[tuple[str | None, tuple[str, ...]], list[int]] = {}
    for index in members:
        want = uses[index].want
        if want.place is Place.CAST:
            casts.setdefault((want.type, want.labels if want.closed else ()), []).append(index)
    compared = [i for i in members if _is_typed(uses[i].want) and is_number_or_time(uses[i].want.type)]
    if not casts and width is not None and compared and not any(_labelled(uses[i].want) for i in members):
        return [(compared[0], Want(Place.CAST, width), members)]
    if not casts:
        chosen = min(members, key=lambda i: (uses[i].want.place, i))
        return [(chosen, uses[chosen].want, members)]
    cast_uses = {index for indices in casts.values() for index in indices}
    loose = [index for index in members if index not in cast_uses]
    plain = [key for key in casts if not key[1] and _is_scalar(key[0])]
    groups: list[tuple[int, Want, list[int]]] = []
    if plain:
        typed = [index for index in loose if _is_typed(uses[index].want)]
        types = {uses[i].want.type or "VARCHAR": i for key in plain for i in casts[key]}
        types = {**{uses[i].want.type or "VARCHAR": i for i in typed}, **types}
        if width is not None and all(map(is_number_or_time, types)):
            types.setdefault(width, casts[plain[0]][0])
        counts = any(map(is_numeric, types)) and all(is_numeric(type) or type == "VARCHAR" for type in types)
        if stated and counts and _is_open([uses[index].want for index in loose]):
            types["BOOLEAN"] = casts[plain[0]][0]
        first = casts[plain[0]][0]
        widest_want = uses[first].want if len(types) == 1 else Want(Place.CAST, _common(uses, types, widest))
        groups.append((first, widest_want, [i for key in plain for i in casts[key]]))
    groups += [(casts[key][0], uses[casts[key][0]].want, casts[key]) for key in casts if key not in plain]
    groups.sort(key=lambda one: one[0])
    groups[0][2].extend(loose)
    return groups


def _common(uses: list[Use], types: dict[str, int], widest: Widest) -> str:
    """The type that a text is asked with: BOOLEAN where one is, which is 1 and 0 as a number; else the widest."""
    (one, first), *_ = types.items()
    if "BOOLEAN" in types:
        for type, index in types.items():
            if type != "BOOLEAN" and (
                uses[index].want.place is not Place.CAST or not (is_numeric(type) or type == "VARCHAR")
            ):
                raise _two_types(uses[types["BOOLEAN"]], "BOOLEAN", uses[index], type)
        return "BOOLEAN"
    for type, index in types.items():
        both = widest(one, type)
        if both is None:
            raise _two_types(uses[first], one, uses[index], type)
        one = both
    return one


def typed_texts(uses: list[Use]) -> dict[str, set[str]]:
    """The types of numbers, dates and times that places need of each text."""
    types_by_text: dict[str, set[str]] = {}
    for use in uses:
        cast = use.want.place is Place.CAST and not use.want.labels
        if use.want.type is not None and (cast or _is_typed(use.want)) and is_number_or_time(use.want.type):
            types_by_text.setdefault(use.text, set()).add(use.want.type)
    return types_by_text


def is_numeral(value: str) -> bool:
    return _NUMERAL.fullmatch(value) is not None


def is_time(type: str | None) -> bool:
    return type is not None and _is_scalar(type) and type.startswith(("DATE", "TIME"))


def is_number_or_time(type: str | None) -> bool:
    return is_time(type) or (type is not None and _is_scalar(type) and is_numeric(type))


def _is_scalar(type: str | None) -> bool:
    return type is not None and not type.endswith("]") and not type.startswith(("STRUCT", "MAP", "UNION", "ENUM"))


def _is_typed(want: Want) -> bool:
    """Does a place without a cast need a type of its own?"""
    return want.place in (Place.COMPARE, Place.CONDITION) and _is_scalar(want.type) and not _labelled(want)


def cast_in_place(want: Want, column: VirtualColumn) -> bool:
    """Is the value of a text another type than its place needs?"""
    if want.type is None or want.type == column.type or column.is_label or not _is_scalar(column.type):
        return False
    if want.place is Place.CAST:
        return not want.labels and _is_scalar(want.type)
    return _is_typed(want) and not (is_numeric(want.type) and is_numeric(column.type))


def _column(
    uses: list[Use], chosen: int, want: Want, members: list[int], grouped: set[tuple[object, ...]]
) -> VirtualColumn:
    use = uses[chosen]
    is_key = use.key in grouped
    all_wants = [uses[index].want for index in members]
    type = want.type or ("DOUBLE" if want.place is Place.ORDER else "VARCHAR")
    if want.place is not Place.CAST:
        for index in members:
            other = uses[index].want.type
            if other is not None and other != type and not (is_numeric(other) and is_numeric(type)):
                raise _two_types(use, type, uses[index], other)
    labels: dict[str, None] = dict.fromkeys(want.labels if want.closed else ())
    query: Query | None = None
    counted = [w for i, w in zip(members, all_wants, strict=True) if not is_key or uses[i].before or not _labelled(w)]
    whole = not want.closed and _is_value(counted)  # its value is returned: labels would hide it where none fits
    if not want.closed and type == "VARCHAR" and not whole:
        for index in members:
            other_want = uses[index].want
            if is_key and not uses[index].before:
                continue  # after the groups are made, 'a' is compared with the group's label
            labels.update(dict.fromkeys(other_want.labels))
            if other_want.label_query is not None:
                if query is not None and query != other_want.label_query:
                    raise BindError(
                        f'"{use.text}" takes its labels from two queries',
                        code="UQL206",
                        span=uses[index].span,
                        help="use one IN (SELECT …) a text, or UNION the two",
                    )
                query = other_want.label_query
    choice = bool(labels) or query is not None
    if want.place is Place.SAME:
        meaning = operators.Place.DISTINCT_ON
    elif use.group and not is_key:
        meaning = operators.Place.OF_GROUP
    elif choice:
        meaning = operators.Place.LABELS
    elif type == "BOOLEAN":
        meaning = operators.Place.CONDITION
    elif want.place is Place.GROUP and not whole:
        meaning = operators.Place.GROUP_BY
    elif want.place is Place.ORDER:
        meaning = operators.Place.ORDER_BY
    else:
        meaning = operators.Place.VALUE
    group_want = next((w for w in all_wants if w.place is Place.GROUP), None)
    return VirtualColumn(
        id=-1,
        text=use.text,
        operator=operators.AT[meaning],
        type=type,
        reads=use.reads,
        holes=use.holes,
        named=use.named,
        labels=tuple(labels),
        label_query=query,
        none_of_these=not want.closed or any(label.lower() == NONE for label in labels),
        closed=want.closed and choice,
        into=group_want.into if group_want and meaning is operators.Place.GROUP_BY else None,
        many=group_want.many if group_want else False,
        attempt=use.attempt,
        lenient=meaning is operators.Place.VALUE and _is_lenient([uses[index] for index in members]),
        span=use.span,
    )


def _is_lenient(members: list[Use]) -> bool:
    """Does no place but TRY_CAST need a type of the text?"""
    return any(use.lenient for use in members) and all(use.lenient or use.want.type is None for use in members)


def _is_value(wants: list[Want]) -> bool:
    """Is the text a value beside comparisons with labels that rows may fail and still be returned?"""
    labelled = [w for w in wants if _labelled(w)]
    places = (Place.SELECT, Place.GROUP, Place.ORDER, Place.CAST)
    # WORDS: in upper("…"), or beside LIKE
    plain = any((w.place in places or w == WORDS) and not _labelled(w) for w in wants)
    return plain and not all(w.certain for w in labelled)


def _labelled(want: Want) -> bool:
    return bool(want.labels) or want.label_query is not None


_SAID = {
    Place.CAST: "by a cast",
    Place.GROUP: "as a group key",
    Place.COMPARE: "in a comparison or a calculation",
    Place.SELECT: "in SELECT",
    Place.ORDER: "in ORDER BY",
    Place.CONDITION: "as a condition",
    Place.SAME: "in DISTINCT ON",
    Place.PRESENCE: "where its presence is asked for",
}


def _two_types(first: Use, type: str, second: Use, other: str) -> BindError:
    return BindError(
        f'"{first.text}" is {type} {_SAID[first.want.place]}, and {other} {_SAID[second.want.place]}',
        code="UQL206",
        span=second.place,
        help=f'one text has one type in a query: write "{first.text}"::{other}, or ask it in other words',
    )

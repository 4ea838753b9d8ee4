"""The uses of quoted texts in one query block, and the settling of each text's kind and type from all of its uses."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import IntEnum

from uql.compiler.syntax import NO_SPAN, Column, Expr, Query, Span
from uql.compiler.virtual import Kind, VirtualColumn
from uql.errors import BindError

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


ANY = Want(Place.SELECT)
CONDITION = Want(Place.CONDITION, "BOOLEAN")
ORDER = Want(Place.ORDER)
NUMBER = Want(Place.COMPARE, "DOUBLE")
WORDS = Want(Place.COMPARE, "VARCHAR")
LIST = Want(Place.COMPARE, "VARCHAR[]")
PRESENCE = Want(Place.PRESENCE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pending(Expr):
    """A text whose kind and type are not settled yet: number `index` among the block's uses."""

    index: int


@dataclass(frozen=True, slots=True)
class Use:
    """One occurrence of a text that a model has to answer."""

    text: str
    reads: tuple[Column, ...]
    holes: tuple[Column, ...]
    want: Want
    group: bool  # said of a group: stands beside aggregates, outside of them
    before: bool  # WHERE, ON: comes before the groups
    attempt: bool = False
    is_key: bool = False  # it is a group key, cast or not
    span: Span = field(default=NO_SPAN, compare=False)
    at: Span = field(default=NO_SPAN, compare=False)  # where an alias stands for it

    @property
    def place(self) -> Span:
        return self.at if self.at.start >= 0 else self.span

    @property
    def key(self) -> tuple[object, ...]:
        return self.text, frozenset(self.reads), frozenset(self.holes), self.attempt


_NUMERIC = ("TINYINT", "SMALLINT", "INTEGER", "BIGINT", "HUGEINT", "UINTEGER", "UBIGINT", "FLOAT", "REAL", "DOUBLE")


def is_numeric(type: str) -> bool:
    return type.startswith(("DECIMAL", "NUMERIC", *_NUMERIC)) and not type.endswith("]")


def settle(uses: list[Use]) -> list[VirtualColumn]:
    """The virtual column of each use, in the order of the uses. Raises: BindError (UQL206) on a text of two types."""
    grouped = {use.key for use in uses if use.is_key or use.want.place is Place.GROUP}
    families: dict[tuple[object, ...], list[int]] = {}
    for index, use in enumerate(uses):
        families.setdefault((use.key, use.group and use.key not in grouped), []).append(index)
    assigned: dict[int, VirtualColumn] = {}
    for members in families.values():
        for chosen, indices in _by_cast(uses, members):
            column = _column(uses, chosen, indices, grouped)
            assigned.update(dict.fromkeys(indices, column))
    numbers: dict[VirtualColumn, int] = {}
    for index in sorted(assigned, key=lambda i: (uses[i].span.start, i)):
        numbers.setdefault(assigned[index], len(numbers))
    return [replace(assigned[index], id=numbers[assigned[index]]) for index in range(len(uses))]


def _by_cast(uses: list[Use], members: list[int]) -> list[tuple[int, list[int]]]:
    """One (deciding use, all uses) per type that a cast asks for; uses without a cast go with the first."""
    casts: dict[tuple[str | None, tuple[str, ...]], list[int]] = {}
    for index in members:
        want = uses[index].want
        if want.place is Place.CAST:
            casts.setdefault((want.type, want.labels if want.closed else ()), []).append(index)
    if not casts:
        return [(min(members, key=lambda i: (uses[i].want.place, i)), members)]
    cast_uses = {index for indices in casts.values() for index in indices}
    loose = [index for index in members if index not in cast_uses]
    found = [(indices[0], list(indices)) for indices in casts.values()]
    found[0][1].extend(loose)
    return found


def _column(uses: list[Use], chosen: int, members: list[int], grouped: set[tuple[object, ...]]) -> VirtualColumn:
    use = uses[chosen]
    want, is_key = use.want, use.key in grouped
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
                        start=uses[index].span.start,
                        end=uses[index].span.end,
                        help="use one IN (SELECT …) a text, or UNION the two",
                    )
                query = other_want.label_query
    choice = bool(labels) or query is not None
    if use.group and not is_key:
        kind = Kind.SUMMARY
    elif choice:
        kind = Kind.CHOICE
    elif type == "BOOLEAN":
        kind = Kind.CONDITION
    elif want.place is Place.GROUP and not whole:
        kind = Kind.GROUP
    elif want.place is Place.ORDER:
        kind = Kind.SCORE
    else:
        kind = Kind.EXTRACT
    group_want = next((w for w in all_wants if w.place is Place.GROUP), None)
    return VirtualColumn(
        id=-1,
        text=use.text,
        kind=kind,
        type=type,
        reads=use.reads,
        holes=use.holes,
        labels=tuple(labels),
        label_query=query,
        none_of_these=not want.closed or any(label.lower() == NONE for label in labels),
        closed=want.closed and kind is Kind.CHOICE,
        into=group_want.into if group_want and kind is Kind.GROUP else None,
        many=group_want.many if group_want else False,
        attempt=use.attempt,
        span=use.span,
    )


def _is_value(wants: list[Want]) -> bool:
    """Is the text a value beside comparisons with labels that rows may fail and still be returned?"""
    labelled = [w for w in wants if _labelled(w)]
    places = (Place.SELECT, Place.GROUP, Place.ORDER)
    plain = any(
        (w.place in places or w == WORDS) and not _labelled(w) for w in wants
    )  # WORDS: in upper("…"), or beside LIKE
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
    Place.PRESENCE: "where its presence is asked for",
}


def _two_types(first: Use, type: str, second: Use, other: str) -> BindError:
    return BindError(
        f'"{first.text}" is {type} {_SAID[first.want.place]}, and {other} {_SAID[second.want.place]}',
        code="UQL206",
        start=second.place.start,
        end=second.place.end,
        help=f'one text has one type in a query: write "{first.text}"::{other}, or ask it in other words',
    )

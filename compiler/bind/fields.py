"""The columns that a sub-query gives, and what is known of each from what it is made of."""

from __future__ import annotations

from dataclasses import replace

from uql.base.schema import Field, Modality
from uql.compiler.bound import BoundQuery, BoundSelect, BoundSource, BoundUnion
from uql.compiler.subqueries import field_of, in_expressions
from uql.compiler.syntax import Column, Expr
from uql.compiler.virtual import Virtual
from uql.compiler.walk import walk


def output_fields(query: BoundQuery) -> tuple[Field, ...]:
    """The columns that a sub-query gives, with unique names; texts stay texts, private columns stay private."""
    taken: dict[str, int] = {}
    found: list[Field] = []
    sides = _selects(query)
    for index, item in enumerate(query.items):
        name, low = item.name, item.name.lower()
        while low in taken:
            taken[low] += 1
            name = f"{item.name}_{taken[item.name.lower()]}"
            low = name.lower()
        taken[low] = 0
        found.append(_field(name, item.type, [(s.items[index].expr, s.source) for s in sides]))
    return tuple(found)


def _selects(query: BoundQuery) -> list[BoundSelect]:
    if isinstance(query, BoundUnion):
        return [*_selects(query.left), *_selects(query.right)]
    assert isinstance(query, BoundSelect)
    return [query]


def _field(name: str, type: str, made_from: list[tuple[Expr, BoundSource | None]]) -> Field:
    """An output column: a plain column keeps what is known of it; a calculated one is text when a text went into it."""
    plain = [field_of(source, expr) if isinstance(expr, Column) else None for expr, source in made_from]
    asked = tuple(dict.fromkeys(text for expr, source in made_from for text in _texts_in(expr, source)))
    if plain and all(f is not None and f.type == type for f in plain):
        first = plain[0]
        assert first is not None
        answers = all(f is not None and f.is_answer for f in plain)
        private = any(f is not None and f.private for f in plain)
        return replace(first, name=name, private=private, asked=asked, is_answer=answers)
    read = [f for expr, source in made_from for f in _read(expr, source)]
    summary = any(isinstance(n, Virtual) and n.column.of_group for e, _ in made_from for n in walk(e))
    texts = [f for f in read if f.modality is Modality.TEXT]
    long = type == "VARCHAR" and (bool(texts) or summary)
    return Field(
        name,
        type,
        Modality.TEXT if long else Modality.STRUCTURED,
        mean_chars=max((f.mean_chars for f in read), default=0.0),
        private=any(f.private for f in read),
        asked=asked,
        is_answer=all(isinstance(expr, Virtual) and expr.column.is_value for expr, _ in made_from),
    )


def _read(expr: Expr, *sources: BoundSource | None) -> list[Field]:
    """The columns that an expression is made of, those of its sub-queries too.

    Args:
        sources: the FROM clause that it stands over, and those around it.
    """
    columns = [node for node in walk(expr) if isinstance(node, Column)]
    named = [next((f for source in sources if (f := field_of(source, column)) is not None), None) for column in columns]
    found = [f for f in named if f is not None]
    for bound in in_expressions(expr):
        for side in _selects(bound.query):
            found += [f for item in side.items for f in _read(item.expr, side.source, *sources)]
    return found


def _texts_in(expr: Expr, source: BoundSource | None) -> list[str]:
    """The texts for the model that the value of an expression comes from, through names and sub-queries."""
    found: list[str] = []
    for node in walk(expr):
        if isinstance(node, Virtual):
            found.append(node.column.text)
        elif isinstance(node, Column):
            field = field_of(source, node)
            found += field.asked if field is not None else ()
    for bound in in_expressions(expr):
        for side in _selects(bound.query):
            found += [text for item in side.items for text in _texts_in(item.expr, side.source)]
    return found

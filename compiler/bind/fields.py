"""The columns that a sub-query gives, and what is known of each from what it is made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from uql.base.names import free_names
from uql.base.schema import Field, Modality
from uql.compiler.bind.scope import Scope
from uql.compiler.bound import BoundQuery, BoundSelect, BoundUnion
from uql.compiler.subqueries import fields_in, in_expressions
from uql.compiler.syntax import Column, Expr
from uql.compiler.virtual import Virtual
from uql.compiler.walk import walk

Find = Callable[[Column], Field | None]


def output_fields(query: BoundQuery, outer: Scope | None = None) -> tuple[Field, ...]:
    """The columns that a sub-query gives, with unique names; texts stay texts, private columns stay private.

    Args:
        outer: what is around the sub-query, where it reads columns of that.
    """
    sides = [(side.items, fields_in(side.source)) for side in _selects(query)]
    return tuple(
        _field(name, item.type, [(items[index].expr, fields) for items, fields in sides], outer)
        for index, (name, item) in enumerate(zip(free_names(i.name for i in query.items), query.items, strict=True))
    )


def _selects(query: BoundQuery) -> list[BoundSelect]:
    if isinstance(query, BoundUnion):
        return [*_selects(query.left), *_selects(query.right)]
    assert isinstance(query, BoundSelect)
    return [query]


def _field(name: str, type: str, made_from: list[tuple[Expr, Mapping[Column, Field]]], outer: Scope | None) -> Field:
    """An output column: a plain column keeps what is known of it; a calculated one is text when a text went into it."""
    finds = [_find(fields, outer.field_of if outer is not None else lambda column: None) for _, fields in made_from]
    plain = [find(expr) if isinstance(expr, Column) else None for find, (expr, _) in zip(finds, made_from, strict=True)]
    source_texts = tuple(dict.fromkeys(text for expr, fields in made_from for text in _texts_in(expr, fields)))
    if plain and all(f is not None and f.type == type for f in plain):
        first = plain[0]
        assert first is not None
        answers = all(f is not None and f.is_answer for f in plain)
        private = any(f is not None and f.private for f in plain)
        return replace(first, name=name, private=private, source_texts=source_texts, is_answer=answers)
    read = [f for find, (expr, _) in zip(finds, made_from, strict=True) for f in _read(expr, find)]
    summary = any(isinstance(n, Virtual) and n.column.of_group for e, _ in made_from for n in walk(e))
    texts = [f for f in read if f.modality is Modality.TEXT]
    long = type == "VARCHAR" and (bool(texts) or summary)
    return Field(
        name,
        type,
        Modality.TEXT if long else Modality.STRUCTURED,
        mean_chars=max((f.mean_chars for f in read), default=0.0),
        mean_bytes=max((f.mean_bytes for f in read), default=0.0),
        private=any(f.private for f in read),
        source_texts=source_texts,
        is_answer=all(
            isinstance(expr, Virtual) and (expr.column.is_value or expr.column.type == "BOOLEAN")
            for expr, _ in made_from
        ),
    )


def _find(fields: Mapping[Column, Field], around: Find) -> Find:
    """What is known of a column of a FROM clause, else of what is around it."""

    def find(column: Column) -> Field | None:
        own = fields.get(column)
        return own if own is not None else around(column)

    return find


def _read(expr: Expr, find: Find) -> list[Field]:
    """The columns that an expression is made of, those of its sub-queries too."""
    fields = [f for node in walk(expr) if isinstance(node, Column) and (f := find(node)) is not None]
    for bound in in_expressions(expr):
        for side in _selects(bound.query):
            inside = _find(fields_in(side.source), find)
            fields += [f for item in side.items for f in _read(item.expr, inside)]
    return fields


def _texts_in(expr: Expr, fields: Mapping[Column, Field]) -> list[str]:
    """The texts for the model that the value of an expression comes from, through names and sub-queries."""
    texts: list[str] = []
    for node in walk(expr):
        if isinstance(node, Virtual):
            texts.append(node.column.text)
        elif isinstance(node, Column):
            field = fields.get(node)
            texts += field.source_texts if field is not None else ()
    for bound in in_expressions(expr):
        for side in _selects(bound.query):
            inside = fields_in(side.source)
            texts += [text for item in side.items for text in _texts_in(item.expr, inside)]
    return texts

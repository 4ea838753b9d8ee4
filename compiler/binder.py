"""The binder: what every name and every quoted text of a query means.

    bind(parse(text), catalog, text=text, parameters={}, frames={}, settings=settings) → BoundStatement

The rules are those of the language: how a quoted text is read and which kind and type it has by its place. The concerns have a
module each in `uql.compiler.bind`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from uql.base.errors import BindError, ConfigError, UQLError
from uql.base.settings import Settings
from uql.compiler.bind.block import Blocks
from uql.compiler.bind.fields import output_fields
from uql.compiler.bind.own_text import checked_text
from uql.compiler.bind.parameters import substitute
from uql.compiler.bind.scope import CatalogLike
from uql.compiler.bind.statement import Statement
from uql.compiler.bind.types import DuckTypes
from uql.compiler.bind.uses import is_numeric
from uql.compiler.bound import BoundQuery, BoundSelect, BoundStatement, BoundTable
from uql.compiler.other_systems import add_translation
from uql.compiler.subqueries import expressions, leaves, named_apart, selects
from uql.compiler.syntax import Call, Option, OrderKey, Query, Quoted, Select, Span, Union
from uql.compiler.walk import DRAWN, is_semantic, walk, with_children

_NONE: Mapping[str, object] = {}


def bind(
    query: Query,
    catalog: CatalogLike,
    *,
    text: str = "",
    parameters: Mapping[str, object] = _NONE,
    frames: Mapping[str, object] = _NONE,
    settings: Settings | None = None,
    into: Sequence[str] = (),
) -> BoundStatement:
    """Bind a query: names, quoted texts, types.

    Args:
        query: the parsed query.
        catalog: where its tables are found.
        text: the statement as written; errors and readings have their places in it.
        parameters: values of `$name`; every one has to be used.
        frames: data frames of the caller that FROM may name.
        settings: those in force; WITH (…) goes over them.
        into: the types of the columns that the query's are for; "" where any will do. A text without a type has it.
    Raises: UnknownTableError, UnknownColumnError, BindError (UQL2xx, and UQL101 for a misspelt name), DataError for files and
        frames, ConfigError (UQL105) for a wrong option; each with its place in `text`.
    """
    import duckdb

    settings = settings or Settings()
    try:
        if not isinstance(query, Select | Union):
            raise BindError(f"{type(query).__name__} is not a query", code="UQL212")
        options, settings = _options(query.options, settings)
        types = DuckTypes(catalog, (duckdb.Error,))
        with_orders = query if catalog.orders is None else _ordered(query, *catalog.orders)
        with_constants = substitute(with_orders, parameters)
        plain = not any(isinstance(node, Quoted) for node in walk(with_constants, queries=True))
        statement, bound = _bound(with_constants, Statement(text, catalog, frames, settings, types, plain), into)
        if statement.semantic:
            _check_read_once(statement)
            bound = named_apart(bound) if any(map(_calculates, selects(bound))) else bound
        _check_goals(query.options, bound)
    except UQLError as error:
        add_translation(error, query, text)
        _name_group(error, query, text)
        raise error.at(text) from error.__cause__
    except RecursionError as error:
        raise BindError(
            "the query is nested too deeply", code="UQL213", help="split it with WITH name AS (…)"
        ) from error
    as_written = not (statement.semantic or statement.reads_frames)
    own = checked_text(query, text, parameters, bound.items, types) if as_written else None
    return BoundStatement(
        bound,
        text,
        to=query.to,
        options=options,
        readings=tuple(sorted(statement.readings, key=lambda reading: reading.span.start)),
        warnings=tuple(statement.warnings),
        tables=tuple(statement.tables.values()),
        semantic=statement.semantic,
        sql=own,
    )


def _name_group(error: UQLError, query: Any, text: str) -> None:
    """Where a name is not a column and a text in GROUP BY has no name, the help says how it gets one."""
    name = text[error.start : error.end]
    keys = query.group_by if isinstance(query, Select) and error.code == "UQL202" and name.isidentifier() else ()
    group = next((key.expr for key in keys if isinstance(key.expr, Quoted) and key.alias is None), None)
    if group is not None:
        error.help = f'GROUP BY "{group.text[:40]}" AS {name} names the groups; {error.help}'


def _check_read_once(statement: Statement) -> None:
    """Raises BindError (UQL212) where a table of WITH that has other rows, or values, at each reading is named twice: it is read at each
    place, there without the texts that are not used."""
    first: dict[int, Span] = {}
    for query, source in statement.commons:
        if first.setdefault(id(query), source.span) != source.span and _is_drawn(query):
            name = source.parts[0]
            raise BindError(
                f"{name} is drawn by chance and named twice: each place would have rows of its own",
                code="UQL212",
                span=source.span,
                help=f"CREATE TEMP TABLE {name} AS … before the statement, in the place of WITH",
            )


def _is_drawn(query: BoundQuery) -> bool:
    """Are its rows, or values in them, drawn anew whenever it is read?"""
    calls = (
        node.name
        for part in selects(query)
        for expr in expressions(part)
        for node in walk(expr)
        if isinstance(node, Call)
    )
    tables = (leaf.table.sql for part in selects(query) for leaf in leaves(part.source) if isinstance(leaf, BoundTable))
    return any(name.lower() in DRAWN for name in calls) or any(
        "TABLESAMPLE" in sql and "REPEATABLE" not in sql.upper() for sql in tables
    )


def _calculates(query: BoundSelect) -> bool:
    """May its rows hold an estimate?"""
    return query.aggregated and any(is_numeric(item.type) for item in query.items)


def _ordered(node: Any, order: str, nulls: str) -> Any:
    """The query with the directions that the settings default_order and default_null_order give to the keys of ORDER BY.

    Args:
        order: ASC… or DESC….
        nulls: NULLS_FIRST, NULLS_LAST, or one of them _ON_ASC_ and the other _ON_DESC.
    """
    below = with_children(node, lambda child: _ordered(child, order, nulls))
    if not isinstance(below, OrderKey):
        return below
    descending = below.descending or (not below.directed and order.startswith("DESC"))
    first, _, second = nulls.removeprefix("NULLS_").partition("_ON_ASC_")
    position = second.partition("_")[0] if second and descending else first
    position = "FIRST" if position == "FIRST" else "LAST"  # it is written into SQL
    return replace(below, descending=descending, nulls=below.nulls or position, directed=True)


def _bound(query: Query, statement: Statement, into: Sequence[str]) -> tuple[Statement, BoundQuery]:
    """The bound query. What a text needs anywhere in it holds everywhere: where that was not known, it is bound again.

    A text that is a condition is BOOLEAN; one that needs several types of numbers or times is asked with the widest, and so is one
    that nothing but a name of it needs as a number or time.
    """
    while True:
        error: UQLError | None = None
        bound: BoundQuery | None = None
        try:
            bound, _ = Blocks(statement).query(query, None, {})
            for field, type in zip(output_fields(bound) if into else (), into, strict=False):
                if type not in ("", "VARCHAR"):
                    statement.type_by_name(statement.open_texts(field), type)
        except UQLError as failure:
            error = failure
        conditions = statement.conditions | (statement.needed & statement.open)
        widths = {**statement.widths, **_widest(statement.typed, 2, statement.types)}
        by_name = {**statement.types_by_name, **_widest(statement.by_name, 1, statement.types)}
        if (conditions, widths, by_name) == (statement.conditions, statement.widths, statement.types_by_name):
            if bound is None:
                assert error is not None
                raise error
            return statement, bound
        inputs = (
            statement.text,
            statement.catalog,
            statement.frames,
            statement.settings,
            statement.types,
            statement.plain,
        )
        statement = Statement(*inputs, conditions=conditions, widths=widths, types_by_name=by_name)


def _widest(needed: Mapping[str, set[str]], several: int, duck: DuckTypes) -> dict[str, str]:
    """The widest type of each text that needs so many types, and more; none where they have none in common."""
    type_by_text: dict[str, str] = {}
    for text, types in needed.items():
        widest: str | None = None
        for type in sorted(types):
            widest = type if widest is None else duck.widest(widest, type)
            if widest is None:
                break
        if widest is not None and len(types) >= several:
            type_by_text[text] = widest
    return type_by_text


def _check_goals(options: tuple[Option, ...], query: BoundQuery) -> None:
    """Raises: ConfigError (UQL105) at WITH (precision = …) where no quoted text of a WHERE chooses the rows returned, and at
    WITH (error = …) where no aggregate is returned."""
    goals = {
        "precision": (
            any(is_semantic(s.where) and not s.aggregated for s in selects(query)),
            "precision is a share of the rows that a quoted text in WHERE chooses, and this statement returns no such rows",
            'as in SELECT … FROM t WHERE "the review is positive" WITH (precision = 0.9, recall = 0.9); a COUNT has an interval '
            "without it",
        ),
        "error": (
            any(s.aggregated for s in selects(query)),
            "error is the half-width of an aggregate's interval, and this statement has no aggregate",
            'as in SELECT COUNT(*) FROM t WHERE "the review is positive" WITH (error = 0.1); a search takes recall = …, '
            "precision = …, a LIMIT or a budget",
        ),
    }
    for option in options:
        stands, message, help = goals.get(option.name.lower(), (True, "", ""))
        if not stands:
            raise ConfigError(message, help=help, span=option.span)


def _options(options: tuple[Option, ...], settings: Settings) -> tuple[tuple[tuple[str, Any], ...], Settings]:
    """WITH (…) as checked values, and the settings with them. Raises: ConfigError (UQL105) at the option's place."""
    values: dict[str, Any] = {}
    for option in options:
        name = option.name.lower()
        try:
            if name in values:
                raise ConfigError(f"the option {name} is given twice")
            settings = settings.with_values(**{name: option.value})
        except ConfigError as error:
            error.located(option.span)
            raise
        values[name] = getattr(settings, name)
    return tuple(values.items()), settings

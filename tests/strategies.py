"""Hypothesis strategies for trees: every node type, and only such trees as the parser can make."""

from __future__ import annotations

import re
from collections.abc import Callable

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import as_string
from uql.compiler.syntax import Expr, Query

WORDS = re.findall(
    r"\w+",
    """a b stars x_1 größe count end to with left try prompt into many using offset date distinct is in like nulls filter
    interval exists cast table set semi first over escape time day format sample""",
)
FUNCTIONS = ["count", "sum", "left", "date", "if", "my.f", "try", "offset"]
OPERATORS = ["AND", "OR", "=", "<>", "<", "<=", ">", ">=", "+", "-", "*", "/", "//", "%", "||"]

texts = st.one_of(
    st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=12),
    st.sampled_from(
        ["the review is positive", 'say "hi"', "back\\slash\\", "it's", "{col} and {{braces}}", "--", "/*", ";"]
    ),
)
words = st.sampled_from(WORDS)
names = st.one_of(words, texts, st.sampled_from(["order", "SELECT", "null", "my col"]))
numbers = st.one_of(
    st.integers(0, 10**12).map(str), st.floats(0, 1e9).map(repr), st.sampled_from([".5", "1.", "1e5", "2.5E-3"])
).map(ast.Number)
columns = st.one_of(
    words.map(lambda w: ast.Name((w,))),
    st.tuples(names, names).map(ast.Name),
    st.tuples(names, names, names).map(ast.Name),
)
shown = st.lists(names, min_size=1, max_size=2).map(lambda parts: ast.Name(tuple(parts)))
quoted = st.builds(
    ast.Quoted, texts, st.one_of(st.just(()), st.lists(shown, min_size=1, max_size=2).map(tuple)), st.booleans()
)
types = st.recursive(
    st.one_of(
        st.sampled_from(["INTEGER", "VARCHAR", "DATE", "IMAGE", "AUDIO", "TIMESTAMP WITH TIME ZONE"]).map(ast.TypeName),
        st.lists(st.integers(0, 38), min_size=1, max_size=2).map(lambda n: ast.TypeName("DECIMAL", sizes=tuple(n))),
        st.lists(texts, min_size=1, max_size=3).map(lambda labels: ast.TypeName("ENUM", labels=tuple(labels))),
    ),
    lambda inner: st.one_of(
        st.lists(st.tuples(names, inner), min_size=1, max_size=2).map(
            lambda fields: ast.TypeName("STRUCT", fields=tuple(fields))
        ),
        inner.map(lambda t: ast.TypeName(t.name, t.sizes, t.labels, t.fields, (*t.dims, None))),
    ),
    max_leaves=3,
)
literals = st.one_of(
    numbers,
    texts.map(ast.String),
    st.just(ast.Null()),
    st.booleans().map(ast.Boolean),
    st.builds(ast.TypedLiteral, st.sampled_from(["DATE", "TIMESTAMP", "INTERVAL"]), texts),
    st.sampled_from(["day", "x1"]).map(ast.Parameter),
)
leaves = st.one_of(columns, quoted, literals)


def _tuple(strategy: SearchStrategy, low: int = 0, high: int = 2) -> SearchStrategy:
    return st.lists(strategy, min_size=low, max_size=high).map(tuple)


def _binary(op: str, left: Expr, right: Expr) -> Expr:
    compares = op in ("=", "<>", "<", "<=", ">", ">=")
    return ast.Binary(op, left, as_string(right) if compares else right)


def order_keys(inner: SearchStrategy) -> SearchStrategy:
    return _tuple(st.builds(ast.OrderKey, inner, st.booleans(), st.sampled_from([None, "FIRST", "LAST"])))


def _tests(inner: SearchStrategy) -> SearchStrategy:
    strings = inner.map(as_string)
    flag = st.booleans()
    return st.one_of(
        st.builds(ast.Like, inner, strings, st.sampled_from(["LIKE", "ILIKE"]), flag, st.none() | strings),
        st.builds(ast.InList, inner, _tuple(strings, 1, 3), flag),
        st.builds(ast.Between, inner, strings, strings, flag),
        st.builds(ast.IsNull, inner, flag),
        st.builds(ast.IsDistinct, inner, inner, flag),
        st.builds(ast.IsDistinct, inner, st.booleans().map(ast.Boolean), flag, st.just("IS")),
    )


def _calls(inner: SearchStrategy) -> SearchStrategy:
    window = st.builds(ast.Window, _tuple(inner), order_keys(inner))
    more = {"filter": st.none() | inner, "over": st.none() | window}
    name = st.sampled_from(FUNCTIONS)
    stars = st.one_of(st.none(), names).map(lambda table: (ast.Star(table),))
    return st.one_of(
        st.builds(ast.Call, name, _tuple(inner, 1), st.booleans(), order_keys(inner), **more),
        st.builds(ast.Call, name, st.one_of(st.just(()), stars), **more),
    )


def _extend(inner: SearchStrategy) -> SearchStrategy:
    whens = _tuple(st.builds(ast.When, inner, inner), 1)
    cast = st.builds(ast.Cast, inner, types, st.booleans())
    tried = st.one_of(quoted, st.builds(ast.Cast, quoted, types))
    return st.one_of(
        st.builds(ast.Unary, st.sampled_from(["-", "+", "NOT"]), inner),
        st.builds(_binary, st.sampled_from(OPERATORS), inner, inner),
        _tests(inner),
        _calls(inner),
        st.builds(ast.Case, st.none() | inner, whens, st.none() | inner),
        cast,
        tried.map(ast.Try),
        _tuple(inner).map(ast.ListExpr),
    )


def nested(strategy: SearchStrategy, extend: Callable[[SearchStrategy], SearchStrategy], depth: int) -> SearchStrategy:
    """Trees of at most this depth. `st.recursive` draws a tree of too many leaves again and again, which takes most of its time."""
    inner = strategy
    for _ in range(depth):
        inner = st.one_of(strategy, extend(inner))
    return inner


short_expressions = nested(leaves, _extend, 1)
simple_expressions = nested(leaves, _extend, 3)
aliases = st.none() | names
tables = st.one_of(
    st.builds(ast.TableName, _tuple(names, 1, 3), aliases),
    st.builds(ast.TableName, texts.map(lambda path: (path,)), aliases, st.just(True)),
    st.builds(
        ast.TableFunction, st.builds(ast.Call, st.sampled_from(["range", "read_csv", "left"]), _tuple(leaves)), aliases
    ),
)
_kinds = st.sampled_from(["INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI"])


def _around(inner: SearchStrategy) -> SearchStrategy:
    """Expressions, some with a query in them."""
    return st.one_of(
        simple_expressions,
        st.builds(ast.InQuery, simple_expressions, inner, st.booleans()),
        inner.map(ast.Exists),
        inner.map(ast.ScalarQuery),
    )


def _sources(inner: SearchStrategy) -> SearchStrategy:
    """What stands after FROM: tables, sub-queries and joins of them."""
    return nested(
        st.one_of(tables, st.builds(ast.Derived, inner, aliases)),
        lambda side: st.one_of(
            st.builds(ast.Join, _kinds, side, side, short_expressions),
            st.builds(ast.Join, _kinds, side, side, st.none(), _tuple(names, 1)),
            st.builds(ast.Join, st.just("CROSS"), side, side),
        ),
        depth=2,
    )


values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**15), 10**15),
    st.floats(allow_nan=False, allow_infinity=False),
    texts,
    _tuple(texts),
)
options = st.lists(
    st.builds(ast.Option, st.sampled_from(["budget", "exact", "error", "with", "to"]), values),
    max_size=2,
    unique_by=lambda option: option.name,
).map(tuple)


def _queries(inner: SearchStrategy | None, tail: dict[str, SearchStrategy] | None = None) -> SearchStrategy[Query]:
    """Select and Union, with no query in them but those of `inner`: strategies that name themselves nest without end.

    TO and WITH (…) stand in the `tail` of whole statements.
    """
    expr = short_expressions
    limits = st.none() | st.one_of(numbers, st.just(ast.Parameter("n")))
    tail = {"order_by": order_keys(expr), "limit": limits, "offset": limits, **(tail or {})}
    if inner is not None:
        tail["ctes"] = _tuple(st.builds(ast.CommonTable, names, inner, _tuple(names)), 0, 1)
    items = st.one_of(
        st.builds(ast.SelectItem, expr if inner is None else _around(inner), aliases),
        st.builds(ast.Star, st.none() | names, _tuple(_tuple(names, 1))).map(ast.SelectItem),
    )
    group = st.builds(ast.GroupKey, expr, aliases, st.none() | st.integers(0, 99), st.booleans())
    select = st.builds(
        ast.Select,
        _tuple(items, 1),
        source=st.none() | (tables if inner is None else _sources(inner)),
        where=st.none() | expr,
        group_by=_tuple(group),
        having=st.none() | expr,
        distinct=st.booleans(),
        **tail,
    )
    return (
        select
        if inner is None
        else st.one_of(select, select, st.builds(ast.Union, inner, inner, st.booleans(), **tail))
    )


queries = _queries(_queries(None))
expressions = _around(queries)
whole_queries = _queries(queries, {"to": aliases, "options": options})
_stored = _queries(queries, {"options": options})
_table = _tuple(names, 1)
_formats = st.sampled_from(["text", "json", "mermaid"])
statements = st.one_of(
    whole_queries,
    st.builds(ast.Explain, whole_queries, st.sampled_from(["PLAN", "ANALYZE"]), st.none(), _formats),
    st.builds(ast.Explain, whole_queries, st.just("SAMPLE"), st.integers(0, 999), _formats),
    st.builds(ast.SetOption, words, values),
    st.builds(ast.CreateTable, _table, _stored, st.booleans(), st.booleans(), st.booleans()),
    st.builds(ast.CreateSemanticTable, _table, _stored, _tuple(names, 1), st.booleans(), st.just(False)),
    st.builds(ast.CreateSemanticTable, _table, _stored, _tuple(names, 1), st.just(False), st.booleans()),
    st.builds(ast.Refresh, _table),
    st.builds(ast.DropSemanticTable, _table, st.booleans()),
    st.builds(ast.Insert, _table, _stored, _tuple(names)),
    st.builds(ast.CopyQuery, _stored, texts, st.sampled_from(["", "FORMAT parquet", "HEADER, DELIMITER ';'"])),
)

"""Queries made by calls: `con.table("logs").where(uql.sem("asked to cancel")).limit(100)`.

A query is a tree of `compiler/syntax.py`; it is written out as UQL and goes the way of every text, so it has the same plan.
A str is UQL as in a text ("stars > 3", '"it is rude" OR stars < 2'); `uql.sem` is a quoted text; other values are constants.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Container
from dataclasses import replace
from typing import Any

from uql.api.result import Result
from uql.base.errors import BindError
from uql.base.sql_text import DATA_FILES, literal
from uql.compiler import syntax as ast
from uql.compiler.parser import parse, tree_of
from uql.compiler.syntax import NO_SPAN
from uql.compiler.unparse import quote_name, unparse
from uql.compiler.walk import aggregate_calls, walk

INSTEAD = {  # calls of LOTUS, Palimpzest and data frames → those of a query
    "sem_filter": '.where(uql.sem("…"))',
    "sem_map": '.select("*", name=uql.sem("…"))',
    "sem_extract": '.select("*", name=uql.sem("…"))',
    "sem_add_columns": '.select("*", name=uql.sem("…"))',
    "sem_join": """.join("other", on='"… {a.x} … {b.y} …"')""",
    "sem_topk": '.order_by(uql.sem("how …")).limit(n)',
    "sem_agg": '.agg(n="COUNT(*)", summary=uql.sem("what …"))',
    "sem_cluster_by": '.group_by(topic=uql.sem("…")).count()',
    "sem_search": '.where(uql.sem("…")).limit(n)',
    "sem_dedup": '.sem_dedupe("the same …")',
    "groupby": ".group_by(…)",
    "sort_values": ".order_by(…)",
    "sort": ".order_by(…)",
    "merge": ".join(…)",
    "assign": '.select("*", name=…)',
    "with_columns": '.select("*", name=…)',
    "head": ".limit(n)",
}


def table(name: str) -> ast.Select:
    """SELECT * FROM a table of this name, dotted or not, or a file of this path.

    Raises: BindError (UQL212) for what is no name, as a data frame.

    >>> unparse(table("shop.reviews")), unparse(table("my file.csv"))
    ('SELECT * FROM shop.reviews', "SELECT * FROM 'my file.csv'")
    """
    if not isinstance(name, str):
        raise BindError(
            f"a table is given by its name, not by a {type(name).__name__}",
            code="UQL212",
            help='a data frame goes by the name of its variable: con.table("reviews")',
        )
    file = "/" in name or "\\\\" in name or name.lower().endswith(DATA_FILES)
    tree = None if file else tree_of(f"SELECT * FROM {name}")
    match tree:
        case ast.Select(source=ast.TableName(file=False), where=None, group_by=(), order_by=(), limit=None, to=None):
            return tree
    query = parse(f"SELECT * FROM {literal(name) if file else quote_name(name)}")
    assert isinstance(query, ast.Select)
    return query


def csv_file(path: str) -> ast.Select:
    """SELECT * FROM a CSV file of this path."""
    if path.lower().endswith((".csv", ".tsv")):
        return table(path)
    query = parse(f"SELECT * FROM read_csv({literal(path)})")
    assert isinstance(query, ast.Select)
    return query


JOINS = ("INNER", "LEFT", "RIGHT", "FULL", "SEMI", "ANTI")
EVERY = (ast.SelectItem(ast.Star()),)
BEHIND_WHERE = ("limit", "offset", "distinct_on")  # clauses whose rows a later WHERE would change


class Fluent:
    """A query so far. Each call gives a new one, over the rows so far; looking at it (`show`, `df`, `estimates` …) makes its `Result`.

    >>> import uql
    >>> con = uql.connect()
    >>> logs = con.table("logs")
    >>> logs.where(uql.sem("is rude")).group_by(topic=uql.sem("the topic")).select("topic", n="COUNT(*)").order_by("n DESC")
    SELECT topic, count(*) AS n FROM logs WHERE PROMPT "is rude" GROUP BY PROMPT "the topic" AS topic ORDER BY n DESC
    """

    def __init__(
        self, query: ast.Select, run: Callable[[str], Result], aggregates: Container[str], *, aggregated: bool = False
    ) -> None:
        self._query, self._run, self._aggregates, self._aggregated = query, run, aggregates, aggregated
        self._result: Result | None = None

    # ---------------------------------------------------------------------------------------------------------- clauses
    def where(self, *conditions: Any) -> Fluent:
        """Rows for which every condition holds, those of earlier calls too."""
        added = _all(conditions)
        rows = self._over(*BEHIND_WHERE)._over_values(added)
        return rows if added is None else rows._with(where=_both(rows._query.where, added))

    def filter(self, *conditions: Any) -> Fluent:
        """As `where`, by the name that data frames have for it."""
        return self.where(*conditions)

    def select(self, *columns: Any, **named: Any) -> Fluent:
        """What is returned of each row, or of each group; keywords name it. Aggregates without groups are those of `agg`."""
        items = _items(columns, named)
        if not self._query.group_by and any(aggregate_calls(item.expr, self._aggregates) for item in items):
            return self.agg(*columns, **named)
        rows = self._over("distinct", *(BEHIND_WHERE if any(map(_looks_around, items)) else ()))
        if rows._query.items != EVERY and not rows._query.group_by:
            rows = rows._nested()
        return rows._with(items=items)

    def group_by(self, *keys: Any, **named: Any) -> Fluent:
        """One row a group; a keyword names its key: `group_by(reason=uql.sem("the main complaint"))`."""
        rows = self._over(*BEHIND_WHERE, "distinct")._over_values()
        parts = tuple(ast.GroupKey(item.expr, item.alias) for item in _items(keys, named))
        return rows._with(group_by=(*rows._query.group_by, *parts), order_by=())

    def agg(self, *columns: Any, **named: Any) -> Fluent:
        """Aggregates of all rows, or of each group after its keys: `group_by("film").agg(n="COUNT(*)", mood="AVG(stars)")`."""
        rows = self._over(*BEHIND_WHERE, "distinct")
        rows = rows if rows._query.group_by else rows._over_values()
        query = rows._query
        keys = [ast.SelectItem(ast.Name((key.alias,)) if key.alias else key.expr) for key in query.group_by]
        ordered = rows._with(items=(*keys, *_items(columns, named)), order_by=query.order_by if keys else ())
        return Fluent(ordered._query, self._run, self._aggregates, aggregated=True)

    def count(self) -> Fluent:
        """The number of rows as `n`, or that of each group after its keys.

        >>> import uql
        >>> reviews = uql.connect().read_csv("reviews.csv")
        >>> reviews.where(uql.sem("it is positive")).count()
        SELECT count(*) AS n FROM 'reviews.csv' WHERE PROMPT "it is positive"
        >>> reviews.group_by(topic=uql.sem("the topic")).count()
        SELECT topic, count(*) AS n FROM 'reviews.csv' GROUP BY PROMPT "the topic" AS topic
        >>> reviews.limit(5).count()
        SELECT count(*) AS n FROM (SELECT * FROM 'reviews.csv' LIMIT 5)
        """
        return self.agg(n="COUNT(*)")

    def having(self, *conditions: Any) -> Fluent:
        """Groups for which every condition holds."""
        if self._query.limit is not None:
            return self.where(*conditions)
        added = _all(conditions)
        return self if added is None else self._with(having=_both(self._query.having, added))

    def order_by(self, *keys: Any) -> Fluent:
        """The order of the rows: "n DESC", or `uql.sem("how angry")`."""
        text = ", ".join(_written(key) for key in keys)
        tree = parse(f"SELECT 1 ORDER BY {text}")
        if not isinstance(tree, ast.Select) or tree != ast.Select(tree.items, order_by=tree.order_by):
            raise BindError(f"{text!r} is more than keys of an order", help="each clause has a call of its own")
        rows = self._over("limit", "offset")
        return rows._with(order_by=(*rows._query.order_by, *tree.order_by))

    def limit(self, rows: int, offset: int = 0) -> Fluent:
        """The first rows, after `offset` of them."""
        skip = ast.Number(str(operator.index(offset))) if offset else None
        return self._over("limit", "offset")._with(limit=ast.Number(str(operator.index(rows))), offset=skip)

    def distinct(self) -> Fluent:
        """Each row once."""
        return self._over(*BEHIND_WHERE)._with(distinct=True)

    def sem_dedupe(self, text: str, *columns: str) -> Fluent:
        """One row of those that a model says are one thing, as `sem_dedupe("the same product")`: the first by `order_by`.

        Args:
            text: what two rows are, that are one thing.
            columns: that are compared; without them, those that any text would read.

        >>> import uql
        >>> uql.connect().table("offers").sem_dedupe("the same product", "title").order_by("price")
        SELECT DISTINCT ON (PROMPT "the same product" USING (title)) * FROM offers ORDER BY price
        """
        names = tuple(ast.Name(tuple(column.split("."))) for column in columns)
        rows = self._over(*BEHIND_WHERE, "distinct")._over_values()
        return rows._with(distinct_on=(ast.Quoted(text, names, forced=True),))

    def join(self, other: str | Fluent, on: Any, how: str = "inner", alias: str | None = None) -> Fluent:
        """Rows joined with another table or query: `a.join("b", on='"{a.x} and {b.y} are the same"')`.

        Args:
            other: a table's name, or a query.
            on: a condition in UQL, or an expression.
            how: inner, left, right, full, semi, anti, in any case.
            alias: of `other`.
        Raises: BindError (UQL212) for a join that there is not.
        """
        if how.upper() not in JOINS:
            raise BindError(f"there is no join {how!r}", code="UQL212", help=f"how: {', '.join(JOINS).lower()}")
        rows = self._over(
            *BEHIND_WHERE, "distinct", "group_by", *(("where",) if how.upper() in ("RIGHT", "FULL") else ())
        )
        if rows._query.items != EVERY:
            rows = rows._nested()
        if isinstance(other, Fluent):
            own = [option.name for option in rows._query.options]
            rows = rows._with(options=(*(o for o in other._query.options if o.name not in own), *rows._query.options))
            right: ast.Source = ast.Derived(replace(other._query, options=()), alias or "other")
        else:
            source = table(other).source
            assert isinstance(source, ast.TableName)
            right = replace(source, alias=alias) if alias else source
        left = rows._query.source
        assert left is not None
        return rows._with(source=ast.Join(how.upper(), left, right, _expression(on)))

    def options(self, **settings: Any) -> Fluent:
        """WITH (…): `options(budget=64, confidence=0.9)`; of one that is given twice the later holds."""
        before = (option for option in self._query.options if option.name not in settings)
        return self._with(options=(*before, *(ast.Option(k, v) for k, v in settings.items())))

    def to(self, name: str) -> Result:
        """TO name: runs the query and keeps its rows as a table."""
        return self._run(unparse(replace(self._query, to=name)))

    # ------------------------------------------------------------------------------------------------------------ result
    @property
    def text(self) -> str:
        """The query as UQL."""
        return unparse(self._query)

    @property
    def result(self) -> Result:
        """The result, made once; it runs when its rows are looked at."""
        if self._result is None:
            self._result = self._run(self.text)
        return self._result

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        if not hasattr(self.result, name):
            calls = ", ".join(call for call in dir(Fluent) if not call.startswith("_"))
            raise AttributeError(f"a query has no {name}: {INSTEAD.get(name) or f'its calls are {calls}'}")
        return getattr(self.result, name)

    def __len__(self) -> int:
        return len(self.result)

    def __repr__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return self.result._repr_html_()

    def _with(self, **parts: Any) -> Fluent:
        return Fluent(replace(self._query, **parts), self._run, self._aggregates, aggregated=self._aggregated)

    def _over(self, *clauses: str) -> Fluent:
        """The query; where it has one of these clauses, or aggregates its rows, one over the rows that it returns."""
        query = self._query
        stands = any(getattr(query, clause) not in (None, (), False) for clause in clauses)
        if not stands and (not self._aggregated or clauses == ("limit", "offset")):
            return self
        return self._nested()

    def _over_values(self, condition: ast.Expr | None = None) -> Fluent:
        """The query; where it makes values, one over its rows, which have them. `condition`: where it names one, or some are windows."""
        made = [item for item in self._query.items if item.alias is not None or _looks_around(item)]
        if condition is not None:
            named = {node.parts[-1].lower() for node in walk(condition) if isinstance(node, ast.Name)}
            named |= {node.text.lower() for node in walk(condition) if isinstance(node, ast.Quoted)}
            made = [item for item in made if _looks_around(item) or str(item.alias).lower() in named]
        return self._nested() if made and not self._query.group_by else self

    def _nested(self) -> Fluent:
        """One over the rows of the query, by the name of its table; SEMI and ANTI joins return rows of their left side alone."""
        source = self._query.source
        while isinstance(source, ast.Join) and source.kind in ("SEMI", "ANTI"):
            source = source.left
        match source:
            case ast.TableName(parts=(*_, name), file=False, alias=None):
                alias: str | None = name
            case _:
                alias = getattr(source, "alias", None)
        inner = ast.Derived(replace(self._query, options=()), alias)
        return Fluent(ast.Select(EVERY, inner, options=self._query.options), self._run, self._aggregates)


def _looks_around(item: ast.SelectItem) -> bool:
    """Does it depend on other rows?"""
    return any(isinstance(node, ast.Call) and node.over for node in walk(item.expr))


def _both(before: ast.Expr | None, added: ast.Expr) -> ast.Expr:
    return added if before is None else ast.Binary("AND", before, added)


def _all(conditions: tuple[Any, ...]) -> ast.Expr | None:
    both: ast.Expr | None = None
    for condition in conditions:
        both = _both(both, _expression(condition))
    return both


def _items(columns: tuple[Any, ...], aliases: dict[str, Any]) -> tuple[ast.SelectItem, ...]:
    items: list[ast.SelectItem] = []
    for column in columns:
        if isinstance(column, str):  # may name itself: "COUNT(*) AS n"
            items += _parsed(f"SELECT {column}", column).items
        else:
            items.append(ast.SelectItem(_expression(column)))
    return (*items, *(ast.SelectItem(_expression(value), name) for name, value in aliases.items()))


def _expression(value: Any) -> ast.Expr:
    """A str as UQL, a `uql.sem` as the text it is, anything else as a constant."""
    from uql.compiler.bind.parameters import constant

    if not isinstance(value, str):
        return constant(value, "value", NO_SPAN)
    items = _parsed(f"SELECT {value}", value).items
    if len(items) != 1 or items[0].alias is not None:
        way = f'an argument each; names are keywords; a text for the model is uql.sem("{value[:40]}")'
        raise BindError(f"{value!r} is not one expression", help=way)
    return items[0].expr


def _written(key: Any) -> str:
    return key if isinstance(key, str) else unparse(_expression(key))


def _parsed(text: str, part: str) -> ast.Select:
    tree = parse(text)
    if isinstance(tree, ast.Select) and tree == ast.Select(tree.items):
        return tree
    raise BindError(f"{part!r} is more than an expression", help="each clause has a call of its own")

"""The tree as text again: `parse(unparse(tree)) == tree` for every tree that the parser makes.

Parentheses stand only where the tree needs them. Names are quoted where they must be; a single-part Name in an expression
never is, since quotes would make it a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from uql.base.sql_text import literal
from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import CHAIN
from uql.compiler.lexer import RESERVED, WORDS
from uql.compiler.syntax import Expr, Node, Query
from uql.compiler.virtual import Moment, Virtual

Kinds: TypeAlias = "dict[type[Expr], tuple[int | None, Callable[[Writer, Any], str]]]"
_PLAIN = re.compile(r"[^\W\d]\w*\Z")

# How tightly a node binds: a child that binds less than its place asks for stands in parentheses.
ANY, _OR, _AND, _NOT, _TEST, _COMPARISON, _RANGE, _CONCAT, _BITS, _TURNED, _SUM, _PRODUCT, _POWER, _PLACED = range(14)
_UNARY, _POSTFIX, _PRIMARY = range(14, 17)
_BINARY = {"->": _PRIMARY, "OR": _OR, "AND": _AND, "+": _SUM, "-": _SUM, "^": _POWER, "COLLATE": _PLACED}
_BINARY |= dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _COMPARISON) | dict.fromkeys(("||", "->>"), _CONCAT)
_BINARY |= dict.fromkeys(("&", "|", "<<", ">>"), _BITS) | dict.fromkeys(("*", "/", "//", "%"), _PRODUCT)
_PREFIX = {"NOT": _NOT, "~": _TURNED}


def unparse(node: Node) -> str:
    """The text of a statement, a query, an expression or any part of them.

    >>> from uql.compiler.parser import parse
    >>> unparse(parse('select "the plot"::enum(\\'good\\', \\'bad\\') p from reviews r where not (a or b)'))
    'SELECT "the plot"::ENUM(\\'good\\', \\'bad\\') AS p FROM reviews AS r WHERE NOT (a OR b)'
    """
    return _UQL.expr(node) if isinstance(node, Expr) else _PARTS[type(node)](_UQL, node)


def quote_name(name: str) -> str:
    """A name where only a name can stand: quoted unless it is a plain word that is not a keyword."""
    return name if _PLAIN.match(name) and name.upper() not in WORDS else quote_text(name)


def quote_text(text: str) -> str:
    """The text in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _dotted(w: Writer, parts: Iterable[str]) -> str:
    return ".".join(map(w.name, parts))


# ------------------------------------------------------------------------------------------------------------ expressions
class Writer:
    """Writes expressions, each kind by its entry of `kinds`. This one writes UQL; that of `uql.compiler.sql` writes SQL."""

    kinds: Kinds

    def expr(self, node: Expr, tightness: int = ANY) -> str:
        """An expression, in parentheses where it binds less than its place asks for."""
        binds, write = self.kinds[type(node)]
        if binds is None:
            assert isinstance(node, ast.Binary | ast.Unary)
            binds = _BINARY[node.op] if isinstance(node, ast.Binary) else _PREFIX.get(node.op, _UNARY)
        text = write(self, node)
        return f"({text})" if binds < tightness else text

    def query(self, node: Query) -> str:
        """A query, without parentheses."""
        return _select(self, node) if isinstance(node, ast.Select) else _union(self, node)

    def name(self, name: str) -> str:
        """A name where only a name can stand."""
        return quote_name(name)

    def function(self, name: str) -> str:
        """The name of a function."""
        return ".".join(map(quote_name, name.split("."))) if "." in name else name


def _right(w: Writer, node: Expr, tightness: int) -> str:
    """Where a plain double-quoted text would be read as a string, PROMPT keeps it a text."""
    plain = isinstance(node, ast.Quoted) and not node.forced and not node.using
    return "PROMPT " + w.expr(node) if plain else w.expr(node, tightness)


def _list(w: Writer, nodes: Iterable[Expr]) -> str:
    return ", ".join(map(w.expr, nodes))


def _rights(w: Writer, nodes: Iterable[Expr]) -> str:
    return ", ".join(_right(w, node, ANY) for node in nodes)


def _single(name: str) -> str:
    if name.lower() in ("all", "distinct", "lambda"):
        return f"({name})"  # after SELECT or (, or before a word, it would be the keyword
    return name if _PLAIN.match(name) and name.upper() not in RESERVED else quote_text(name)


def _quoted(w: Writer, node: ast.Quoted) -> str:
    using = f" USING ({', '.join(_dotted(w, n.parts) for n in node.using)})" if node.using else ""
    return f"{'PROMPT ' if node.forced else ''}{quote_text(node.text)}{using}"


def _unary(w: Writer, node: ast.Unary) -> str:
    if node.op == "NOT":
        return "NOT " + w.expr(node.operand, _NOT)
    if node.op == "~":
        return "~ " + w.expr(node.operand, _TURNED)
    operand = w.expr(node.operand, _UNARY)
    return node.op + (" " if operand[0] in "+-" else "") + operand


def _binary(w: Writer, node: ast.Binary) -> str:
    binds = _BINARY[node.op]
    if binds in (_AND, _OR):
        return _chain(w, node)
    right = node.right
    if isinstance(right, ast.String) and node.op == "COLLATE":
        return f"{w.expr(node.left, _PLACED)} COLLATE {_dotted(w, right.value.split('.'))}"
    if node.op == "->":  # in parentheses, since what stands behind it would belong to its right side
        return f"({w.expr(node.left, _CONCAT)} -> {_right(w, right, _BITS)})"
    text = _right(w, right, binds + 1) if binds == _COMPARISON else w.expr(right, binds + 1)
    return f"{w.expr(node.left, binds)} {node.op} {text}"


def _chain(w: Writer, node: ast.Binary) -> str:
    """a AND b AND c; longer chains are cut by parentheses, since the parser balances what is longer than CHAIN."""
    terms: list[str] = []
    binds, first = _BINARY[node.op], node.left
    terms.append(w.expr(node.right, binds + 1))
    while isinstance(first, ast.Binary) and first.op == node.op:
        if len(terms) == CHAIN - 1:
            terms.append(f"({w.expr(first)})")
            break
        terms.append(w.expr(first.right, binds + 1))
        first = first.left
    else:
        terms.append(w.expr(first, binds + 1))
    return f" {node.op} ".join(reversed(terms))


def _not(node: Any) -> str:
    return "NOT " if node.negated else ""


def _like(w: Writer, node: ast.Like) -> str:
    escape = f" ESCAPE {_right(w, node.escape, _CONCAT)}" if node.escape else ""
    return f"{w.expr(node.operand, _RANGE)} {node.operator} {_right(w, node.pattern, _CONCAT)}{escape}"


def _between(w: Writer, node: ast.Between) -> str:
    low, high = _right(w, node.low, _CONCAT), _right(w, node.high, _CONCAT)
    return f"{w.expr(node.operand, _RANGE)} {_not(node)}BETWEEN {low} AND {high}"


def _is_distinct(w: Writer, node: ast.IsDistinct) -> str:
    word = "" if node.op == "IS" else "DISTINCT FROM "
    return f"{w.expr(node.left, _TEST)} IS {_not(node)}{word}{w.expr(node.right, _COMPARISON)}"


def _case(w: Writer, node: ast.Case) -> str:
    operand = f" {w.expr(node.operand)}" if node.operand else ""
    whens = " ".join(_when(w, each) for each in node.whens)
    return f"CASE{operand} {whens}{f' ELSE {w.expr(node.default)}' if node.default else ''} END"


def _when(w: Writer, node: ast.When) -> str:
    return f"WHEN {w.expr(node.condition)} THEN {w.expr(node.value)}"


def _cast(w: Writer, node: ast.Cast) -> str:
    if node.lenient:
        return f"TRY_CAST({w.expr(node.operand)} AS {type_text(node.type, w.name)})"
    return f"{w.expr(node.operand, _POSTFIX)}::{type_text(node.type, w.name)}"


def type_text(node: ast.TypeName, write: Callable[[str], str] = quote_name) -> str:
    """A type, with the names of its fields as `write` has them."""
    inside = [",".join(map(str, node.sizes))] if node.sizes else [literal(label) for label in node.labels]
    for name, part in node.fields:
        inside.append((f"{write(name)} " if name is not None else "") + type_text(part, write))
    dims = "".join(f"[{size or ''}]" for size in node.dims)
    return node.name + (f"({', '.join(inside)})" if inside else "") + dims


def _call(w: Writer, node: ast.Call) -> str:
    text = f"{w.function(node.name)}({_arguments(w, node)})"
    if node.filter:
        text += f" FILTER (WHERE {w.expr(node.filter)})"
    if node.over:
        text += f" OVER ({_window(w, node.over)})"
    if node.name == "row" and len(node.args) > 1:
        text = text.removeprefix("row")
    return f"({text})" if node.name in ("all", "distinct") else text


def _arguments(w: Writer, node: ast.Call) -> str:
    ordered = f" ORDER BY {_keys(w, node.order_by)}" if node.order_by else ""
    nulls = " IGNORE NULLS" if node.ignore_nulls else ""
    return ("DISTINCT " if node.distinct else "") + _list(w, node.args) + ordered + nulls


def _window(w: Writer, node: ast.Window) -> str:
    partition = [f"PARTITION BY {_list(w, node.partition_by)}"] if node.partition_by else []
    order = [f"ORDER BY {_keys(w, node.order_by)}"] if node.order_by else []
    return " ".join([*partition, *order, *([node.frame] if node.frame else [])])


def _keys(w: Writer, keys: Iterable[ast.OrderKey]) -> str:
    return ", ".join(_order_key(w, each) for each in keys)


def _order_key(w: Writer, node: ast.OrderKey) -> str:
    nulls = f" NULLS {node.nulls}" if node.nulls else ""
    return f"{w.expr(node.expr)}{' DESC' if node.descending else ''}{nulls}"


def _star(w: Writer, node: ast.Star) -> str:
    text = "*" if node.table is None else f"{w.name(node.table)}.*"
    if node.exclude:
        text += f" EXCLUDE ({', '.join('.'.join(map(w.name, parts)) for parts in node.exclude)})"
    if node.replaced:
        text += f" REPLACE ({', '.join(_item(w, each) for each in node.replaced)})"
    if node.renamed:
        text += f" RENAME ({', '.join(f'{w.name(a)} AS {w.name(b)}' for a, b in node.renamed)})"
    return text


def _quantified(w: Writer, node: ast.Quantified) -> str:
    if node.operand is None:
        return f"{node.word} ({w.query(node.query)})"
    return f"{w.expr(node.operand, _COMPARISON)} {node.op} {node.word} ({w.query(node.query)})"


def _subscript(w: Writer, node: ast.Subscript) -> str:
    parts = [w.expr(part) if part is not None else "" for part in (node.low, node.high, node.step)]
    inside = ":".join(parts if node.step is not None else parts[:2]) if node.slice else parts[0]
    return (
        f"{w.expr(node.operand, _POSTFIX)}[{inside}]"
        if not isinstance(node.operand, ast.Cast)
        else f"({w.expr(node.operand)})[{inside}]"
    )


UQL: Kinds = {
    ast.Name: (_PRIMARY, lambda w, n: _single(n.parts[0]) if len(n.parts) == 1 else _dotted(w, n.parts)),
    ast.Quoted: (_PRIMARY, _quoted),
    ast.Number: (_PRIMARY, lambda w, n: n.text),
    ast.Position: (_PRIMARY, lambda w, n: f"#{n.text}"),
    ast.String: (_PRIMARY, lambda w, n: literal(n.value)),
    ast.Null: (_PRIMARY, lambda w, n: "NULL"),
    ast.Boolean: (_PRIMARY, lambda w, n: "TRUE" if n.value else "FALSE"),
    ast.TypedLiteral: (_PRIMARY, lambda w, n: f"{n.type} {literal(n.value)}"),
    ast.Parameter: (_PRIMARY, lambda w, n: f"${n.name}"),
    ast.Star: (_PRIMARY, _star),
    ast.Unary: (None, _unary),
    ast.Binary: (None, _binary),
    ast.Like: (_RANGE, _like),
    ast.InList: (_RANGE, lambda w, n: f"{w.expr(n.operand, _RANGE)} {_not(n)}IN ({_rights(w, n.items)})"),
    ast.InQuery: (_RANGE, lambda w, n: f"{w.expr(n.operand, _RANGE)} {_not(n)}IN ({w.query(n.query)})"),
    ast.Between: (_RANGE, _between),
    ast.IsNull: (_TEST, lambda w, n: f"{w.expr(n.operand, _TEST)} IS {_not(n)}NULL"),
    ast.IsDistinct: (_TEST, _is_distinct),
    ast.Case: (_PRIMARY, _case),
    ast.Cast: (_POSTFIX, _cast),
    ast.Call: (_PRIMARY, _call),
    ast.Try: (_UNARY, lambda w, n: f"TRY {w.expr(n.operand, _POSTFIX)}"),
    ast.Exists: (_PRIMARY, lambda w, n: f"EXISTS ({w.query(n.query)})"),
    ast.ScalarQuery: (_PRIMARY, lambda w, n: f"({w.query(n.query)})"),
    ast.ListExpr: (_PRIMARY, lambda w, n: f"[{_list(w, n.items)}]"),
    ast.Quantified: (_COMPARISON, _quantified),
    ast.Subscript: (_POSTFIX, _subscript),
    ast.Lambda: (ANY, lambda w, n: f"LAMBDA {_names(w, n.names)} : {w.expr(n.body)}"),
    ast.Named: (ANY, lambda w, n: f"{w.name(n.name)} := {w.expr(n.value)}"),
    ast.Column: (_PRIMARY, lambda w, n: _dotted(w, filter(None, (n.table, n.name)))),
    Virtual: (_PRIMARY, lambda w, n: "PROMPT " + quote_text(n.column.text)),
    Moment: (_PRIMARY, lambda w, n: "t"),
}
"""How each kind of expression binds, and what writes it."""
Writer.kinds = UQL
_UQL = Writer()


# ---------------------------------------------------------------------------------------------------------------- queries
def _select(w: Writer, node: ast.Select) -> str:
    items = ", ".join(_item(w, each) for each in node.items)
    distinct = (
        f"DISTINCT ON ({_list(w, node.distinct_on)}) " if node.distinct_on else "DISTINCT " if node.distinct else ""
    )
    parts = [_ctes(w, node.ctes), f"SELECT {distinct}{items}"]
    if node.source:
        parts.append(f"FROM {_source(w, node.source)}")
    if node.where:
        parts.append(f"WHERE {w.expr(node.where)}")
    if node.group_by:
        parts.append(f"GROUP BY {', '.join(_group_key(w, each) for each in node.group_by)}")
    if node.having:
        parts.append(f"HAVING {w.expr(node.having)}")
    if node.qualify:
        parts.append(f"QUALIFY {w.expr(node.qualify)}")
    return " ".join(filter(None, [*parts, *_tail(w, node)]))


def _union(w: Writer, node: Query) -> str:
    assert isinstance(node, ast.Union)
    left = _operand(w, node.left)
    if isinstance(node.left, ast.Union) and node.op == "INTERSECT" and node.left.op != "INTERSECT":
        left = left if left.startswith("(") and left.endswith(")") else f"({left})"
    right = f"({w.query(node.right)})" if isinstance(node.right, ast.Union) else _operand(w, node.right)
    union = f"{left} {node.op} {'ALL ' if node.all else ''}{'BY NAME ' if node.by_name else ''}{right}"
    return " ".join(filter(None, [_ctes(w, node.ctes), union, *_tail(w, node)]))


def _operand(w: Writer, node: Query) -> str:
    """In parentheses where its own clauses would be taken for those of the whole."""
    text = w.query(node)
    assert isinstance(node, ast.Select | ast.Union)
    own = node.order_by or node.limit or node.offset or node.ctes or node.to or node.options
    return f"({text})" if own else text


def _tail(w: Writer, node: ast.Select | ast.Union) -> list[str]:
    parts = []
    if node.order_by:
        parts.append(f"ORDER BY {_keys(w, node.order_by)}")
    if node.limit:
        parts.append(f"LIMIT {w.expr(node.limit, _SUM)}{' PERCENT' if node.percent else ''}")
    if node.offset:
        parts.append(f"OFFSET {w.expr(node.offset, _SUM)}")
    if node.to is not None:
        parts.append(f"TO {w.name(node.to)}")
    if node.options:
        parts.append(f"WITH ({', '.join(_option(w, each) for each in node.options)})")
    return parts


def _as(w: Writer, alias: str | None, columns: tuple[str, ...] = ()) -> str:
    if alias is None:
        return ""
    return f" AS {w.name(alias)}" + (f"({_names(w, columns)})" if columns else "")


def _item(w: Writer, node: ast.SelectItem) -> str:
    return w.expr(node.expr) + _as(w, node.alias)


def _group_key(w: Writer, node: ast.GroupKey) -> str:
    if isinstance(node.expr, ast.Call) and node.expr.name == "grouping_sets":
        return f"GROUPING SETS ({', '.join(w.expr(e) if e != ast.Call('row') else '()' for e in node.expr.args)})"
    into = "" if node.into is None else f" INTO {node.into}"
    return f"{w.expr(node.expr)}{into}{' MANY' if node.many else ''}{_as(w, node.alias)}"


def _ctes(w: Writer, ctes: tuple[ast.CommonTable, ...]) -> str:
    return f"WITH {', '.join(_cte(w, each) for each in ctes)}" if ctes else ""


def _cte(w: Writer, node: ast.CommonTable) -> str:
    columns = f" ({_names(w, node.columns)})" if node.columns else ""
    return f"{w.name(node.name)}{columns} AS ({w.query(node.query)})"


def _names(w: Writer, names: Iterable[str]) -> str:
    return ", ".join(map(w.name, names))


def _option(w: Writer, node: ast.Option) -> str:
    return node.name if node.value is True else f"{node.name} = {_constant(node.value)}"


def _constant(value: bool | int | float | str | tuple[str, ...] | None) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, tuple):
        return f"[{', '.join(map(literal, value))}]"
    return literal(value) if isinstance(value, str) else repr(value)


# ---------------------------------------------------------------------------------------------------------------- sources
def _source(w: Writer, node: ast.Source) -> str:
    return _PARTS[type(node)](w, node)


def _table(w: Writer, node: ast.TableName) -> str:
    name = literal(node.parts[0]) if node.file else _dotted(w, node.parts)
    sample = f" TABLESAMPLE {node.sample}" if node.sample else ""
    return name + _as(w, node.alias, node.columns) + sample


def _table_function(w: Writer, node: ast.TableFunction) -> str:
    if node.call.name == "values":
        rows = ", ".join(f"({_list(w, row.args)})" for row in node.call.args if isinstance(row, ast.Call))
        return f"(VALUES {rows}){_as(w, node.alias, node.columns)}"
    name = _dotted(w, node.call.name.split("."))
    return f"{name}({_list(w, node.call.args)}){_as(w, node.alias, node.columns)}"


def _join(w: Writer, node: ast.Join) -> str:
    right = f"({_join(w, node.right)})" if isinstance(node.right, ast.Join) else _source(w, node.right)
    how = "" if node.kind == "INNER" else f"{node.kind} "
    how = f"NATURAL {how}" if node.natural else how
    condition = f" ON {w.expr(node.on)}" if node.on else f" USING ({_names(w, node.using)})" if node.using else ""
    return f"{_source(w, node.left)} {how}JOIN {right}{condition}"


# ------------------------------------------------------------------------------------------------------------- statements
def _explain(w: Writer, node: ast.Explain) -> str:
    mode = {"PLAN": "", "ANALYZE": "ANALYZE ", "SAMPLE": f"SAMPLE {node.sample} "}[node.mode]
    how = "" if node.format == "text" else f"(FORMAT {node.format}) "
    return f"EXPLAIN {mode}{how}{_PARTS[type(node.statement)](w, node.statement)}"


def _set(w: Writer, node: ast.SetOption) -> str:
    return f"RESET uql.{node.name}" if node.value is None else f"SET uql.{node.name} = {_constant(node.value)}"


def _create(w: Writer, node: ast.CreateTable) -> str:
    words = ["CREATE", *["OR REPLACE"] * node.replace, *["TEMP"] * node.temporary, "TABLE"]
    words += ["IF NOT EXISTS"] * node.if_not_exists
    return f"{' '.join(words)} {_dotted(w, node.name)} AS {w.query(node.query)}"


def _semantic(w: Writer, node: ast.CreateSemanticTable) -> str:
    words = ["CREATE", *["OR REPLACE"] * node.replace, "SEMANTIC TABLE", *["IF NOT EXISTS"] * node.if_not_exists]
    name = _dotted(w, node.name)
    return f"{' '.join(words)} {name} AS {w.query(node.query)} KEY ({_names(w, node.key)})"


def _insert(w: Writer, node: ast.Insert) -> str:
    columns = f" ({_names(w, node.columns)})" if node.columns else ""
    return f"INSERT INTO {_dotted(w, node.name)}{columns} {w.query(node.query)}"


def _copy(w: Writer, node: ast.CopyQuery) -> str:
    options = f" ({node.options})" if node.options else ""
    return f"COPY ({w.query(node.query)}) TO {literal(node.path)}{options}"


_PARTS: dict[type[Node], Callable[[Writer, Any], str]] = {
    ast.Select: _select,
    ast.Union: _union,
    ast.SelectItem: _item,
    ast.GroupKey: _group_key,
    ast.OrderKey: _order_key,
    ast.When: _when,
    ast.Window: _window,
    ast.TypeName: lambda w, n: type_text(n),
    ast.CommonTable: _cte,
    ast.Option: _option,
    ast.TableName: _table,
    ast.TableFunction: _table_function,
    ast.Derived: lambda w, n: f"({w.query(n.query)}){_as(w, n.alias, n.columns)}",
    ast.Join: _join,
    ast.Explain: _explain,
    ast.SetOption: _set,
    ast.CreateTable: _create,
    ast.CreateSemanticTable: _semantic,
    ast.Refresh: lambda w, n: f"REFRESH {_dotted(w, n.name)}",
    ast.DropSemanticTable: lambda w, n: f"DROP SEMANTIC TABLE {'IF EXISTS ' * n.if_exists}{_dotted(w, n.name)}",
    ast.Insert: _insert,
    ast.CopyQuery: _copy,
}

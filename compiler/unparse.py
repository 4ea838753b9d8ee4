"""The tree as text again: `parse(unparse(tree)) == tree` for every tree that the parser makes.

Parentheses stand only where the tree needs them. Names are quoted where they must be; a single-part Name in an expression
never is, since quotes would make it a text.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from typing import Any

from uql.base.sql_text import literal
from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import CHAIN
from uql.compiler.lexer import RESERVED, WORDS
from uql.compiler.syntax import Expr, Node, Query
from uql.compiler.virtual import Virtual

_PLAIN = re.compile(r"[^\W\d]\w*\Z")

# How tightly a node binds: a child that binds less than its place asks for stands in parentheses.
(
    _ANY,
    _OR,
    _AND,
    _NOT,
    _TEST,
    _COMPARISON,
    _RANGE,
    _CONCAT,
    _SUM,
    _PRODUCT,
    _POWER,
    _PLACED,
    _UNARY,
    _POSTFIX,
    _PRIMARY,
) = range(15)
_BINARY = {
    "->": _ANY,
    "^": _POWER,
    "OR": _OR,
    "AND": _AND,
    "||": _CONCAT,
    "&": _CONCAT,
    "|": _CONCAT,
    "<<": _CONCAT,
    ">>": _CONCAT,
    "COLLATE": _PLACED,
    "->>": _CONCAT,
    "+": _SUM,
    "-": _SUM,
    "*": _PRODUCT,
    "/": _PRODUCT,
    "//": _PRODUCT,
}
_PREFIX = {"NOT": _NOT, "~": _CONCAT}
_BINARY |= {"%": _PRODUCT} | dict.fromkeys(("=", "<>", "<", "<=", ">", ">="), _COMPARISON)


def unparse(node: Node) -> str:
    """The text of a statement, a query, an expression or any part of them.

    >>> from uql.compiler.parser import parse
    >>> unparse(parse('select "the plot"::enum(\\'good\\', \\'bad\\') p from reviews r where not (a or b)'))
    'SELECT "the plot"::ENUM(\\'good\\', \\'bad\\') AS p FROM reviews AS r WHERE NOT (a OR b)'
    """
    if isinstance(node, Expr):
        return _expr(node)
    return _PARTS[type(node)](node)


def quote_name(name: str) -> str:
    """A name where only a name can stand: quoted unless it is a plain word that is not a keyword."""
    return name if _PLAIN.match(name) and name.upper() not in WORDS else quote_text(name)


def quote_text(text: str) -> str:
    """The text in double quotes."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _dotted(parts: Iterable[str]) -> str:
    return ".".join(map(quote_name, parts))


# ------------------------------------------------------------------------------------------------------------ expressions
def _expr(node: Expr, tightness: int = _ANY) -> str:
    binds, write = _EXPRESSIONS[type(node)]
    if binds is None:
        assert isinstance(node, ast.Binary | ast.Unary)
        binds = _BINARY[node.op] if isinstance(node, ast.Binary) else _PREFIX.get(node.op, _UNARY)
    text = write(node)
    return f"({text})" if binds < tightness else text


def _right(node: Expr, tightness: int) -> str:
    """Where a plain double-quoted text would be read as a string, PROMPT keeps it a text."""
    plain = isinstance(node, ast.Quoted) and not node.forced and not node.using
    return "PROMPT " + _expr(node) if plain else _expr(node, tightness)


def _list(nodes: Iterable[Expr]) -> str:
    return ", ".join(map(_expr, nodes))


def _rights(nodes: Iterable[Expr]) -> str:
    return ", ".join(_right(node, _ANY) for node in nodes)


def _single(name: str) -> str:
    if name.lower() in ("all", "distinct"):
        return f"({name})"  # after SELECT or ( it would be the keyword
    return name if _PLAIN.match(name) and name.upper() not in RESERVED else quote_text(name)


def _quoted(node: ast.Quoted) -> str:
    using = f" USING ({', '.join(_dotted(n.parts) for n in node.using)})" if node.using else ""
    return f"{'PROMPT ' if node.forced else ''}{quote_text(node.text)}{using}"


def _unary(node: ast.Unary) -> str:
    if node.op == "NOT":
        return "NOT " + _expr(node.operand, _NOT)
    if node.op == "~":
        return "~ " + _expr(node.operand, _SUM)
    operand = _expr(node.operand, _UNARY)
    return node.op + (" " if operand[0] in "+-" else "") + operand


def _binary(node: ast.Binary) -> str:
    binds = _BINARY[node.op]
    if binds in (_AND, _OR):
        return _chain(node)
    right = node.right
    if isinstance(right, ast.String) and node.op == "COLLATE":
        return f"{_expr(node.left, _PLACED)} COLLATE {_dotted(right.value.split('.'))}"
    if node.op == "->":  # binds least, and to the right
        return f"{_expr(node.left, _OR)} -> {_right(right, _ANY)}"
    text = _right(right, binds + 1) if binds == _COMPARISON else _expr(right, binds + 1)
    return f"{_expr(node.left, binds)} {node.op} {text}"


def _chain(node: ast.Binary) -> str:
    """a AND b AND c; longer chains are cut by parentheses, since the parser balances what is longer than CHAIN."""
    terms: list[str] = []
    binds, first = _BINARY[node.op], node.left
    terms.append(_expr(node.right, binds + 1))
    while isinstance(first, ast.Binary) and first.op == node.op:
        if len(terms) == CHAIN - 1:
            terms.append(f"({_expr(first)})")
            break
        terms.append(_expr(first.right, binds + 1))
        first = first.left
    else:
        terms.append(_expr(first, binds + 1))
    return f" {node.op} ".join(reversed(terms))


def _not(node: Any) -> str:
    return "NOT " if node.negated else ""


def _like(node: ast.Like) -> str:
    escape = f" ESCAPE {_right(node.escape, _CONCAT)}" if node.escape else ""
    return f"{_expr(node.operand, _RANGE)} {node.operator} {_right(node.pattern, _CONCAT)}{escape}"


def _between(node: ast.Between) -> str:
    low, high = _right(node.low, _CONCAT), _right(node.high, _CONCAT)
    return f"{_expr(node.operand, _RANGE)} {_not(node)}BETWEEN {low} AND {high}"


def _is_distinct(node: ast.IsDistinct) -> str:
    word = "" if node.op == "IS" else "DISTINCT FROM "
    return f"{_expr(node.left, _TEST)} IS {_not(node)}{word}{_expr(node.right, _COMPARISON)}"


def _case(node: ast.Case) -> str:
    operand = f" {_expr(node.operand)}" if node.operand else ""
    whens = " ".join(map(_when, node.whens))
    return f"CASE{operand} {whens}{f' ELSE {_expr(node.default)}' if node.default else ''} END"


def _when(node: ast.When) -> str:
    return f"WHEN {_expr(node.condition)} THEN {_expr(node.value)}"


def _cast(node: ast.Cast) -> str:
    if node.lenient:
        return f"TRY_CAST({_expr(node.operand)} AS {_type(node.type)})"
    return f"{_expr(node.operand, _POSTFIX)}::{_type(node.type)}"


def _type(node: ast.TypeName) -> str:
    inside = [str(size) for size in node.sizes] + [literal(label) for label in node.labels]
    inside += [f"{quote_name(name)} {_type(part)}" if name is not None else _type(part) for name, part in node.fields]
    dims = "".join(f"[{size or ''}]" for size in node.dims)
    return node.name + (f"({', '.join(inside)})" if inside else "") + dims


def _call(node: ast.Call) -> str:
    names = node.name.split(".")
    name = names[0] if len(names) == 1 else _dotted(names)
    text = f"{name}({_arguments(node)})"
    if node.filter:
        text += f" FILTER (WHERE {_expr(node.filter)})"
    if node.over:
        text += f" OVER ({_window(node.over)})"
    if node.name == "row" and len(node.args) > 1:
        text = text.removeprefix("row")
    return f"({text})" if name in ("all", "distinct") else text


def _arguments(node: ast.Call) -> str:
    ordered = f" ORDER BY {_keys(node.order_by)}" if node.order_by else ""
    nulls = " IGNORE NULLS" if node.ignore_nulls else ""
    return ("DISTINCT " if node.distinct else "") + _list(node.args) + ordered + nulls


def _window(node: ast.Window) -> str:
    partition = [f"PARTITION BY {_list(node.partition_by)}"] if node.partition_by else []
    order = [f"ORDER BY {_keys(node.order_by)}"] if node.order_by else []
    return " ".join([*partition, *order, *([node.frame] if node.frame else [])])


def _keys(keys: Iterable[ast.OrderKey]) -> str:
    return ", ".join(map(_order_key, keys))


def _order_key(node: ast.OrderKey) -> str:
    nulls = f" NULLS {node.nulls}" if node.nulls else ""
    return f"{_expr(node.expr)}{' DESC' if node.descending else ''}{nulls}"


def _star(node: ast.Star) -> str:
    text = "*" if node.table is None else f"{quote_name(node.table)}.*"
    if node.exclude:
        text += f" EXCLUDE ({_names(node.exclude)})"
    if node.replaced:
        text += f" REPLACE ({', '.join(map(_item, node.replaced))})"
    if node.renamed:
        text += f" RENAME ({', '.join(f'{quote_name(a)} AS {quote_name(b)}' for a, b in node.renamed)})"
    return text


def _quantified(node: ast.Quantified) -> str:
    if node.operand is None:
        return f"{node.word} ({_query(node.query)})"
    return f"{_expr(node.operand, _COMPARISON)} {node.op} {node.word} ({_query(node.query)})"


def _subscript(node: ast.Subscript) -> str:
    parts = [_expr(part) if part is not None else "" for part in (node.low, node.high, node.step)]
    inside = ":".join(parts if node.step is not None else parts[:2]) if node.slice else parts[0]
    return (
        f"{_expr(node.operand, _POSTFIX)}[{inside}]"
        if not isinstance(node.operand, ast.Cast)
        else f"({_expr(node.operand)})[{inside}]"
    )


_EXPRESSIONS: dict[type[Expr], tuple[int | None, Callable[[Any], str]]] = {
    ast.Name: (_PRIMARY, lambda n: _single(n.parts[0]) if len(n.parts) == 1 else _dotted(n.parts)),
    ast.Quoted: (_PRIMARY, _quoted),
    ast.Number: (_PRIMARY, lambda n: n.text),
    ast.Position: (_PRIMARY, lambda n: f"#{n.text}"),
    ast.String: (_PRIMARY, lambda n: literal(n.value)),
    ast.Null: (_PRIMARY, lambda n: "NULL"),
    ast.Boolean: (_PRIMARY, lambda n: "TRUE" if n.value else "FALSE"),
    ast.TypedLiteral: (_PRIMARY, lambda n: f"{n.type} {literal(n.value)}"),
    ast.Parameter: (_PRIMARY, lambda n: f"${n.name}"),
    ast.Star: (_PRIMARY, _star),
    ast.Unary: (None, _unary),
    ast.Binary: (None, _binary),
    ast.Like: (_RANGE, _like),
    ast.InList: (_RANGE, lambda n: f"{_expr(n.operand, _RANGE)} {_not(n)}IN ({_rights(n.items)})"),
    ast.InQuery: (_RANGE, lambda n: f"{_expr(n.operand, _RANGE)} {_not(n)}IN ({_query(n.query)})"),
    ast.Between: (_RANGE, _between),
    ast.IsNull: (_TEST, lambda n: f"{_expr(n.operand, _TEST)} IS {_not(n)}NULL"),
    ast.IsDistinct: (_TEST, _is_distinct),
    ast.Case: (_PRIMARY, _case),
    ast.Cast: (_POSTFIX, _cast),
    ast.Call: (_PRIMARY, _call),
    ast.Try: (_UNARY, lambda n: f"TRY {_expr(n.operand, _POSTFIX)}"),
    ast.Exists: (_PRIMARY, lambda n: f"EXISTS ({_query(n.query)})"),
    ast.ScalarQuery: (_PRIMARY, lambda n: f"({_query(n.query)})"),
    ast.ListExpr: (_PRIMARY, lambda n: f"[{_list(n.items)}]"),
    ast.Quantified: (_COMPARISON, _quantified),
    ast.Subscript: (_POSTFIX, _subscript),
    ast.Lambda: (_ANY, lambda n: f"LAMBDA {_names(n.names)} : {_expr(n.body)}"),
    ast.Named: (_ANY, lambda n: f"{quote_name(n.name)} := {_expr(n.value)}"),
    ast.Column: (_PRIMARY, lambda n: _dotted(filter(None, (n.table, n.name)))),
    Virtual: (_PRIMARY, lambda n: "PROMPT " + quote_text(n.column.text)),
}


# ---------------------------------------------------------------------------------------------------------------- queries
def _query(node: Query) -> str:
    return _select(node) if isinstance(node, ast.Select) else _union(node)


def _select(node: ast.Select) -> str:
    items = ", ".join(map(_item, node.items))
    distinct = f"DISTINCT ON ({_list(node.distinct_on)}) " if node.distinct_on else "DISTINCT " if node.distinct else ""
    parts = [_ctes(node.ctes), f"SELECT {distinct}{items}"]
    if node.source:
        parts.append(f"FROM {_source(node.source)}")
    if node.where:
        parts.append(f"WHERE {_expr(node.where)}")
    if node.group_by:
        parts.append(f"GROUP BY {', '.join(map(_group_key, node.group_by))}")
    if node.having:
        parts.append(f"HAVING {_expr(node.having)}")
    if node.qualify:
        parts.append(f"QUALIFY {_expr(node.qualify)}")
    return " ".join(filter(None, [*parts, *_tail(node)]))


def _union(node: Query) -> str:
    assert isinstance(node, ast.Union)
    left = _operand(node.left)
    if isinstance(node.left, ast.Union) and node.op == "INTERSECT" and node.left.op != "INTERSECT":
        left = left if left.startswith("(") and left.endswith(")") else f"({left})"
    right = f"({_query(node.right)})" if isinstance(node.right, ast.Union) else _operand(node.right)
    union = f"{left} {node.op} {'ALL ' if node.all else ''}{'BY NAME ' if node.by_name else ''}{right}"
    return " ".join(filter(None, [_ctes(node.ctes), union, *_tail(node)]))


def _operand(node: Query) -> str:
    """In parentheses where its own clauses would be taken for those of the whole."""
    text = _query(node)
    assert isinstance(node, ast.Select | ast.Union)
    own = node.order_by or node.limit or node.offset or node.ctes or node.to or node.options
    return f"({text})" if own else text


def _tail(node: ast.Select | ast.Union) -> list[str]:
    parts = []
    if node.order_by:
        parts.append(f"ORDER BY {_keys(node.order_by)}")
    if node.limit:
        parts.append(f"LIMIT {_expr(node.limit, _SUM)}{' PERCENT' if node.percent else ''}")
    if node.offset:
        parts.append(f"OFFSET {_expr(node.offset, _SUM)}")
    if node.to is not None:
        parts.append(f"TO {quote_name(node.to)}")
    if node.options:
        parts.append(f"WITH ({', '.join(map(_option, node.options))})")
    return parts


def _as(alias: str | None, columns: tuple[str, ...] = ()) -> str:
    if alias is None:
        return ""
    return f" AS {quote_name(alias)}" + (f"({_names(columns)})" if columns else "")


def _item(node: ast.SelectItem) -> str:
    return _expr(node.expr) + _as(node.alias)


def _group_key(node: ast.GroupKey) -> str:
    if isinstance(node.expr, ast.Call) and node.expr.name == "grouping_sets":
        return f"GROUPING SETS ({', '.join(_expr(e) if e != ast.Call('row') else '()' for e in node.expr.args)})"
    into = "" if node.into is None else f" INTO {node.into}"
    return f"{_expr(node.expr)}{into}{' MANY' if node.many else ''}{_as(node.alias)}"


def _ctes(ctes: tuple[ast.CommonTable, ...]) -> str:
    return f"WITH {', '.join(map(_cte, ctes))}" if ctes else ""


def _cte(node: ast.CommonTable) -> str:
    columns = f" ({_names(node.columns)})" if node.columns else ""
    return f"{quote_name(node.name)}{columns} AS ({_query(node.query)})"


def _names(names: Iterable[str]) -> str:
    return ", ".join(map(quote_name, names))


def _option(node: ast.Option) -> str:
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
def _source(node: ast.Source) -> str:
    return _PARTS[type(node)](node)


def _table(node: ast.TableName) -> str:
    name = literal(node.parts[0]) if node.file else _dotted(node.parts)
    sample = f" TABLESAMPLE {node.sample}" if node.sample else ""
    return name + _as(node.alias, node.columns) + sample


def _table_function(node: ast.TableFunction) -> str:
    if node.call.name == "values":
        rows = ", ".join(f"({_list(row.args)})" for row in node.call.args if isinstance(row, ast.Call))
        return f"(VALUES {rows}){_as(node.alias, node.columns)}"
    name = _dotted(node.call.name.split("."))
    return f"{name}({_list(node.call.args)}){_as(node.alias, node.columns)}"


def _join(node: ast.Join) -> str:
    right = f"({_join(node.right)})" if isinstance(node.right, ast.Join) else _source(node.right)
    how = "" if node.kind == "INNER" else f"{node.kind} "
    how = f"NATURAL {how}" if node.natural else how
    condition = f" ON {_expr(node.on)}" if node.on else f" USING ({_names(node.using)})" if node.using else ""
    return f"{_source(node.left)} {how}JOIN {right}{condition}"


# ------------------------------------------------------------------------------------------------------------- statements
def _explain(node: ast.Explain) -> str:
    mode = {"PLAN": "", "ANALYZE": "ANALYZE ", "SAMPLE": f"SAMPLE {node.sample} "}[node.mode]
    how = "" if node.format == "text" else f"(FORMAT {node.format}) "
    return f"EXPLAIN {mode}{how}{_query(node.statement)}"


def _set(node: ast.SetOption) -> str:
    return f"RESET uql.{node.name}" if node.value is None else f"SET uql.{node.name} = {_constant(node.value)}"


def _create(node: ast.CreateTable) -> str:
    words = ["CREATE", *["OR REPLACE"] * node.replace, *["TEMP"] * node.temporary, "TABLE"]
    words += ["IF NOT EXISTS"] * node.if_not_exists
    return f"{' '.join(words)} {_dotted(node.name)} AS {_query(node.query)}"


def _semantic(node: ast.CreateSemanticTable) -> str:
    words = ["CREATE", *["OR REPLACE"] * node.replace, "SEMANTIC TABLE", *["IF NOT EXISTS"] * node.if_not_exists]
    name = _dotted(node.name)
    return f"{' '.join(words)} {name} AS {_query(node.query)} KEY ({_names(node.key)})"


def _insert(node: ast.Insert) -> str:
    columns = f" ({_names(node.columns)})" if node.columns else ""
    return f"INSERT INTO {_dotted(node.name)}{columns} {_query(node.query)}"


def _copy(node: ast.CopyQuery) -> str:
    options = f" ({node.options})" if node.options else ""
    return f"COPY ({_query(node.query)}) TO {literal(node.path)}{options}"


_PARTS: dict[type[Node], Callable[[Any], str]] = {
    ast.Select: _select,
    ast.Union: _union,
    ast.SelectItem: _item,
    ast.GroupKey: _group_key,
    ast.OrderKey: _order_key,
    ast.When: _when,
    ast.Window: _window,
    ast.TypeName: _type,
    ast.CommonTable: _cte,
    ast.Option: _option,
    ast.TableName: _table,
    ast.TableFunction: _table_function,
    ast.Derived: lambda n: f"({_query(n.query)}){_as(n.alias, n.columns)}",
    ast.Join: _join,
    ast.Explain: _explain,
    ast.SetOption: _set,
    ast.CreateTable: _create,
    ast.CreateSemanticTable: _semantic,
    ast.Refresh: lambda n: f"REFRESH {_dotted(n.name)}",
    ast.DropSemanticTable: lambda n: f"DROP SEMANTIC TABLE {'IF EXISTS ' * n.if_exists}{_dotted(n.name)}",
    ast.Insert: _insert,
    ast.CopyQuery: _copy,
}

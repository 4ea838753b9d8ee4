"""What the parser has gathered of a query, and the Select or Union that it makes of it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields, replace
from typing import Any

from uql.base.errors import line_column
from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, span
from uql.compiler.syntax import Node, Query, SelectItem, Span
from uql.compiler.walk import with_children


@dataclass(frozen=True, slots=True)
class Clause(Node):
    kind: str  # as it is written: "GROUP BY"
    value: Any


@dataclass(frozen=True, slots=True)
class Percent:
    """LIMIT value PERCENT"""

    value: ast.Expr


@dataclass(frozen=True, slots=True)
class Link:
    """UNION, INTERSECT or EXCEPT between two operands."""

    op: str
    all: bool = False
    by_name: bool = False


@dataclass(frozen=True, slots=True)
class Part(Node):
    """One operand of a UNION, INTERSECT or EXCEPT, or a whole query: a SELECT whose clauses are not yet settled, or one in parentheses."""

    items: tuple[SelectItem, ...] = ()
    distinct: bool = False
    clauses: tuple[Clause, ...] = ()
    query: Query | None = None  # in parentheses
    link: Link | None = None  # what joins it to the one before
    distinct_on: tuple[ast.Expr, ...] = ()

    @property
    def core(self) -> Span:
        """Its place without the clauses that belong to the whole UNION."""
        tail = min((c.span.start for c in self.clauses if c.kind in TAIL), default=self.span.end)
        ends = [c.span.end for c in self.clauses if c.span.end <= tail and c.kind not in TAIL]
        return Span(self.span.start, max(ends, default=self.items[-1].span.end if self.items else self.span.end))


TAIL = ("ORDER BY", "LIMIT", "OFFSET", "TO", "WITH")
FIELDS = {
    "FROM": "source",
    "WHERE": "where",
    "GROUP BY": "group_by",
    "HAVING": "having",
    "QUALIFY": "qualify",
    "WINDOW": "windows",
    "USING SAMPLE": "sample",
    "SELECT": "selected",
    "ORDER BY": "order_by",
    "LIMIT": "limit",
    "OFFSET": "offset",
    "TO": "to",
    "WITH": "options",
}


def settle(p: P, clauses: tuple[Clause, ...]) -> dict[str, Any]:
    """The clauses as fields of a Select. Raises UQLSyntaxError: one given twice (UQL104), FROM, TO or WITH out of place (UQL106)."""
    by_kind: dict[str, Clause] = {}
    for at, clause in enumerate(clauses):
        first = by_kind.setdefault(clause.kind, clause)
        if first is not clause:
            line, column = line_column(p.lexer.text, first.span.start)
            raise p.lexer.error_at(
                f"{clause.kind} is given twice; the first is at line {line}, column {column}",
                clause.span,
                code="UQL104",
                help=f"write one {clause.kind} that says both",
            )
        if clause.kind == "FROM" and at:
            raise p.lexer.error_at(
                f"FROM comes before {clauses[0].kind}",
                clause.span,
                code="UQL106",
                help="write SELECT … FROM …, then the other clauses",
            )
        if "WITH" in by_kind and clause.kind != "WITH":
            raise p.lexer.error_at(
                f"{clause.kind} comes before WITH (…)",
                clause.span,
                code="UQL106",
                help="move WITH (…) to the end of the statement",
            )
        if "TO" in by_kind and clause.kind not in ("TO", "WITH"):
            raise p.lexer.error_at(
                f"{clause.kind} comes before TO",
                clause.span,
                code="UQL106",
                help="move TO behind the other clauses, before WITH (…)",
            )
    select_fields = {FIELDS[kind]: clause.value for kind, clause in by_kind.items()}
    if isinstance(select_fields.get("limit"), Percent):
        select_fields |= {"limit": select_fields["limit"].value, "percent": True}
    return select_fields


def make_query(p: P, parts: list[Part], ctes: tuple[ast.CommonTable, ...] = ()) -> Query:
    """A Select, or the Unions of several from left to right; what follows the last SELECT belongs to the whole.

    Args:
        p: the production, which gives the place.
        parts: the SELECTs with the clauses that follow each.
        ctes: the tables of WITH.
    Raises: UQLSyntaxError (UQL106) where a clause of the whole stands before the last SELECT.
    """
    whole = span(p)
    if len(parts) == 1:
        return _select(p, parts[0], parts[0].clauses, whole, ctes)
    for part in parts[:-1]:
        for clause in part.clauses:
            if clause.kind in TAIL:
                help = f"{clause.kind} belongs at the end, or put this SELECT in parentheses"
                after = next(other.link.op for other in parts if other.link is not None)
                raise p.lexer.error_at(f"{clause.kind} stands before {after}", clause.span, code="UQL106", help=help)
    settle(p, parts[-1].clauses)
    tail = settle(p, tuple(c for c in parts[-1].clauses if c.kind in TAIL))
    operands: list[tuple[Query, Span, Link | None]] = []
    for part in parts:
        query = _operand(p, part)
        if part.link is not None and part.link.op == "INTERSECT":  # binds tighter than UNION and EXCEPT
            before, place, link = operands.pop()
            place = Span(place.start, part.core.end)
            operands.append((_pair(before, query, part.link, place), place, link))
        else:
            operands.append((query, part.core, part.link))
    left, place, _ = operands[0]
    for query, end, link in operands[1:]:
        assert link is not None
        place = Span(place.start, end.end)
        left = _pair(left, query, link, place)
    assert isinstance(left, ast.Union)
    return replace(left, ctes=ctes, span=whole, **tail)


def _pair(left: Query, right: Query, link: Link, place: Span) -> ast.Union:
    return ast.Union(left, right, link.all, link.op, link.by_name, span=place)


def _operand(p: P, part: Part) -> Query:
    if part.query is not None:
        for clause in part.clauses:
            if clause.kind not in TAIL:
                raise p.lexer.error_at(f"{clause.kind} cannot follow a query in parentheses", clause.span)
        return part.query
    return _select(p, part, tuple(c for c in part.clauses if c.kind not in TAIL), part.core, ())


def _select(
    p: P, part: Part, clauses: tuple[Clause, ...], place: Span, ctes: tuple[ast.CommonTable, ...]
) -> ast.Select:
    """The Select of an operand: FROM … SELECT … is SELECT … FROM …, windows stand in the place of their names."""
    own = settle(p, clauses)
    items, distinct, distinct_on = part.items, part.distinct, part.distinct_on
    if "selected" in own:
        if part.items:
            second = next(c for c in clauses if c.kind == "SELECT")
            raise p.lexer.error_at("SELECT is given twice", second.span, code="UQL104")
        items, distinct, distinct_on = own.pop("selected")
    items = items or (SelectItem(ast.Star(span=place), span=place),)
    sample = own.pop("sample", None)
    if sample is not None:
        own["source"] = _sampled(p, own.get("source"), sample, clauses)
    windows: dict[str, ast.Window] = {}
    for name, window in own.pop("windows", ()):
        windows[name] = _settled(p, window, windows) if window.name else window
    select = ast.Select(tuple(items), distinct=distinct, distinct_on=tuple(distinct_on), ctes=ctes, span=place, **own)
    references = list(_named_windows((tuple(items), tuple(clauses)))) if p.lexer.has_windows else []
    if not windows and not references:
        return select
    p.lexer.check_depth(select)
    each = {id(node): _settled(p, node, windows) for node in references}
    settled: ast.Select = _with_windows(select, each)
    return settled


def _settled(p: P, node: ast.Window, windows: dict[str, ast.Window]) -> ast.Window:
    """What OVER name, or OVER (name ORDER BY …), means."""
    base = windows.get(node.name.lower())
    if base is None:
        names = ", ".join(windows) or "none"
        help = f"WINDOW {node.name} AS (PARTITION BY …) names one; named here: {names}"
        raise p.lexer.error_at(f"there is no window {node.name}", node.span, help=help)
    twice = "PARTITION BY" if node.partition_by else "ORDER BY" if node.order_by and base.order_by else ""
    if twice or (base.frame and (node.order_by or node.frame)):
        what = twice or "what stands after a frame"
        help = f"write the window {node.name} out in OVER (…)"
        raise p.lexer.error_at(f"{what} is not added to the window {node.name}", node.span, help=help)
    return replace(base, order_by=node.order_by or base.order_by, frame=node.frame or base.frame)


def _named_windows(clauses: Iterable[Any]) -> Iterator[ast.Window]:
    """The windows that stand by name, sub-queries not entered: those have their own. Without recursion."""
    stack = list(clauses)[::-1]
    while stack:
        value = stack.pop()
        if isinstance(value, ast.Window) and value.name:
            yield value
        if isinstance(value, tuple):
            stack += value[::-1]
        elif isinstance(value, Clause):
            stack += [value.value] if value.kind != "WINDOW" else []
        elif isinstance(value, ast.Node) and not isinstance(value, Query | ast.Source):
            stack += [getattr(value, f.name) for f in fields(value)][::-1]


def _with_windows(node: Any, windows: dict[int, ast.Window]) -> Any:
    """The clauses with windows, by identity, in the place of their names, sub-queries not entered."""
    if isinstance(node, ast.Window) and node.name:
        return windows[id(node)]
    apart = Query | ast.Source | ast.CommonTable
    return with_children(node, lambda below: below if isinstance(below, apart) else _with_windows(below, windows))


def _sampled(p: P, source: ast.Source | None, sample: str, clauses: tuple[Clause, ...]) -> ast.Source:
    """FROM t USING SAMPLE … is FROM t TABLESAMPLE …"""
    if isinstance(source, ast.TableName) and not source.sample:
        return replace(source, sample=sample)
    clause = next(c for c in clauses if c.kind == "USING SAMPLE")
    raise p.lexer.error_at(
        "USING SAMPLE takes one table",
        clause.span,
        code="UQL106",
        help="write TABLESAMPLE behind the table that is sampled",
    )

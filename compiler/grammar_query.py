"""The grammar of queries: clauses in any order, sources and joins, UNION, WITH."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, append, lower, span, whole_number
from uql.compiler.syntax import Query, SelectItem, Span


@dataclass(frozen=True, slots=True)
class Clause:
    kind: str  # as it is written: "GROUP BY"
    value: Any
    span: Span


@dataclass(frozen=True, slots=True)
class Part:
    """One operand of a UNION, or a whole query: a SELECT whose clauses are not yet settled, or a sub-query in parentheses."""

    span: Span
    items: tuple[SelectItem, ...] = ()
    distinct: bool = False
    clauses: tuple[Clause, ...] = ()
    query: Query | None = None  # in parentheses
    all: bool = False  # UNION ALL before it

    @property
    def core(self) -> Span:
        """Its place without the clauses that belong to the whole UNION."""
        tail = min((c.span.start for c in self.clauses if c.kind in TAIL), default=self.span.end)
        ends = [c.span.end for c in self.clauses if c.span.end <= tail and c.kind not in TAIL]
        return Span(self.span.start, max(ends, default=self.head_end()))

    def head_end(self) -> int:
        return self.items[-1].span.end if self.items else self.span.end


TAIL = ("ORDER BY", "LIMIT", "OFFSET", "TO", "WITH")
FIELDS = {
    "FROM": "source",
    "WHERE": "where",
    "GROUP BY": "group_by",
    "HAVING": "having",
    "ORDER BY": "order_by",
    "LIMIT": "limit",
    "OFFSET": "offset",
    "TO": "to",
    "WITH": "options",
}


def settle(p: P, clauses: tuple[Clause, ...]) -> dict[str, Any]:
    """The clauses as fields of a Select. Raises UQLSyntaxError: one given twice (UQL104), FROM, TO or WITH out of place (UQL106)."""
    seen: dict[str, Clause] = {}
    for at, clause in enumerate(clauses):
        first = seen.setdefault(clause.kind, clause)
        if first is not clause:
            line, column = p.lexer.line_column(first.span.start)
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
        if "WITH" in seen and clause.kind != "WITH":
            raise p.lexer.error_at(
                f"{clause.kind} comes before WITH (…)",
                clause.span,
                code="UQL106",
                help="move WITH (…) to the end of the statement",
            )
        if "TO" in seen and clause.kind not in ("TO", "WITH"):
            raise p.lexer.error_at(
                f"{clause.kind} comes before TO",
                clause.span,
                code="UQL106",
                help="move TO behind the other clauses, before WITH (…)",
            )
    return {FIELDS[kind]: clause.value for kind, clause in seen.items()}


def make_query(p: P, parts: list[Part], ctes: tuple[ast.CommonTable, ...] = ()) -> Query:
    """A Select, or the Unions of several from left to right; what follows the last SELECT belongs to the whole."""
    whole = span(p)
    if len(parts) == 1:
        return ast.Select(
            parts[0].items, distinct=parts[0].distinct, ctes=ctes, span=whole, **settle(p, parts[0].clauses)
        )
    for part in parts[:-1]:
        for clause in part.clauses:
            if clause.kind in TAIL:
                help = f"{clause.kind} belongs at the end, or put this SELECT in parentheses"
                raise p.lexer.error_at(f"{clause.kind} stands before UNION", clause.span, code="UQL106", help=help)
    settle(p, parts[-1].clauses)
    tail = settle(p, tuple(c for c in parts[-1].clauses if c.kind in TAIL))
    left = _operand(p, parts[0])
    for part in parts[1:-1]:
        left = ast.Union(left, _operand(p, part), part.all, span=Span(parts[0].span.start, part.core.end))
    return ast.Union(left, _operand(p, parts[-1]), parts[-1].all, ctes=ctes, span=whole, **tail)


def _operand(p: P, part: Part) -> Query:
    if part.query is not None:
        for clause in part.clauses:
            if clause.kind not in TAIL:
                raise p.lexer.error_at(f"{clause.kind} cannot follow a query in parentheses", clause.span)
        return part.query
    own = settle(p, tuple(c for c in part.clauses if c.kind not in TAIL))
    return ast.Select(part.items, distinct=part.distinct, span=part.core, **own)


# --------------------------------------------------------------------------------------------------------------- queries
def p_query(p: P) -> None:
    """query : bare_query"""
    p[0] = p[1]


def p_query_in_parentheses(p: P) -> None:
    """query : subquery"""
    p[0] = p[1]


def p_bare_query(p: P) -> None:
    """bare_query : select
    | WITH ctes select"""
    p[0] = make_query(p, [p[len(p) - 1]], tuple(p[2]) if len(p) == 4 else ())


def p_bare_union(p: P) -> None:
    """bare_query : union
    | WITH ctes union"""
    p[0] = make_query(p, p[len(p) - 1], tuple(p[2]) if len(p) == 4 else ())


def p_subquery(p: P) -> None:
    """subquery : LPAREN bare_query RPAREN"""
    query = p[2]
    for wrong, what in ((query.options, "WITH (…)"), (query.to, "TO")):
        if wrong:
            raise p.lexer.error_at(
                f"{what} stands inside a sub-query",
                p.lexer.last_word(what.split()[0], span(p)),
                code="UQL106",
                help=f"move {what} to the end of the statement",
            )
    p[0] = query


def p_subquery_nested(p: P) -> None:
    """subquery : LPAREN subquery RPAREN"""
    p[0] = p[2]


def p_union(p: P) -> None:
    """union : left UNION operand"""
    p[0] = [*p[1], p[3]]


def p_union_all(p: P) -> None:
    """union : left UNION ALL operand"""
    right = p[4]
    p[0] = [*p[1], Part(right.span, right.items, right.distinct, right.clauses, right.query, all=True)]


def p_union_distinct(p: P) -> None:
    """union : left UNION DISTINCT operand"""
    p[0] = [*p[1], p[4]]


def p_left(p: P) -> None:
    """left : select"""
    p[0] = [p[1]]


def p_left_union(p: P) -> None:
    """left : union"""
    p[0] = p[1]


def p_left_subquery(p: P) -> None:
    """left : subquery"""
    p[0] = [Part(span(p), query=p[1])]


def p_operand(p: P) -> None:
    """operand : select"""
    p[0] = p[1]


def p_operand_subquery(p: P) -> None:
    """operand : subquery
    | subquery clauses"""
    p[0] = Part(span(p, 1), clauses=tuple(p[2]) if len(p) == 3 else (), query=p[1])


def p_select(p: P) -> None:
    """select : SELECT items
    | SELECT items clauses"""
    p[0] = Part(span(p), tuple(p[2]), clauses=tuple(p[3]) if len(p) == 4 else ())


def p_select_distinct(p: P) -> None:
    """select : SELECT DISTINCT items
    | SELECT DISTINCT items clauses"""
    p[0] = Part(span(p), tuple(p[3]), distinct=True, clauses=tuple(p[4]) if len(p) == 5 else ())


def p_lists(p: P) -> None:
    """items : item
          | items COMMA item
    clauses : clause
            | clauses clause
    group_keys : group_key
               | group_keys COMMA group_key
    options : option
            | options COMMA option
    ctes : cte
         | ctes COMMA cte
    identifiers : identifier
                | identifiers COMMA identifier"""
    append(p)


def p_item(p: P) -> None:
    """item : expr
    | star
    | expr NAME
    | expr AS identifier"""
    p[0] = SelectItem(p[1], p[len(p) - 1] if len(p) > 2 else None, span=span(p))


def p_item_star(p: P) -> None:
    """item : star EXCLUDE LPAREN identifiers RPAREN"""
    p[0] = SelectItem(ast.Star(p[1].table, tuple(p[4]), span=span(p)), span=span(p))


def p_cte(p: P) -> None:
    """cte : identifier AS subquery"""
    p[0] = ast.CommonTable(p[1], p[3], span=span(p))


def p_cte_columns(p: P) -> None:
    """cte : identifier LPAREN identifiers RPAREN AS subquery"""
    p[0] = ast.CommonTable(p[1], p[6], tuple(p[3]), span=span(p))


# --------------------------------------------------------------------------------------------------------------- clauses
def p_clause(p: P) -> None:
    """clause : FROM sources
    | WHERE expr
    | HAVING expr
    | LIMIT sum
    | OFFSET sum
    | TO identifier"""
    p[0] = Clause(p[1].upper(), p[2], span(p))


def p_clause_group(p: P) -> None:
    """clause : GROUP BY group_keys"""
    p[0] = Clause("GROUP BY", tuple(p[3]), span(p))


def p_clause_order(p: P) -> None:
    """clause : ORDER BY order_keys"""
    p[0] = Clause("ORDER BY", tuple(p[3]), span(p))


def p_clause_with(p: P) -> None:
    """clause : WITH LPAREN options RPAREN"""
    seen: set[str] = set()
    for option in p[3]:
        if option.name in seen:
            raise p.lexer.error_at(f"the option {option.name} is given twice", option.span, code="UQL104")
        seen.add(option.name)
    p[0] = Clause("WITH", tuple(p[3]), span(p))


def p_group_key(p: P) -> None:
    """group_key : grouped
    | grouped AS identifier"""
    expr, into, many = p[1]
    p[0] = ast.GroupKey(expr, p[3] if len(p) == 4 else None, into, many, span=span(p))


def p_grouped(p: P) -> None:
    """grouped : expr
    | expr MANY"""
    p[0] = (p[1], None, len(p) == 3)


def p_grouped_into(p: P) -> None:
    """grouped : expr INTO NUMBER
    | expr INTO NUMBER MANY"""
    p[0] = (p[1], whole_number(p, 3), len(p) == 5)


def p_option(p: P) -> None:
    """option : NAME
    | NAME EQUALS constant"""
    p[0] = ast.Option(lower(p[1]), p[3] if len(p) == 4 else True, span=span(p))


def p_constant(p: P) -> None:
    """constant : STRING
    | QUOTED"""
    p[0] = p[1]


def p_constant_word(p: P) -> None:
    """constant : NAME"""
    p[0] = {"on": True, "off": False}.get(p[1].lower(), p[1])


def p_constant_on(p: P) -> None:
    """constant : ON"""
    p[0] = True


def p_constant_boolean(p: P) -> None:
    """constant : boolean"""
    p[0] = p[1].value


def p_constant_null(p: P) -> None:
    """constant : NULL"""
    p[0] = None


def p_constant_number(p: P) -> None:
    """constant : NUMBER
    | MINUS NUMBER
    | PLUS NUMBER"""
    text = p[len(p) - 1]
    value: int | float
    if text.isdigit():
        value = whole_number(p, len(p) - 1)
    else:
        value = float(text)
        if value == float("inf"):
            raise p.lexer.error_at(f"{text} is too large", span(p))
    p[0] = -value if p[1] == "-" else value


def p_constant_list(p: P) -> None:
    """constant : LBRACKET RBRACKET
    | LBRACKET constants RBRACKET"""
    p[0] = tuple(p[2]) if len(p) == 4 else ()


def p_constants(p: P) -> None:
    """constants : word
    | constants COMMA word"""
    append(p)


def p_word(p: P) -> None:
    """word : STRING
    | QUOTED
    | NAME
    | NUMBER"""
    p[0] = p[1]


# --------------------------------------------------------------------------------------------------------------- sources
def p_sources(p: P) -> None:
    """sources : source
    | sources COMMA source"""
    p[0] = p[1] if len(p) == 2 else ast.Join("CROSS", p[1], p[3], span=span(p))


def p_source(p: P) -> None:
    """source : table
    | joined"""
    p[0] = p[1]


def p_join_cross(p: P) -> None:
    """joined : source CROSS JOIN table"""
    p[0] = ast.Join("CROSS", p[1], p[4], span=span(p))


def p_join_on(p: P) -> None:
    """joined : source JOIN table ON expr
    | source kind JOIN table ON expr"""
    n = len(p)
    p[0] = ast.Join("INNER" if n == 6 else p[2], p[1], p[n - 3], p[n - 1], span=span(p))


def p_join_using(p: P) -> None:
    """joined : source JOIN table USING LPAREN identifiers RPAREN
    | source kind JOIN table USING LPAREN identifiers RPAREN"""
    n = len(p)
    p[0] = ast.Join("INNER" if n == 8 else p[2], p[1], p[n - 5], using=tuple(p[n - 2]), span=span(p))


def p_kind(p: P) -> None:
    """kind : INNER
    | LEFT
    | LEFT OUTER
    | RIGHT
    | RIGHT OUTER
    | FULL
    | FULL OUTER
    | SEMI
    | ANTI"""
    p[0] = p[1].upper()


def p_table_in_parentheses(p: P) -> None:
    """table : LPAREN joined RPAREN"""
    p[0] = p[2]


def p_table(p: P) -> None:
    """table : dotted
    | dotted NAME
    | dotted AS identifier"""
    p[0] = ast.TableName(p[1], _alias(p), span=span(p))


def p_table_file(p: P) -> None:
    """table : STRING
    | STRING NAME
    | STRING AS identifier"""
    p[0] = ast.TableName((p[1],), _alias(p), file=True, span=span(p))


def p_table_query(p: P) -> None:
    """table : subquery
    | subquery NAME
    | subquery AS identifier"""
    p[0] = ast.Derived(p[1], _alias(p), span=span(p))


def p_table_function(p: P) -> None:
    """table : function
    | function NAME
    | function AS identifier"""
    p[0] = ast.TableFunction(p[1], _alias(p), span=span(p))


def p_function(p: P) -> None:
    """function : dotted LPAREN RPAREN
    | dotted LPAREN expressions RPAREN"""
    p[0] = ast.Call(lower(".".join(p[1])), tuple(p[3]) if len(p) == 5 else (), span=span(p))


def _alias(p: P) -> str | None:
    return p[len(p) - 1] if len(p) > 2 else None

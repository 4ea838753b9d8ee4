"""The grammar of expressions: one short function a production, its docstring the grammar (so never `python -OO`).

No production is empty, so that `p.lexspan(0)` is the exact place of a node. AND and OR of many terms are built balanced.
"""

from __future__ import annotations

from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.syntax import Expr, Span

CHAIN = 16
"""An AND or OR of more terms than this is built as a balanced tree: no later stage recurses once a term."""

P = Any  # ply.yacc.YaccProduction: p[i] is the value of the i-th symbol


def span(p: P, first: int = 0, last: int | None = None) -> Span:
    """The place of symbols first … last of a production; of the whole one when only `p` is given."""
    start, end = p.lexspan(first)
    return Span(start, end if last is None else p.lexspan(last)[1])


def lower(name: str) -> str:
    """ASCII names ignore case; others keep it, since lower case may have other letters."""
    return name.lower() if name.isascii() else name


def upper(name: str) -> str:
    return name.upper() if name.isascii() else name


def as_string(node: Expr) -> Expr:
    """A plain double-quoted text in the place of a string is that string, as in the paper."""
    if isinstance(node, ast.Quoted) and not node.forced and not node.using:
        return ast.String(node.text, double=True, span=node.span)
    return node


def chain(op: str, terms: list[tuple[Expr, Span]]) -> Expr:
    """Join terms by AND or OR: left-deep up to CHAIN terms, else balanced."""
    if len(terms) > CHAIN:
        middle = len(terms) // 2
        halves = [terms[:middle], terms[middle:]]
        terms = [(chain(op, half), Span(half[0][1].start, half[-1][1].end)) for half in halves]
    node, place = terms[0]
    for term, end in terms[1:]:
        place = Span(place.start, end.end)
        node = ast.Binary(op, node, term, span=place)
    return node


# ------------------------------------------------------------------------------------------------------ truth and tests
def p_expr(p: P) -> None:
    """expr : or_terms"""
    p[0] = chain("OR", p[1])


def p_or_terms(p: P) -> None:
    """or_terms : conjunction
    | or_terms OR conjunction"""
    _add_term(p)


def p_conjunction(p: P) -> None:
    """conjunction : and_terms"""
    p[0] = chain("AND", p[1])


def p_and_terms(p: P) -> None:
    """and_terms : negation
    | and_terms AND negation"""
    _add_term(p)


def _add_term(p: P) -> None:
    terms = [] if len(p) == 2 else p[1]
    terms.append((p[len(p) - 1], span(p, len(p) - 1)))
    p[0] = terms


def p_negation(p: P) -> None:
    """negation : NOT negation"""
    p[0] = ast.Unary("NOT", p[2], span=span(p))


def p_same(p: P) -> None:
    """negation : test
    test : comparison
    comparison : range
    range : concat
    concat : sum
    sum : product
    product : unary
    unary : postfix
    postfix : primary
    primary : text
            | call
            | literal"""
    p[0] = p[1]


def p_is_null(p: P) -> None:
    """test : test IS NULL
    | test IS NOT NULL"""
    p[0] = ast.IsNull(p[1], negated=len(p) == 5, span=span(p))


def p_is_boolean(p: P) -> None:
    """test : test IS boolean
    | test IS NOT boolean"""
    p[0] = ast.IsDistinct(p[1], p[len(p) - 1], negated=len(p) == 5, op="IS", span=span(p))


def p_is_distinct(p: P) -> None:
    """test : test IS DISTINCT FROM comparison
    | test IS NOT DISTINCT FROM comparison"""
    p[0] = ast.IsDistinct(p[1], p[len(p) - 1], negated=len(p) == 7, span=span(p))


def p_comparison(p: P) -> None:
    """comparison : comparison EQUALS range
    | comparison COMPARE range"""
    p[0] = ast.Binary(p[2], p[1], as_string(p[3]), span=span(p))


def p_in_list(p: P) -> None:
    """range : range IN LPAREN expressions RPAREN
    | range NOT IN LPAREN expressions RPAREN"""
    items = tuple(as_string(item) for item in p[len(p) - 2])
    p[0] = ast.InList(p[1], items, negated=len(p) == 7, span=span(p))


def p_in_query(p: P) -> None:
    """range : range IN subquery
    | range NOT IN subquery"""
    p[0] = ast.InQuery(p[1], p[len(p) - 1], negated=len(p) == 5, span=span(p))


def p_between(p: P) -> None:
    """range : range BETWEEN concat AND concat
    | range NOT BETWEEN concat AND concat"""
    low, high = as_string(p[len(p) - 3]), as_string(p[len(p) - 1])
    p[0] = ast.Between(p[1], low, high, negated=len(p) == 7, span=span(p))


def p_like(p: P) -> None:
    """range : range like concat
    | range NOT like concat"""
    p[0] = ast.Like(p[1], as_string(p[len(p) - 1]), p[len(p) - 2], negated=len(p) == 5, span=span(p))


def p_like_escape(p: P) -> None:
    """range : range like concat ESCAPE concat
    | range NOT like concat ESCAPE concat"""
    pattern, escape = as_string(p[len(p) - 3]), as_string(p[len(p) - 1])
    p[0] = ast.Like(p[1], pattern, p[len(p) - 4], negated=len(p) == 7, escape=escape, span=span(p))


def p_like_word(p: P) -> None:
    """like : LIKE
    | ILIKE"""
    p[0] = p[1].upper()


# ----------------------------------------------------------------------------------------------------------- arithmetic
def p_arithmetic(p: P) -> None:
    """concat : concat CONCAT sum
    sum : sum PLUS product
        | sum MINUS product
    product : product STAR unary
            | product SLASH unary"""
    p[0] = ast.Binary(p[2], p[1], p[3], span=span(p))


def p_unary(p: P) -> None:
    """unary : MINUS unary
    | PLUS unary"""
    p[0] = ast.Unary(p[1], p[2], span=span(p))


def p_cast_postfix(p: P) -> None:
    """postfix : postfix DCOLON type"""
    p[0] = ast.Cast(p[1], p[3], span=span(p))


# ------------------------------------------------------------------------------------------------------------- primaries
def p_parentheses(p: P) -> None:
    """primary : LPAREN expr RPAREN"""
    p[0] = p[2]


def p_scalar_query(p: P) -> None:
    """primary : subquery %prec SCALAR"""
    p[0] = ast.ScalarQuery(p[1], span=span(p))


def p_exists(p: P) -> None:
    """primary : EXISTS subquery"""
    p[0] = ast.Exists(p[2], span=span(p))


def p_name(p: P) -> None:
    """primary : path"""
    p[0] = ast.Name(p[1], span=span(p))


def p_path(p: P) -> None:
    """path : NAME"""
    p[0] = (p[1],)


def p_path_dotted(p: P) -> None:
    """path : path DOT identifier"""
    p[0] = (*p[1], p[3])


def p_path_quoted(p: P) -> None:
    """path : QUOTED DOT identifier"""
    p[0] = (p[1], p[3])


def p_identifier(p: P) -> None:
    """identifier : NAME
    | QUOTED"""
    p[0] = p[1]


def p_list(p: P) -> None:
    """primary : LBRACKET RBRACKET
    | LBRACKET expressions RBRACKET"""
    p[0] = ast.ListExpr(tuple(p[2]) if len(p) == 4 else (), span=span(p))


def p_expressions(p: P) -> None:
    """expressions : expr
    | expressions COMMA expr"""
    append(p)


def append(p: P) -> None:
    """A list that grows by its last symbol, in place: long lists stay linear."""
    items = [] if len(p) == 2 else p[1]
    items.append(p[len(p) - 1])
    p[0] = items


# ---------------------------------------------------------------------------------------------------------------- texts
def p_text(p: P) -> None:
    """text : QUOTED"""
    p[0] = ast.Quoted(p[1], span=span(p))


def p_text_forced(p: P) -> None:
    """text : PROMPT QUOTED"""
    p[0] = ast.Quoted(p[2], forced=True, span=span(p))


def p_text_using(p: P) -> None:
    """text : QUOTED USING LPAREN columns RPAREN"""
    p[0] = ast.Quoted(p[1], tuple(p[4]), span=span(p))


def p_text_forced_using(p: P) -> None:
    """text : PROMPT QUOTED USING LPAREN columns RPAREN"""
    p[0] = ast.Quoted(p[2], tuple(p[5]), forced=True, span=span(p))


def p_try(p: P) -> None:
    """primary : TRY tried"""
    p[0] = ast.Try(p[2], span=span(p))


def p_tried(p: P) -> None:
    """tried : text %prec TRY"""
    p[0] = p[1]


def p_tried_cast(p: P) -> None:
    """tried : text DCOLON type"""
    p[0] = ast.Cast(p[1], p[3], span=span(p))


def p_columns(p: P) -> None:
    """columns : column
    | columns COMMA column"""
    append(p)


def p_column(p: P) -> None:
    """column : dotted"""
    p[0] = ast.Name(p[1], span=span(p))


def p_dotted(p: P) -> None:
    """dotted : identifier
    | dotted DOT identifier"""
    p[0] = (p[1],) if len(p) == 2 else (*p[1], p[3])


# -------------------------------------------------------------------------------------------------------------- literals
def p_number(p: P) -> None:
    """literal : NUMBER"""
    p[0] = ast.Number(p[1], span=span(p))


def p_string(p: P) -> None:
    """literal : STRING"""
    p[0] = ast.String(p[1], span=span(p))


def p_parameter(p: P) -> None:
    """literal : PARAMETER"""
    p[0] = ast.Parameter(p[1], span=span(p))


def p_null(p: P) -> None:
    """literal : NULL"""
    p[0] = ast.Null(span=span(p))


def p_literal_boolean(p: P) -> None:
    """literal : boolean"""
    p[0] = p[1]


def p_boolean(p: P) -> None:
    """boolean : TRUE
    | FALSE"""
    p[0] = ast.Boolean(p[1].upper() == "TRUE", span=span(p))


def p_typed(p: P) -> None:
    """literal : TEMPORAL STRING
    | INTERVAL STRING"""
    p[0] = ast.TypedLiteral(p[1].upper(), p[2], span=span(p))


def p_interval(p: P) -> None:
    """literal : INTERVAL STRING UNIT
    | INTERVAL NUMBER UNIT"""
    p[0] = ast.TypedLiteral("INTERVAL", f"{p[2]} {p[3].upper()}", span=span(p))


# ------------------------------------------------------------------------------------------------------- CASE, CAST, types
def p_case(p: P) -> None:
    """primary : CASE whens END
    | CASE whens ELSE expr END"""
    p[0] = ast.Case(None, tuple(p[2]), p[4] if len(p) == 6 else None, span=span(p))


def p_case_operand(p: P) -> None:
    """primary : CASE expr whens END
    | CASE expr whens ELSE expr END"""
    p[0] = ast.Case(p[2], tuple(p[3]), p[5] if len(p) == 7 else None, span=span(p))


def p_whens(p: P) -> None:
    """whens : when
    | whens when"""
    append(p)


def p_when(p: P) -> None:
    """when : WHEN expr THEN expr"""
    p[0] = ast.When(p[2], p[4], span=span(p))


def p_cast(p: P) -> None:
    """primary : CAST LPAREN expr AS type RPAREN
    | TRY_CAST LPAREN expr AS type RPAREN"""
    p[0] = ast.Cast(p[3], p[5], lenient=p[1].upper() == "TRY_CAST", span=span(p))


def p_type(p: P) -> None:
    """type : NAME
    | NAME WITH_TIME_ZONE"""
    p[0] = ast.TypeName(upper(p[1]) + (" WITH TIME ZONE" if len(p) == 3 else ""), span=span(p))


def p_type_sizes(p: P) -> None:
    """type : NAME LPAREN sizes RPAREN"""
    p[0] = ast.TypeName(upper(p[1]), sizes=tuple(p[3]), span=span(p))


def p_type_labels(p: P) -> None:
    """type : NAME LPAREN labels RPAREN"""
    p[0] = ast.TypeName(upper(p[1]), labels=tuple(p[3]), span=span(p))


def p_type_fields(p: P) -> None:
    """type : NAME LPAREN fields RPAREN"""
    p[0] = ast.TypeName(upper(p[1]), fields=tuple(p[3]), span=span(p))


def p_type_list(p: P) -> None:
    """type : type LBRACKET RBRACKET"""
    inner = p[1]
    p[0] = ast.TypeName(inner.name, inner.sizes, inner.labels, inner.fields, dims=inner.dims + 1, span=span(p))


def p_type_parts(p: P) -> None:
    """sizes : size
           | sizes COMMA size
    labels : label
           | labels COMMA label
    fields : field
           | fields COMMA field"""
    append(p)


def p_size(p: P) -> None:
    """size : NUMBER"""
    p[0] = whole_number(p, 1)


def p_label(p: P) -> None:
    """label : STRING
    | QUOTED"""
    p[0] = p[1]


def p_field(p: P) -> None:
    """field : identifier type"""
    p[0] = (p[1], p[2])


def whole_number(p: P, i: int) -> int:
    """The integer that symbol i says. Raises UQLSyntaxError for 1.5 and for numbers of more than 18 digits."""
    text: str = p[i]
    if not text.isdigit() or len(text) > 18:
        raise p.lexer.error_at(f"{text} is not a whole number of at most 18 digits", span(p, i))
    return int(text)


# ------------------------------------------------------------------------------------------------------------------ calls
def p_call_same(p: P) -> None:
    """call : filtered
    filtered : plain_call"""
    p[0] = p[1]


def make_call(p: P, args: tuple[Expr, ...], **rest: Any) -> ast.Call:
    return ast.Call(lower(".".join(p[1])), args, span=span(p), **rest)


def p_call_empty(p: P) -> None:
    """plain_call : path LPAREN RPAREN"""
    p[0] = make_call(p, ())


def p_call_star(p: P) -> None:
    """plain_call : path LPAREN star RPAREN"""
    p[0] = make_call(p, (p[3],))


def p_call(p: P) -> None:
    """plain_call : path LPAREN expressions RPAREN
    | path LPAREN DISTINCT expressions RPAREN"""
    p[0] = make_call(p, tuple(p[len(p) - 2]), distinct=len(p) == 6)


def p_call_ordered(p: P) -> None:
    """plain_call : path LPAREN expressions ORDER BY order_keys RPAREN
    | path LPAREN DISTINCT expressions ORDER BY order_keys RPAREN"""
    n = len(p)
    p[0] = make_call(p, tuple(p[n - 5]), distinct=n == 9, order_by=tuple(p[n - 2]))


def p_call_filter(p: P) -> None:
    """filtered : plain_call FILTER LPAREN WHERE expr RPAREN"""
    p[0] = _with(p[1], span(p), filter=p[5])


def p_call_over(p: P) -> None:
    """call : filtered OVER LPAREN RPAREN
    | filtered OVER LPAREN window RPAREN"""
    window = p[4] if len(p) == 6 else ast.Window(span=span(p, 3, 4))
    p[0] = _with(p[1], span(p), over=window)


def _with(call: ast.Call, place: Span, *, filter: Expr | None = None, over: ast.Window | None = None) -> ast.Call:
    return ast.Call(
        call.name, call.args, call.distinct, call.order_by, filter or call.filter, over or call.over, span=place
    )


def p_window(p: P) -> None:
    """window : PARTITION BY expressions
    | PARTITION BY expressions ORDER BY order_keys"""
    p[0] = ast.Window(tuple(p[3]), tuple(p[6]) if len(p) == 7 else (), span=span(p))


def p_window_ordered(p: P) -> None:
    """window : ORDER BY order_keys"""
    p[0] = ast.Window((), tuple(p[3]), span=span(p))


def p_star(p: P) -> None:
    """star : STAR"""
    p[0] = ast.Star(span=span(p))


def p_star_of(p: P) -> None:
    """star : path DOT STAR"""
    if len(p[1]) > 1:
        raise p.lexer.error_at("only one name may stand before .*", span(p, 1))
    p[0] = ast.Star(p[1][0], span=span(p))


def p_star_of_quoted(p: P) -> None:
    """star : QUOTED DOT STAR"""
    p[0] = ast.Star(p[1], span=span(p))


def p_order_keys(p: P) -> None:
    """order_keys : order_key
    | order_keys COMMA order_key"""
    append(p)


def p_order_key(p: P) -> None:
    """order_key : directed
    | directed NULLS FIRST
    | directed NULLS LAST"""
    expr, descending = p[1]
    p[0] = ast.OrderKey(expr, descending, p[3].upper() if len(p) == 4 else None, span=span(p))


def p_directed(p: P) -> None:
    """directed : expr
    | expr ASC
    | expr DESC"""
    p[0] = (p[1], len(p) == 3 and p[2].upper() == "DESC")

"""The grammar of expressions: a table of productions with what each makes; a longer one is a function, its docstring the grammar.

So never `python -OO`.

No production is empty, so that `p.lexspan(0)` is the exact place of a node; `grammar.py` gives it to what a
production makes. AND and OR of many terms are built balanced.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.lexer import UNITS
from uql.compiler.syntax import Expr, Node, Span
from uql.compiler.walk import children, rewrite, walk

CHAIN = 16
"""An AND or OR of more terms than this is built as a balanced tree: no later stage recurses once a term."""
_PARTED = ("SECOND", "SECONDS", "MILLISECOND", "MILLISECONDS")
"""Units of which DuckDB takes a part; of the others it takes whole ones: INTERVAL 1.5 DAY is one day."""

P = Any  # ply.yacc.YaccProduction: p[i] is the value of the i-th symbol
Rules = dict[str, Callable[[P], Any]]  # "name : SYMBOL symbol | SYMBOL" → what it makes


def span(p: P, first: int = 0, last: int | None = None) -> Span:
    """The place of symbols first … last of a production; of the whole one when only `p` is given.

    Args:
        first, last: positions in the production, 0 the whole, 1 its first symbol.
    """
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


def p_expressions_same(p: P) -> None:
    """expr : disjunction
    pasted : bits
    negation : test
    test : comparison
    comparison : range
    range : concat
    concat : bits
    bits : turned
    turned : sum
           | turned_sum
    turned_sum : turned_product
    turned_product : turned_power
    turned_power : turned_factor
    sum : product
    product : power
    power : placed
    placed : unary
    unary : postfix
    postfix : primary
            | subscript
    primary : text
            | call
            | literal
    element : expr
    identifier : NAME
               | QUOTED
    tried : text %prec TRY
    literal : boolean
            | string"""
    p.slice[0].value = p.slice[1].value


RULES: Rules = {
    # truth and tests
    "argument : element": lambda p: _as_lambda(p[1], span(p).start),
    "concat : concat ARROW pasted %prec PASTED | concat TEXT_ARROW bits": lambda p: ast.Binary(
        p[2], p[1], as_string(p[3])
    ),
    "argument : concat ARROW negated": lambda p: _as_lambda(ast.Binary("->", p[1], p[3], span=span(p)), span(p).start),
    "negated : denied | negated OR conjunction": lambda p: p[1] if len(p) == 2 else ast.Binary("OR", p[1], p[3]),
    "denied : NOT negation | denied AND negation": lambda p: (
        ast.Unary("NOT", p[2]) if len(p) == 3 else ast.Binary("AND", p[1], p[3])
    ),
    "pasted : pasted CONCAT bits": lambda p: _concat(p),
    "concat : concat CONCAT bits": lambda p: _concat(p),
    "expr : LAMBDA identifiers COLON expr": lambda p: ast.Lambda(tuple(p[2]), p[4]),
    "or_terms : conjunction | or_terms OR conjunction": lambda p: _with_term(p),
    "and_terms : negation | and_terms AND negation": lambda p: _with_term(p),
    "disjunction : or_terms": lambda p: chain("OR", p[1]),
    "conjunction : and_terms": lambda p: chain("AND", p[1]),
    "negation : NOT negation": lambda p: ast.Unary("NOT", p[2]),
    "test : test IS NULL | test IS NOT NULL": lambda p: ast.IsNull(p[1], negated=len(p) == 5),
    "test : test ISNULL | test NOTNULL": lambda p: ast.IsNull(p[1], negated=p.slice[2].type == "NOTNULL"),
    "test : test IS boolean | test IS NOT boolean": lambda p: ast.IsDistinct(
        p[1], p[len(p) - 1], negated=len(p) == 5, op="IS"
    ),
    "test : test IS DISTINCT FROM comparison | test IS NOT DISTINCT FROM comparison": lambda p: ast.IsDistinct(
        p[1], p[len(p) - 1], negated=len(p) == 7
    ),
    "comparison : comparison EQUALS range | comparison COMPARE range": lambda p: ast.Binary(
        p[2], p[1], as_string(p[3])
    ),
    "quantifier : ANY | ALL": lambda p: "ALL" if p[1].upper() == "ALL" else "ANY",
    "range : range IN rows | range NOT IN rows": lambda p: ast.InQuery(p[1], p[len(p) - 1], negated=len(p) == 5),
    "range : range like concat | range NOT like concat | starred like concat | starred NOT like concat": lambda p: (
        ast.Like(p[1], as_string(p[len(p) - 1]), p[len(p) - 2], negated=len(p) == 5)
    ),
    "range : range like concat ESCAPE concat | starred like concat ESCAPE concat": lambda p: ast.Like(
        p[1], as_string(p[3]), p[2], escape=as_string(p[5])
    ),
    "range : range NOT like concat ESCAPE concat | starred NOT like concat ESCAPE concat": lambda p: ast.Like(
        p[1], as_string(p[4]), p[3], True, as_string(p[6])
    ),
    "range : starred SIMILAR TO concat | starred NOT SIMILAR TO concat": lambda p: ast.Like(
        p[1], as_string(p[len(p) - 1]), "SIMILAR TO", negated=len(p) == 6
    ),
    "range : range BETWEEN concat AND concat": lambda p: ast.Between(p[1], as_string(p[3]), as_string(p[5])),
    "range : range NOT BETWEEN concat AND concat": lambda p: ast.Between(p[1], as_string(p[4]), as_string(p[6]), True),
    "range : range IN list": lambda p: _contains(p),
    "range : range NOT IN list": lambda p: ast.Unary("NOT", _contains(p)),
    "list : path": lambda p: ast.Name(p[1]),
    "list : call": lambda p: p[1],
    "list : list DCOLON type | text DCOLON type": lambda p: ast.Cast(p[1], p[3]),
    "range : range IN PARAMETER": lambda p: ast.InList(p[1], (ast.Parameter(p[3], span=span(p, 3)),)),
    "range : range NOT IN PARAMETER": lambda p: ast.InList(p[1], (ast.Parameter(p[4], span=span(p, 4)),), True),
    "range : range SIMILAR TO concat": lambda p: _matches_whole(p),
    "range : range NOT SIMILAR TO concat": lambda p: ast.Unary("NOT", _matches_whole(p)),
    "like : LIKE | ILIKE | GLOB": lambda p: p[1].upper(),
    # arithmetic
    "turned_factor : TILDE turned | MINUS turned_factor | PLUS turned_factor": lambda p: ast.Unary(p[1], p[2]),
    "placed : placed AT_TIME_ZONE unary": lambda p: ast.Call("timezone", (as_string(p[3]), p[1])),
    "placed : placed COLLATE dotted": lambda p: ast.Binary("COLLATE", p[1], ast.String(".".join(p[3]))),
    "unary : MINUS unary | PLUS unary": lambda p: ast.Unary(p[1], p[2]),
    "subscript : postfix LBRACKET expr RBRACKET": lambda p: ast.Subscript(p[1], p[3]),
    "postfix : postfix DCOLON type": lambda p: ast.Cast(p[1], p[3]),
    # primaries
    "primary : LPAREN expr RPAREN %prec IN_PARENTHESES": lambda p: p[2],
    "primary : POSITION": lambda p: ast.Position(p[1]),
    "primary : LPAREN expr COMMA expressions RPAREN": lambda p: ast.Call("row", (p[2], *p[4])),
    "primary : ARRAY subquery": lambda p: ast.Quantified(p[2], "ARRAY"),
    "primary : subquery %prec SCALAR": lambda p: ast.ScalarQuery(p[1]),
    "primary : EXISTS subquery": lambda p: ast.Exists(p[2]),
    "primary : path": lambda p: ast.Name(p[1]),
    "element : STAR plain_call": lambda p: ast.Unary("*", p[2]),
    "member : identifier %prec DOTTED": lambda p: ("struct_extract", (ast.String(p[1]),)),
    "member : identifier LPAREN RPAREN | identifier LPAREN arguments RPAREN": lambda p: (
        lower(p[1]),
        tuple(p[3]) if len(p) == 5 else (),
    ),
    "path : NAME": lambda p: (p[1],),
    "path : path DOT identifier": lambda p: (*p[1], p[3]),
    "path : QUOTED DOT identifier": lambda p: (p[1], p[3]),
    "bracketed : LBRACKET RBRACKET | LBRACKET expressions RBRACKET | ARRAY LBRACKET expressions RBRACKET": lambda p: (
        ast.ListExpr(tuple(p[len(p) - 2]) if len(p) > 3 else ())
    ),
    # texts
    "text : QUOTED": lambda p: ast.Quoted(p[1]),
    "text : PROMPT QUOTED": lambda p: ast.Quoted(p[2], forced=True),
    "text : QUOTED USING LPAREN columns RPAREN": lambda p: ast.Quoted(p[1], tuple(p[4])),
    "text : PROMPT QUOTED USING LPAREN columns RPAREN": lambda p: ast.Quoted(p[2], tuple(p[5]), forced=True),
    "primary : TRY tried": lambda p: ast.Try(p[2]),
    "tried : text DCOLON type": lambda p: ast.Cast(p[1], p[3]),
    "column : dotted": lambda p: ast.Name(p[1]),
    "dotted : identifier | dotted DOT identifier": lambda p: (p[1],) if len(p) == 2 else (*p[1], p[3]),
    # literals
    "literal : NUMBER": lambda p: ast.Number(p[1]),
    "string : STRING": lambda p: ast.String(p[1]),
    "literal : HEX": lambda p: ast.TypedLiteral(*p[1]),
    "literal : PARAMETER": lambda p: ast.Parameter(p[1]),
    "literal : NULL": lambda p: ast.Null(),
    "boolean : TRUE | FALSE": lambda p: ast.Boolean(p[1].upper() == "TRUE"),
    "literal : INTERVAL STRING UNIT | INTERVAL NUMBER UNIT": lambda p: ast.TypedLiteral(
        "INTERVAL", f"{p[2] if p[3].upper() in _PARTED else _whole(p[2])} {p[3].upper()}"
    ),
}
"""Productions, and what each makes of its symbols; those that need more than one expression are functions."""


# ------------------------------------------------------------------------------------------------------ truth and tests
def _as_lambda(argument: Expr, start: int) -> Expr:
    """x -> body and (x, y) -> body as an argument of a call; any other as it is.

    Where the arrow takes a field of JSON, what stands behind it names no column: j -> 'name', j -> 0 ->> 'name'.
    """
    above: Node | None = None
    first: Node | None = argument if argument.span.start == start else None  # else it stands in parentheses
    while first is not None and not _begins_lambda(first):
        above, first = first, next((part for part in children(first) if part.span.start == start), None)
    if not isinstance(first, ast.Binary):
        return argument
    right = first.right
    if not any(isinstance(part, ast.Name) for part in walk(right)) and (above is None or _is_arrow(above)):
        return argument
    names = first.left.args if isinstance(first.left, ast.Call) else (first.left,)
    body = rewrite(argument, lambda part: right if part is first else part)
    return ast.Lambda(tuple(name.parts[0] for name in names if isinstance(name, ast.Name)), body)


def _is_arrow(node: Node) -> bool:
    return isinstance(node, ast.Binary) and node.op in ("->", "->>")


def _begins_lambda(node: Node) -> bool:
    """Is it x -> … or (x, y) -> …?"""
    if not isinstance(node, ast.Binary) or node.op != "->":
        return False
    names = node.left.args if isinstance(node.left, ast.Call) and node.left.name == "row" else (node.left,)
    return all(isinstance(name, ast.Name) and len(name.parts) == 1 for name in names)


def _with_term(p: P) -> list[tuple[Expr, Span]]:
    terms = [] if len(p) == 2 else p[1]
    terms.append((p[len(p) - 1], span(p, len(p) - 1)))
    return terms


def _contains(p: P) -> Expr:
    """x IN y, y a value."""
    return ast.Call("list_contains", (p[len(p) - 1], p[1]), span=span(p))


def _matches_whole(p: P) -> Expr:
    """x SIMILAR TO y"""
    return ast.Call("regexp_full_match", (p[1], as_string(p[len(p) - 1])))


def p_in_list(p: P) -> None:
    """range : range IN LPAREN expressions RPAREN
    | range NOT IN LPAREN expressions RPAREN
    | range IN LBRACKET expressions RBRACKET
    | range NOT IN LBRACKET expressions RBRACKET"""
    items = tuple(as_string(item) for item in p[len(p) - 2])
    p[0] = ast.InList(p[1], items, negated=len(p) == 7)


def p_quantified(p: P) -> None:
    """comparison : comparison EQUALS quantifier subquery
    | comparison COMPARE quantifier subquery"""
    if (p[2], p[3]) in (("=", "ANY"), ("<>", "ALL")):
        p[0] = ast.InQuery(p[1], p[4], negated=p[3] == "ALL")
    else:
        p[0] = ast.Quantified(p[4], p[3], p[2], p[1])


def p_quantified_list(p: P) -> None:
    """comparison : comparison EQUALS quantifier LPAREN LBRACKET expressions RBRACKET RPAREN
    | comparison COMPARE quantifier LPAREN LBRACKET expressions RBRACKET RPAREN"""
    if (p[2], p[3]) in (("=", "ANY"), ("<>", "ALL")):
        items = tuple(as_string(item) for item in p[6])
        p[0] = ast.InList(p[1], items, negated=p[3] == "ALL")
        return
    item = ast.SelectItem(ast.Call("unnest", (ast.ListExpr(tuple(p[6]), span=span(p, 5, 7)),)), span=span(p, 5, 7))
    p[0] = ast.Quantified(ast.Select((item,), span=span(p, 4, 8)), p[3], p[2], p[1])


_LIKE = {"~~": "LIKE", "~~*": "ILIKE", "~~~": "GLOB"}
"""Operators that are LIKE by another name. What ~ and ~* match is up to DuckDB: a part of the text since 2.0, before that all of it."""


def p_matches(p: P) -> None:
    """range : range MATCHES concat
    | range TILDE concat
    | starred MATCHES concat
    | starred TILDE concat"""
    negated, op = p[2].startswith("!"), p[2].lstrip("!")
    p[0] = ast.Like(p[1], as_string(p[3]), _LIKE.get(op, op), negated=negated)


# ----------------------------------------------------------------------------------------------------------- arithmetic
def p_arithmetic(p: P) -> None:
    """bits : bits BITS turned
    sum : sum PLUS product
        | sum MINUS product
    product : product STAR power
            | product SLASH power
    power : power POWER placed
    turned_sum : sum PLUS turned_product
               | sum MINUS turned_product
    turned_product : product STAR turned_power
                   | product SLASH turned_power
    turned_power : power POWER turned_factor"""  # a ~ takes the whole sum behind it: 2 * ~x + 1 is 2 * ~(x + 1)
    p[0] = ast.Binary(p[2], p[1], p[3])


OF_LISTS = {"&&": "list_has_any", "@>": "list_has_all", "<@": "list_has_all", "^@": "starts_with"}
"""Operators that are functions by another name; of <@ the sides are exchanged."""


def _concat(p: P) -> Expr:
    if p[2] == "&&" and isinstance(p[1], ast.Quoted) and isinstance(p[3], ast.Quoted):
        raise p.lexer.error_at("&& is an operator on lists", span(p, 2), help="write AND")
    op, left, right = p[2], p[1], as_string(p[3]) if p[2] == "^@" else p[3]
    sides = (right, left) if op == "<@" else (left, right)
    return ast.Call(OF_LISTS[op], sides) if op in OF_LISTS else ast.Binary(op, *sides)


def p_slice(p: P) -> None:
    """postfix : postfix LBRACKET COLON RBRACKET
    | postfix LBRACKET expr COLON RBRACKET
    | postfix LBRACKET COLON expr RBRACKET
    | postfix LBRACKET expr COLON expr RBRACKET
    | postfix LBRACKET COLON expr COLON expr RBRACKET
    | postfix LBRACKET expr COLON expr COLON expr RBRACKET"""
    colon = 3 if p.slice[3].type == "COLON" else 4
    low, *bounds = (None if colon == 3 else p[3], *(p[i] for i in range(colon + 1, len(p) - 1, 2)))
    high, step = (*bounds, None, None)[:2]
    p[0] = ast.Subscript(p[1], low, high, step, slice=True)


# ------------------------------------------------------------------------------------------------------------- primaries
def p_part(p: P) -> None:
    """primary : part
    | struct
    | bracketed
    part : LPAREN expr RPAREN DOT member
    | struct DOT member
    | bracketed DOT member
    | string DOT member
    | subscript DOT member
    | part DOT member"""
    if len(p) == 2:
        p[0] = p[1]
    else:
        operand, (name, args) = p[1] if len(p) == 4 else p[2], p[len(p) - 1]
        p[0] = ast.Call(name, (operand, *args))


def p_struct(p: P) -> None:
    """struct : LBRACE entries RBRACE"""
    fields = []
    for key, value in p[2]:
        name = as_string(key)
        if isinstance(name, ast.Name) and len(name.parts) == 1:  # {a: 1}, as DuckDB has it
            fields.append(ast.Named(name.parts[0], value))
        elif isinstance(name, ast.String):
            fields.append(ast.Named(name.value, value))
        else:
            raise p.lexer.error_at("the names of a struct are strings", span(p), help="as in {'a': 1, 'b': x}")
    p[0] = ast.Call("struct_pack", tuple(fields))


def p_map(p: P) -> None:
    """primary : MAP LBRACE RBRACE
    | MAP LBRACE entries RBRACE"""
    entries = p[3] if len(p) == 5 else []
    keys, values = tuple(key for key, _ in entries), tuple(value for _, value in entries)
    p[0] = ast.Call("map", (ast.ListExpr(keys), ast.ListExpr(values)))


def p_expressions_lists(p: P) -> None:
    """entries : entry
            | entries COMMA entry
    columns : column
            | columns COMMA column"""
    append(p)


def p_entry(p: P) -> None:
    """entry : expr COLON expr"""
    p[0] = (p[1], p[3])


def p_comprehension(p: P) -> None:
    """primary : LBRACKET expr FOR identifiers IN sum RBRACKET
    | LBRACKET expr FOR identifiers IN sum IF expr RBRACKET"""
    listed, names, value = p[6], tuple(p[4]), p[2]
    if len(p) == 10 and len(names) > 1:  # the place of an item is that in the whole list
        both = ast.Call("struct_pack", (ast.Named("keep", p[8]), ast.Named("value", value)))
        listed = ast.Call("list_transform", (listed, ast.Lambda(names, both)))
        names, value = ("item",), ast.Name(("item", "value"))
        listed = ast.Call("list_filter", (listed, ast.Lambda(names, ast.Name(("item", "keep")))), span=span(p, 6))
    elif len(p) == 10:
        listed = ast.Call("list_filter", (listed, ast.Lambda(names, p[8])), span=span(p, 6))
    p[0] = ast.Call("list_transform", (listed, ast.Lambda(names, value)))


def p_expressions(p: P) -> None:
    """expressions : listed
    | listed COMMA
    listed : element
           | listed COMMA element"""
    if len(p) == 3 or (isinstance(p[1], list) and len(p) == 2):
        p[0] = p[1]
    else:
        append(p)


def append(p: P) -> None:
    """A list that grows by its last symbol, in place: long lists stay linear."""
    items = [] if len(p) == 2 else p[1]
    items.append(p[len(p) - 1])
    p[0] = items


# -------------------------------------------------------------------------------------------------------------- literals
def p_typed(p: P) -> None:
    """literal : TEMPORAL STRING
    | TEMPORAL WITH_TIME_ZONE STRING
    | INTERVAL STRING"""
    type = p[1].upper() + (" WITH TIME ZONE" if len(p) == 4 and p[2].upper() == "WITH" else "")
    p[0] = ast.TypedLiteral(type, p[len(p) - 1])


def p_interval_of(p: P) -> None:
    """literal : INTERVAL LPAREN expr RPAREN UNIT"""
    units, number = UNITS[p[5].upper()], p[3]
    if p[5].upper() not in _PARTED and not isinstance(number, ast.Quoted):
        truncated = ast.Call("trunc", (ast.Cast(number, ast.TypeName("DOUBLE")),))
        small = units in ("HOURS", "MINUTES", "MICROSECONDS")
        number = ast.Cast(truncated, ast.TypeName("BIGINT" if small else "INTEGER"))
    p[0] = ast.Call(f"to_{units.lower()}", (number,))


def _whole(number: str) -> str:
    """A number without what stands after its point; what is none, as it is."""
    try:
        return str(int(float(number)))
    except (ValueError, OverflowError):
        return number


def whole_number(p: P, i: int) -> int:
    """The integer that symbol i says. Raises UQLSyntaxError for 1.5 and for numbers of more than 18 digits."""
    text: str = p[i]
    if not text.isdigit() or len(text) > 18:
        raise p.lexer.error_at(f"{text} is not a whole number of at most 18 digits", span(p, i))
    return int(text)

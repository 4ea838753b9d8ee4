"""The grammar of calls: arguments, FILTER, OVER and its windows, ORDER BY keys, and stars."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, TypeGuard

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, Rules, append, lower, span
from uql.compiler.syntax import Expr, Span


def p_calls_same(p: P) -> None:
    """call : filtered
    filtered : plain_call"""
    p.slice[0].value = p.slice[1].value


RULES: Rules = {
    "call : call DOT identifier LPAREN RPAREN": lambda p: ast.Call(lower(p[3]), (p[1],)),
    "call : call DOT identifier LPAREN arguments RPAREN": lambda p: ast.Call(lower(p[3]), (p[1], *p[5])),
    "call : call DOT identifier %prec DOTTED": lambda p: ast.Call("struct_extract", (p[1], ast.String(p[3]))),
    "argument : identifier ASSIGN expr": lambda p: ast.Named(p[1], p[3]),
    "plain_call : path LPAREN RPAREN": lambda p: make_call(p, ()),
    "plain_call : path LPAREN starred RPAREN": lambda p: make_call(p, (p[3],)),
    "plain_call : path LPAREN arguments IGNORE_NULLS RPAREN | path LPAREN arguments RESPECT_NULLS RPAREN": lambda p: (
        make_call(p, tuple(p[3]), ignore_nulls=p.slice[4].type == "IGNORE_NULLS")
    ),
    "plain_call : path LPAREN arguments ORDER BY order_keys RPAREN": lambda p: make_call(
        p, tuple(p[3]), order_by=tuple(p[6])
    ),
    "plain_call : path LPAREN DISTINCT arguments ORDER BY order_keys RPAREN": lambda p: make_call(
        p, tuple(p[4]), distinct=True, order_by=tuple(p[7])
    ),
    "filtered : plain_call FILTER LPAREN WHERE expr RPAREN | plain_call FILTER LPAREN expr RPAREN": lambda p: _with(
        p[1], span(p), filter=p[len(p) - 2]
    ),
    "call : filtered OVER LPAREN RPAREN": lambda p: _with(p[1], span(p), over=ast.Window(span=span(p, 3, 4))),
    "call : filtered OVER LPAREN window RPAREN": lambda p: _with(p[1], span(p), over=p[4]),
    "call : filtered OVER NAME": lambda p: _with(p[1], span(p), over=ast.Window(name=p[3], span=span(p, 3))),
    "window : parted | parted frame": lambda p: ast.Window(p[1][0], p[1][1], p[2] if len(p) == 3 else ""),
    "window : frame": lambda p: ast.Window(frame=p[1]),
    "parted : PARTITION BY expressions | PARTITION BY expressions ORDER BY order_keys": lambda p: (
        tuple(p[3]),
        tuple(p[6]) if len(p) == 7 else (),
    ),
    "parted : ORDER BY order_keys": lambda p: ((), tuple(p[3])),
    "frame : FRAME frame_end": lambda p: f"{p[1].upper()} {p[2]}",
    "frame : FRAME BETWEEN frame_end AND frame_end": lambda p: f"{p[1].upper()} BETWEEN {p[3]} AND {p[5]}",
    "frame_end : UNBOUNDED PRECEDING | UNBOUNDED FOLLOWING | CURRENT ROW | NUMBER PRECEDING | NUMBER FOLLOWING": lambda p: (
        f"{p[1].upper()} {p[2].upper()}"
    ),
    "frame_end : literal_interval PRECEDING | literal_interval FOLLOWING": lambda p: f"{p[1]} {p[2].upper()}",
    "star : STAR": lambda p: ast.Star(),
    "star : QUOTED DOT STAR": lambda p: ast.Star(p[1]),
    "order_key : directed | directed NULLS FIRST | directed NULLS LAST": lambda p: ast.OrderKey(
        p[1][0], p[1][1] == "DESC", p[3].upper() if len(p) == 4 else None, p[1][1] is not None
    ),
    "directed : expr | expr ASC | expr DESC": lambda p: (p[1], p.slice[2].type if len(p) == 3 else None),
}
"""Productions, and what each makes of its symbols; those that need more than one expression are functions."""


def p_calls_lists(p: P) -> None:
    """arguments : argument
              | arguments COMMA argument
    order_keys : order_key
               | order_keys COMMA order_key"""
    append(p)


def make_call(p: P, args: tuple[Expr, ...], **rest: Any) -> ast.Call:
    return ast.Call(lower(".".join(p[1])), args, **rest)


def p_call(p: P) -> None:
    """plain_call : path LPAREN arguments RPAREN
    | path LPAREN DISTINCT arguments RPAREN"""
    args = tuple(p[len(p) - 2])
    if len(args) == 1 and p[1][-1].lower() == "position" and _is_in(args[0]):  # position('a' IN s)
        text, part = args[0].args
        p[0] = ast.Call("instr", (text, part))
        return
    p[0] = make_call(p, args, distinct=len(p) == 6)


def p_call_in_text(p: P) -> None:
    """plain_call : path LPAREN range IN text RPAREN"""
    name = lower(".".join(p[1]))
    if name != "position":
        raise p.lexer.error_at("a text is not a list", span(p, 5), help=f'write IN ("{p[5].text[:40]}")')
    p[0] = ast.Call("instr", (p[5], p[3]))


def _is_in(expr: Expr) -> TypeGuard[ast.Call]:
    """Is it `x IN y`, y a value?"""
    return isinstance(expr, ast.Call) and expr.name == "list_contains" and len(expr.args) == 2


_TRIMS = {"leading": "ltrim", "trailing": "rtrim"}


def p_call_from(p: P) -> None:
    """plain_call : path LPAREN expr FROM expr RPAREN
    | path LPAREN expr FROM expr FOR expr RPAREN
    | path LPAREN SIDE expr FROM expr RPAREN
    | path LPAREN SIDE FROM expr RPAREN"""
    name = lower(".".join(p[1]))
    where = p[3].lower() if isinstance(p[3], str) else ""
    if name == "extract" and len(p) == 7 and isinstance(p[3], ast.Name | ast.String):
        part = p[3].parts[-1] if isinstance(p[3], ast.Name) else p[3].value
        p[0] = ast.Call("date_part", (ast.String(part), p[5]))
    elif name == "trim" and where and len(p) == 7 and p.slice[3].type == "SIDE":
        p[0] = ast.Call(_TRIMS.get(where, "trim"), (p[5],))
    elif name == "substring" and not where:
        p[0] = ast.Call(name, (p[3], p[5], *((p[7],) if len(p) == 9 else ())))
    elif name == "trim" and (len(p) == 7 or where in ("both", "leading", "trailing")):
        side = _TRIMS.get(where, "trim")
        p[0] = ast.Call(side, (p[6], p[4]) if where else (p[5], p[3]))
    else:
        help = "extract(year FROM d), substring(s FROM 2 FOR 3) and trim(BOTH ' ' FROM s) are written so"
        raise p.lexer.error_at(f"{name}(… FROM …) is not a function", span(p), help=help)


def p_call_for(p: P) -> None:
    """plain_call : path LPAREN expr FOR expr RPAREN"""
    name = lower(".".join(p[1]))
    if name != "substring":
        raise p.lexer.error_at(f"{name}(… FOR …) is not a function", span(p), help="substring(s FOR 3) is written so")
    p[0] = ast.Call(name, (p[3], ast.Number("1"), p[5]))


def p_call_placing(p: P) -> None:
    """plain_call : path LPAREN expr PLACING expr FROM expr RPAREN
    | path LPAREN expr PLACING expr FROM expr FOR expr RPAREN"""
    name = lower(".".join(p[1]))
    if name != "overlay":
        help = "overlay(s PLACING new FROM 2 FOR 3) is written so"
        raise p.lexer.error_at(f"{name}(… PLACING …) is not a function", span(p), help=help)
    p[0] = ast.Call(name, (p[3], p[5], p[7], *((p[9],) if len(p) == 11 else ())))


def p_call_within(p: P) -> None:
    """filtered : plain_call WITHIN GROUP LPAREN ORDER BY order_keys RPAREN"""
    call, keys = p[1], p[7]
    names = {"percentile_cont": "quantile_cont", "percentile_disc": "quantile_disc", "mode": "mode"}
    if call.name not in names or len(keys) != 1:
        help = "percentile_cont, percentile_disc and mode take WITHIN GROUP (ORDER BY x); others take ORDER BY inside: f(x ORDER BY y)"
        raise p.lexer.error_at(f"{call.name} takes no WITHIN GROUP", span(p), help=help)
    args = call.args
    if keys[0].descending and args:
        args = (ast.Binary("-", ast.Number("1"), args[0]),)
    p[0] = ast.Call(names[call.name], (keys[0].expr, *args))


def _with(call: ast.Call, place: Span, *, filter: Expr | None = None, over: ast.Window | None = None) -> ast.Call:
    return replace(call, filter=filter or call.filter, over=over or call.over, span=place)


def p_window_of(p: P) -> None:
    """window : NAME
    | NAME window"""
    more = p[2] if len(p) == 3 else ast.Window()
    if more.name:
        raise p.lexer.error_at("a window is made from one other", span(p))
    p[0] = replace(more, name=p[1], span=span(p))


def p_frame_exclude(p: P) -> None:
    """frame : frame EXCLUDE CURRENT ROW
    | frame EXCLUDE GROUP
    | frame EXCLUDE NAME
    | frame EXCLUDE NAME NAME"""
    left_out = " ".join(p[i] for i in range(3, len(p))).upper()
    if left_out not in ("CURRENT ROW", "GROUP", "TIES", "NO OTHERS"):
        help = "EXCLUDE CURRENT ROW, EXCLUDE GROUP, EXCLUDE TIES or EXCLUDE NO OTHERS"
        raise p.lexer.error_at(f"a frame has no EXCLUDE {left_out}", span(p, 3, len(p) - 1), help=help)
    p[0] = f"{p[1]} EXCLUDE {left_out}"


def p_literal_interval(p: P) -> None:
    """literal_interval : INTERVAL STRING
    | INTERVAL STRING UNIT
    | INTERVAL NUMBER UNIT"""
    inside = span(p)
    p[0] = p.lexer.text[inside.start : inside.end]


def p_star_of(p: P) -> None:
    """star : path DOT STAR"""
    if len(p[1]) > 1:
        raise p.lexer.error_at("only one name may stand before .*", span(p, 1))
    p[0] = ast.Star(p[1][0])

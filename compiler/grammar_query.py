"""The grammar of queries: clauses in any order, UNION, INTERSECT and EXCEPT, WITH."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, Rules, append, lower, span, whole_number
from uql.compiler.grammar_parts import Clause, Link, Part, Percent, make_query
from uql.compiler.syntax import SelectItem


# --------------------------------------------------------------------------------------------------------------- queries
def p_query_same(p: P) -> None:
    """query : bare_query
          | subquery
    set_operation : UNION
                  | INTERSECT
                  | EXCEPT
    left : union
    operand : select
    item_list : items
              | items COMMA
    starred : star
            | starred_less
    grouping_set : expr
    constant : STRING
             | QUOTED
    word : STRING
         | QUOTED
         | NAME
         | NUMBER"""
    p.slice[0].value = p.slice[1].value


RULES: Rules = {
    # queries
    "bare_query : select | WITH ctes select": lambda p: make_query(
        p, [p[len(p) - 1]], tuple(p[2]) if len(p) == 4 else ()
    ),
    "bare_query : union | WITH ctes union": lambda p: make_query(p, p[len(p) - 1], tuple(p[2]) if len(p) == 4 else ()),
    "subquery : LPAREN subquery RPAREN": lambda p: p[2],
    "union : left link operand": lambda p: [*p[1], replace(p[3], link=p[2])],
    "linked : set_operation | set_operation ALL | set_operation DISTINCT": lambda p: Link(
        p[1].upper(), all=len(p) == 3 and p[2].upper() == "ALL"
    ),
    "left : select": lambda p: [p[1]],
    "left : values": lambda p: [Part(clauses=(Clause("FROM", p[1], span=span(p)),), span=span(p))],
    "left : subquery": lambda p: [Part(query=p[1], span=span(p))],
    "operand : subquery | subquery clauses": lambda p: Part(
        clauses=tuple(p[2]) if len(p) == 3 else (), query=p[1], span=span(p, 1)
    ),
    "chosen : SELECT item_list | SELECT ALL item_list": lambda p: (tuple(p[len(p) - 1]), False, ()),
    "chosen : SELECT DISTINCT item_list": lambda p: (tuple(p[3]), True, ()),
    "chosen : SELECT DISTINCT ON LPAREN expressions RPAREN item_list": lambda p: (tuple(p[7]), False, tuple(p[5])),
    "chosen : SELECT DISTINCT ON text item_list": lambda p: (tuple(p[5]), False, (p[4],)),
    "clause : chosen": lambda p: Clause("SELECT", p[1]),
    "item : expr | starred | expr NAME | expr AS identifier | expr AS STRING": lambda p: SelectItem(
        p[1], p[len(p) - 1] if len(p) > 2 else None
    ),
    "item : identifier COLON expr": lambda p: SelectItem(p[3], p[1]),
    "starred_less : star REPLACE LPAREN item_list RPAREN | star RENAME LPAREN renames RPAREN": lambda p: _changed_star(
        p, p[2].upper(), p[4]
    ),
    "starred_less : star RENAME rename": lambda p: _changed_star(p, "RENAME", [p[3]]),
    "excluded : LPAREN excluded_names RPAREN": lambda p: p[2],
    "excluded : NAME": lambda p: [(p[1],)],
    "rename : identifier AS identifier": lambda p: (p[1], p[3]),
    "cte : identifier AS body": lambda p: ast.CommonTable(p[1], p[3]),
    "body : rows | MATERIALIZED rows | NOT MATERIALIZED rows": lambda p: p[len(p) - 1],
    "cte : identifier LPAREN identifiers RPAREN AS body": lambda p: ast.CommonTable(p[1], p[6], tuple(p[3])),
    # clauses
    "clause : FROM sources | WHERE expr | HAVING expr | QUALIFY expr | LIMIT sum | OFFSET sum | TO identifier": lambda p: (
        Clause(p[1].upper(), p[2])
    ),
    "clause : FETCH_FIRST ROWS_ONLY | FETCH_FIRST sum ROWS_ONLY": lambda p: Clause(
        "LIMIT", p[2] if len(p) == 4 else ast.Number("1", span=span(p))
    ),
    "clause : LIMIT sum PERCENT": lambda p: Clause("LIMIT", Percent(p[2])),
    "clause : GROUP BY group_keys | GROUP BY group_keys COMMA": lambda p: Clause("GROUP BY", tuple(p[3])),
    "clause : WINDOW windows": lambda p: Clause("WINDOW", tuple(p[2])),
    "named_window : NAME AS LPAREN window RPAREN": lambda p: (p[1].lower(), p[4]),
    "clause : USING_SAMPLE sampled": lambda p: Clause("USING SAMPLE", p[2]),
    "clause : ORDER BY order_keys": lambda p: Clause("ORDER BY", tuple(p[3])),
    "clause : WITH LPAREN options RPAREN": lambda p: Clause("WITH", checked_options(p, p[3])),
    "group_key : LPAREN RPAREN": lambda p: ast.GroupKey(
        ast.Call("grouping_sets", (ast.Call("row", ()),), span=span(p))
    ),
    "group_key : GROUPING SETS LPAREN grouping_sets RPAREN": lambda p: ast.GroupKey(
        ast.Call("grouping_sets", tuple(p[4]), span=span(p))
    ),
    "grouping_set : LPAREN RPAREN": lambda p: ast.Call("row", ()),
    "grouped : expr | expr MANY": lambda p: (p[1], None, len(p) == 3),
    "grouped : expr INTO NUMBER | expr INTO NUMBER MANY": lambda p: (p[1], whole_number(p, 3), len(p) == 5),
    "option : NAME | NAME EQUALS constant": lambda p: ast.Option(lower(p[1]), p[3] if len(p) == 4 else True),
    "constant : NAME": lambda p: {"on": True, "off": False}.get(p[1].lower(), p[1]),
    "constant : ON": lambda p: True,
    "constant : boolean": lambda p: p[1].value,
    "constant : NULL": lambda p: None,
    "constant : LBRACKET RBRACKET | LBRACKET constants RBRACKET": lambda p: tuple(p[2]) if len(p) == 4 else (),
}
"""Productions, and what each makes of its symbols; those that need more than one expression are functions."""


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


def p_link(p: P) -> None:
    """link : linked
    | linked BY NAME"""
    p[0] = p[1]
    if len(p) == 4:
        if p[3].lower() != "name":
            raise p.lexer.error_at(f"expected NAME, found {p[3]}", span(p, 3), help=f"write {p[1].op} BY NAME")
        p[0] = replace(p[1], by_name=True)


def p_operand_values(p: P) -> None:
    """operand : values
    | values clauses
    | bracketed_values
    | bracketed_values clauses"""
    first = Clause("FROM", p[1], span=span(p, 1))
    p[0] = Part(clauses=(first, *(p[2] if len(p) == 3 else ())))


def p_values_query(p: P) -> None:
    """rows : subquery
    | LPAREN values RPAREN"""
    star = SelectItem(ast.Star(span=span(p)), span=span(p))
    p[0] = p[1] if len(p) == 2 else ast.Select((star,), p[2])


def p_select(p: P) -> None:
    """select : chosen
    | chosen clauses"""
    items, distinct, on = p[1]
    p[0] = Part(items, distinct, tuple(p[2]) if len(p) == 3 else (), distinct_on=on)


def p_select_from(p: P) -> None:
    """select : FROM sources
    | FROM sources clauses"""
    first = Clause("FROM", p[2], span=span(p, 1, 2))
    p[0] = Part(clauses=(first, *(p[3] if len(p) == 4 else ())))


def p_query_lists(p: P) -> None:
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
                | identifiers COMMA identifier
    excluded_names : dotted
                   | excluded_names COMMA dotted
    renames : rename
            | renames COMMA rename
    windows : named_window
            | windows COMMA named_window
    grouping_sets : grouping_set
                  | grouping_sets COMMA grouping_set
    constants : word
              | constants COMMA word"""
    append(p)


def p_starred_exclude(p: P) -> None:
    """starred_less : star EXCLUDE excluded
    | starred_less REPLACE LPAREN item_list RPAREN
    | starred_less RENAME LPAREN renames RPAREN"""
    how = p.slice[2].type
    if how == "EXCLUDE":
        p[0] = replace(p[1], exclude=tuple(p[3]), span=span(p))
    else:
        p[0] = _changed_star(p, how, p[4])


def _changed_star(p: P, how: str, parts: list[Any]) -> ast.Star:
    if how == "RENAME":
        changed: ast.Star = replace(p[1], renamed=tuple(parts), span=span(p))
        return changed
    for item in parts:
        if item.alias is None:
            raise p.lexer.error_at("REPLACE needs the column's name", item.span, help="as in * REPLACE (x + 1 AS x)")
    recomputed: ast.Star = replace(p[1], replaced=tuple(parts), span=span(p))
    return recomputed


# --------------------------------------------------------------------------------------------------------------- clauses
def p_clause_offset_rows(p: P) -> None:
    """clause : OFFSET sum ROW
    | OFFSET sum FRAME"""
    if p[3].upper() not in ("ROW", "ROWS"):
        raise p.lexer.error_at(f"{p[3]} does not belong to OFFSET", span(p, 3), help="write OFFSET n or OFFSET n ROWS")
    p[0] = Clause("OFFSET", p[2])


def checked_options(p: P, options: list[ast.Option]) -> tuple[ast.Option, ...]:
    """The options of one WITH (…), each once."""
    names: set[str] = set()
    for option in options:
        if option.name in names:
            raise p.lexer.error_at(f"the option {option.name} is given twice", option.span, code="UQL104")
        names.add(option.name)
    return tuple(options)


def p_group_key(p: P) -> None:
    """group_key : grouped
    | grouped AS identifier"""
    expr, into, many = p[1]
    p[0] = ast.GroupKey(expr, p[3] if len(p) == 4 else None, into, many)


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

"""The grammar of queries: clauses in any order, UNION, INTERSECT and EXCEPT, WITH."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from uql.compiler import syntax as ast
from uql.compiler.grammar_expressions import P, append, lower, span, whole_number
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
    """union : left link operand"""
    p[0] = [*p[1], replace(p[3], link=p[2])]


def p_link(p: P) -> None:
    """link : linked
    | linked BY NAME"""
    p[0] = p[1]
    if len(p) == 4:
        if p[3].lower() != "name":
            raise p.lexer.error_at(f"expected NAME, found {p[3]}", span(p, 3), help=f"write {p[1].op} BY NAME")
        p[0] = replace(p[1], by_name=True)


def p_linked(p: P) -> None:
    """linked : set_operation
    | set_operation ALL
    | set_operation DISTINCT"""
    p[0] = Link(p[1].upper(), all=len(p) == 3 and p[2].upper() == "ALL")


def p_left(p: P) -> None:
    """left : select"""
    p[0] = [p[1]]


def p_left_values(p: P) -> None:
    """left : values"""
    p[0] = [Part(span(p), clauses=(Clause("FROM", p[1], span(p)),))]


def p_left_subquery(p: P) -> None:
    """left : subquery"""
    p[0] = [Part(span(p), query=p[1])]


def p_operand_subquery(p: P) -> None:
    """operand : subquery
    | subquery clauses"""
    p[0] = Part(span(p, 1), clauses=tuple(p[2]) if len(p) == 3 else (), query=p[1])


def p_operand_values(p: P) -> None:
    """operand : values
    | values clauses
    | bracketed_values
    | bracketed_values clauses"""
    first = Clause("FROM", p[1], span(p, 1))
    p[0] = Part(span(p), clauses=(first, *(p[2] if len(p) == 3 else ())))


def p_values_query(p: P) -> None:
    """rows : subquery
    | LPAREN values RPAREN"""
    star = SelectItem(ast.Star(span=span(p)), span=span(p))
    p[0] = p[1] if len(p) == 2 else ast.Select((star,), p[2], span=span(p))


def p_select(p: P) -> None:
    """select : chosen
    | chosen clauses"""
    items, distinct, on = p[1]
    p[0] = Part(span(p), items, distinct, tuple(p[2]) if len(p) == 3 else (), distinct_on=on)


def p_select_from(p: P) -> None:
    """select : FROM sources
    | FROM sources clauses"""
    first = Clause("FROM", p[2], span(p, 1, 2))
    p[0] = Part(span(p), clauses=(first, *(p[3] if len(p) == 4 else ())))


def p_chosen(p: P) -> None:
    """chosen : SELECT item_list
    | SELECT ALL item_list"""
    p[0] = (tuple(p[len(p) - 1]), False, ())


def p_chosen_distinct(p: P) -> None:
    """chosen : SELECT DISTINCT item_list"""
    p[0] = (tuple(p[3]), True, ())


def p_chosen_distinct_on(p: P) -> None:
    """chosen : SELECT DISTINCT ON LPAREN expressions RPAREN item_list"""
    p[0] = (tuple(p[7]), False, tuple(p[5]))


def p_chosen_distinct_on_text(p: P) -> None:
    """chosen : SELECT DISTINCT ON text item_list"""
    p[0] = (tuple(p[5]), False, (p[4],))


def p_clause_select(p: P) -> None:
    """clause : chosen"""
    p[0] = Clause("SELECT", p[1], span(p))


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
    renames : rename
            | renames COMMA rename
    windows : named_window
            | windows COMMA named_window
    grouping_sets : grouping_set
                  | grouping_sets COMMA grouping_set
    constants : word
              | constants COMMA word"""
    append(p)


def p_item(p: P) -> None:
    """item : expr
    | starred
    | expr NAME
    | expr AS identifier"""
    p[0] = SelectItem(p[1], p[len(p) - 1] if len(p) > 2 else None, span=span(p))


def p_item_prefixed(p: P) -> None:
    """item : identifier COLON expr"""
    p[0] = SelectItem(p[3], p[1], span=span(p))


def p_starred_exclude(p: P) -> None:
    """starred_less : star EXCLUDE excluded
    | starred_less REPLACE LPAREN item_list RPAREN
    | starred_less RENAME LPAREN renames RPAREN"""
    how = p[2].upper()
    if how == "EXCLUDE":
        p[0] = replace(p[1], exclude=tuple(p[3]), span=span(p))
    else:
        p[0] = _changed_star(p, how, p[4])


def p_starred_changed(p: P) -> None:
    """starred_less : star REPLACE LPAREN item_list RPAREN
    | star RENAME LPAREN renames RPAREN"""
    p[0] = _changed_star(p, p[2].upper(), p[4])


def _changed_star(p: P, how: str, parts: list[Any]) -> ast.Star:
    if how == "RENAME":
        changed: ast.Star = replace(p[1], renamed=tuple(parts), span=span(p))
        return changed
    for item in parts:
        if item.alias is None:
            raise p.lexer.error_at("REPLACE needs the column's name", item.span, help="as in * REPLACE (x + 1 AS x)")
    recomputed: ast.Star = replace(p[1], replaced=tuple(parts), span=span(p))
    return recomputed


def p_excluded(p: P) -> None:
    """excluded : LPAREN identifiers RPAREN"""
    p[0] = p[2]


def p_excluded_one(p: P) -> None:
    """excluded : NAME"""
    p[0] = [p[1]]


def p_rename(p: P) -> None:
    """rename : identifier AS identifier"""
    p[0] = (p[1], p[3])


def p_cte(p: P) -> None:
    """cte : identifier AS body"""
    p[0] = ast.CommonTable(p[1], p[3], span=span(p))


def p_cte_body(p: P) -> None:
    """body : rows
    | MATERIALIZED rows
    | NOT MATERIALIZED rows"""
    p[0] = p[len(p) - 1]


def p_cte_columns(p: P) -> None:
    """cte : identifier LPAREN identifiers RPAREN AS body"""
    p[0] = ast.CommonTable(p[1], p[6], tuple(p[3]), span=span(p))


# --------------------------------------------------------------------------------------------------------------- clauses
def p_clause(p: P) -> None:
    """clause : FROM sources
    | WHERE expr
    | HAVING expr
    | QUALIFY expr
    | LIMIT sum
    | OFFSET sum
    | TO identifier"""
    p[0] = Clause(p[1].upper(), p[2], span(p))


def p_clause_offset_rows(p: P) -> None:
    """clause : OFFSET sum ROW
    | OFFSET sum FRAME"""
    if p[3].upper() not in ("ROW", "ROWS"):
        raise p.lexer.error_at(f"{p[3]} does not belong to OFFSET", span(p, 3), help="write OFFSET n or OFFSET n ROWS")
    p[0] = Clause("OFFSET", p[2], span(p))


def p_clause_fetch(p: P) -> None:
    """clause : FETCH_FIRST ROWS_ONLY
    | FETCH_FIRST sum ROWS_ONLY"""
    p[0] = Clause("LIMIT", p[2] if len(p) == 4 else ast.Number("1", span=span(p)), span(p))


def p_clause_limit_percent(p: P) -> None:
    """clause : LIMIT sum PERCENT"""
    p[0] = Clause("LIMIT", Percent(p[2]), span(p))


def p_clause_group(p: P) -> None:
    """clause : GROUP BY group_keys
    | GROUP BY group_keys COMMA"""
    p[0] = Clause("GROUP BY", tuple(p[3]), span(p))


def p_clause_windows(p: P) -> None:
    """clause : WINDOW windows"""
    p[0] = Clause("WINDOW", tuple(p[2]), span(p))


def p_named_window(p: P) -> None:
    """named_window : NAME AS LPAREN window RPAREN"""
    p[0] = (p[1].lower(), p[4])


def p_clause_sample(p: P) -> None:
    """clause : USING_SAMPLE sampled"""
    p[0] = Clause("USING SAMPLE", p[2], span(p))


def p_clause_order(p: P) -> None:
    """clause : ORDER BY order_keys"""
    p[0] = Clause("ORDER BY", tuple(p[3]), span(p))


def p_clause_with(p: P) -> None:
    """clause : WITH LPAREN options RPAREN"""
    p[0] = Clause("WITH", checked_options(p, p[3]), span(p))


def checked_options(p: P, options: list[ast.Option]) -> tuple[ast.Option, ...]:
    """The options of one WITH (…), each once."""
    seen: set[str] = set()
    for option in options:
        if option.name in seen:
            raise p.lexer.error_at(f"the option {option.name} is given twice", option.span, code="UQL104")
        seen.add(option.name)
    return tuple(options)


def p_group_key_sets(p: P) -> None:
    """group_key : GROUPING SETS LPAREN grouping_sets RPAREN"""
    p[0] = ast.GroupKey(ast.Call("grouping_sets", tuple(p[4]), span=span(p)), span=span(p))


def p_grouping_set_empty(p: P) -> None:
    """grouping_set : LPAREN RPAREN"""
    p[0] = ast.Call("row", (), span=span(p))


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

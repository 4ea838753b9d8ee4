"""Texts to trees: what each construct means, the places of nodes, and what the errors say."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from uql.base.errors import UQLSyntaxError
from uql.compiler import make_tables, syntax
from uql.compiler.grammar import signature
from uql.compiler.lexer import statements
from uql.compiler.parser import MAX_DEPTH, check_brackets, parse, parse_script
from uql.compiler.syntax import Binary, Name, Number, Quoted, Select, Span, String
from uql.compiler.unparse import unparse
from uql.kernels import answer_types

GOLDEN = Path(__file__).parents[1] / "golden" / "syntax_errors"


def select(text: str) -> Select:
    tree = parse(text)
    assert isinstance(tree, Select)
    return tree


def expr(text: str) -> syntax.Expr:
    return select(f"SELECT {text}").items[0].expr


def where(text: str) -> syntax.Expr | None:
    return select(f"SELECT a FROM t WHERE {text}").where


def test_what_is_trimmed_may_stand_in_parentheses() -> None:
    for side in ("BOTH", "LEADING", "TRAILING"):
        assert expr(f"trim({side} ('a') FROM b)") == expr(f"trim({side} 'a' FROM b)")


def test_figure_two_of_the_paper_parses() -> None:
    retrieval = select(
        'SELECT * FROM movie_reviews WHERE "the review is positive" AND movie = "Toy Story" LIMIT 10 TO toys'
    )
    assert retrieval.where == Binary(
        "AND", Quoted("the review is positive"), Binary("=", Name(("movie",)), String("Toy Story"))
    )
    assert retrieval.to == "toys"
    grouped = select(
        'SELECT "reason why the customer is upset" AS reason, COUNT(*) AS count FROM reviews GROUP BY reason ORDER BY count DESC'
    )
    assert [item.alias for item in grouped.items] == ["reason", "count"]
    assert grouped.items[0].expr == Quoted("reason why the customer is upset")
    assert grouped.order_by[0].descending


WORDS = (
    "count end to with left right full try prompt into many using offset date time timestamp interval is in like between "
    "exists cast set table temp explain analyze sample format filter over partition nulls first last asc desc then else "
    "all inner outer cross semi anti day year distinct if copy insert create replace reset escape ilike"
)


@pytest.mark.parametrize("word", WORDS.split(" "))
def test_a_keyword_by_position_is_a_name_elsewhere(word: str) -> None:
    assert select(f"SELECT a AS {word} FROM t").items[0].alias == word
    assert select(f"SELECT {word} FROM t").items[0].expr == Name((word,))
    assert select(f"SELECT a, {word}, t.{word} FROM t").items[2].expr == Name(("t", word))
    assert select(f"SELECT a FROM {word}").source == syntax.TableName((word,))
    assert select(f"SELECT a FROM t AS {word} WHERE a = 1").source == syntax.TableName(("t",), word)
    assert where(f"{word} > 3 AND b = {word}") == where("t > 3 AND b = t") or where(f"{word} > 3") == Binary(
        ">", Name((word,)), Number("3")
    )
    tree = select(f"SELECT a FROM t WHERE {word} IS NULL GROUP BY {word} ORDER BY {word} DESC LIMIT 1 TO {word}")
    assert tree.to == word and tree.group_by[0].expr == Name((word,)) and tree.order_by[0].expr == Name((word,))


@pytest.mark.parametrize(
    "condition",
    ["IS NOT NULL", "IS NULL", "LIKE 'x'", "NOT LIKE 'x'", "IN (1, 2)", "NOT IN (1, 2)", "ISNULL", "BETWEEN 1 AND 2"],
)
def test_a_column_called_to_after_a_comma_is_no_clause(condition: str) -> None:
    for tail in ("", " FROM t"):
        tree = select(f"SELECT a, to {condition}{tail}")
        assert tree.to is None and len(tree.items) == 2
    kept = select("FROM t SELECT a, TO kept WITH (budget = 3)")
    assert kept.to == "kept" and len(kept.items) == 1


def test_clauses_come_in_any_order_and_mean_the_same() -> None:
    one = parse("SELECT a FROM t WHERE x GROUP BY a HAVING y ORDER BY a LIMIT 3 OFFSET 1 TO k WITH (exact)")
    other = parse("SELECT a FROM t OFFSET 1 LIMIT 3 ORDER BY a HAVING y GROUP BY a WHERE x TO k WITH (exact)")
    assert one == other


def test_a_double_quoted_text_is_a_string_only_on_the_right() -> None:
    for operator in ("=", "<>", "<", ">", "<=", ">=", "LIKE", "ILIKE", "NOT LIKE"):
        tree = where(f'"t" {operator} "a"')
        right = tree.pattern if isinstance(tree, syntax.Like) else tree.right  # type: ignore[union-attr]
        assert right == String("a") and right.double
    assert where('"t" IN ("a", \'b\')') == syntax.InList(Quoted("t"), (String("a"), String("b")))
    assert where('"t" BETWEEN "a" AND "b"') == syntax.Between(Quoted("t"), String("a"), String("b"))
    assert where("\"t\" = 'a'") == Binary("=", Quoted("t"), String("a"))
    assert where('x = PROMPT "a"') == Binary("=", Name(("x",)), Quoted("a", forced=True))
    assert where('x > "n"::INTEGER') == Binary(">", Name(("x",)), syntax.Cast(Quoted("n"), syntax.TypeName("INTEGER")))
    assert expr('t."col"') == Name(("t", "col"))
    assert expr('COUNT("t")') == syntax.Call("count", (Quoted("t"),))


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("j->'a'->'b'->>0", "((j->'a')->'b')->>0"),
        ("j->'a'->>'b' = 'x'", "((j->'a')->>'b') = 'x'"),
        ("i > 3 AND j->'a'->>'b' IS NULL OR k", "(i > 3 AND (((j->'a')->>'b') IS NULL)) OR k"),
        ("5 > j->>'a'", "5 > (j->>'a')"),
        ("NOT j->'a'->>'b' IN ('x', 'y')", "NOT (((j->'a')->>'b') IN ('x', 'y'))"),
        ("'q' || j->'a'->>'b' || 'x'", "((('q' || j)->'a')->>'b') || 'x'"),
        ("j->'a' || 'b'", "j->('a' || 'b')"),
        ("f(j->'a', j->'a'->>0 LIKE 'b')", "f((j->'a'), ((j->'a')->>0) LIKE 'b')"),
        ("f((j->'a') = k)", "f((j->'a') = (k))"),
    ],
)
def test_arrows_take_fields_from_left_to_right_and_bind_as_in_duckdb(written: str, meant: str) -> None:
    assert expr(written) == expr(meant)
    assert expr(unparse(expr(written))) == expr(written)


def test_an_arrow_in_an_argument_behind_names_makes_a_lambda_of_all_that_follows() -> None:
    for body in (
        "x > 1 AND y",
        "NOT x AND y OR z",
        "x->'a'->>'b' = 'c'",
        "x IN (1, 2)",
        "'a' = x",
        "[x]",
        "x::INT % 2 = 0",
    ):
        for names in ("x", "x, y"):
            arrow = f"({names}) -> {body}" if "," in names else f"{names} -> {body}"
            assert expr(f"list_filter(l, {arrow})") == expr(f"list_filter(l, LAMBDA {names} : {body})"), body
    in_parentheses = expr("f((j -> k))")
    assert in_parentheses == syntax.Call("f", (Binary("->", Name(("j",)), Name(("k",))),))
    assert expr(unparse(in_parentheses)) == in_parentheses


def test_and_binds_tighter_than_or_and_not_tighter_than_and() -> None:
    assert where("a OR b AND NOT c") == where("a OR (b AND (NOT c))")
    assert where("NOT a = b") == where("NOT (a = b)")
    assert where("a = b IS NULL") == where("(a = b) IS NULL")
    assert expr("1 - 2 - 3 * -x::INT || 'a'") == expr("((1 - 2) - (3 * (-(x::INT)))) || 'a'")


def test_holes_and_braces_are_kept_as_written() -> None:
    assert expr('"does {t.col} say {{x}} \\"y\\""') == Quoted('does {t.col} say {{x}} "y"')


@pytest.mark.parametrize(
    ("text", "kind", "negated"),
    [
        ("a IS NULL", "IsNull", False),
        ("a IS NOT NULL", "IsNull", True),
        ("a IS NOT TRUE", "IsDistinct", True),
        ("a IS DISTINCT FROM b", "IsDistinct", False),
        ("a NOT IN (1)", "InList", True),
        ("a IN (SELECT 1)", "InQuery", False),
        ("a NOT BETWEEN 1 AND 2", "Between", True),
        ("a NOT ILIKE 'x' ESCAPE '!'", "Like", True),
    ],
)
def test_conditions(text: str, kind: str, negated: bool) -> None:
    tree = where(text)
    assert type(tree).__name__ == kind
    assert tree.negated is negated  # type: ignore[union-attr]


def test_group_keys_order_keys_and_options_keep_what_belongs_to_each() -> None:
    tree = select(
        'SELECT a FROM t GROUP BY "x" INTO 5 AS g, "y" MANY AS h, b ORDER BY a DESC NULLS LAST, b LIMIT $n '
        "WITH (budget = 1_000, error = .1, exact, describe = off, model = 'a', models = ['b', c], seed = -1)"
    )
    assert [(k.alias, k.into, k.many) for k in tree.group_by] == [
        ("g", 5, False),
        ("h", None, True),
        (None, None, False),
    ]
    assert [(k.descending, k.nulls) for k in tree.order_by] == [(True, "LAST"), (False, None)]
    assert tree.limit == syntax.Parameter("n")
    assert {o.name: o.value for o in tree.options} == {
        "budget": 1000, "error": 0.1, "exact": True, "describe": False, "model": "a", "models": ("b", "c"), "seed": -1,
    }  # fmt: skip


def test_joins_commas_and_sub_queries_nest_as_in_sql() -> None:
    tree = select("SELECT 1 FROM a, b LEFT OUTER JOIN c ON x JOIN (d CROSS JOIN e) USING (k), (SELECT 2) AS f")
    outer = tree.source
    assert isinstance(outer, syntax.Join) and outer.kind == "CROSS" and isinstance(outer.right, syntax.Derived)
    inner = outer.left
    assert isinstance(inner, syntax.Join) and isinstance(inner.right, syntax.Join)
    assert inner.right.using == ("k",) and isinstance(inner.right.left, syntax.Join) and inner.right.left.kind == "LEFT"


def test_what_follows_a_union_belongs_to_the_whole() -> None:
    tree = parse(
        "WITH c AS (SELECT 1) SELECT a UNION ALL SELECT b WHERE x UNION (SELECT c LIMIT 1) ORDER BY a TO t WITH (exact)"
    )
    assert isinstance(tree, syntax.Union) and tree.to == "t" and tree.options and tree.order_by and len(tree.ctes) == 1
    assert isinstance(tree.left, syntax.Union) and tree.left.all and not tree.all
    assert isinstance(tree.right, Select) and tree.right.limit == Number("1")


SPANNED = [
    'SELECT ("a text" ) AS x, f(a, DISTINCT) + (b * (2 + c))::INT FROM t',
    "SELECT CASE WHEN a AND b AND (c) THEN 'x''y' ELSE -1 END, x IN (1, (2), 'c') FROM r AS q WHERE NOT (a OR b IS NULL)",
    'SELECT count(DISTINCT a ORDER BY b) FILTER (WHERE c > "s") OVER (PARTITION BY d) FROM t WHERE x BETWEEN 1 AND 2 + 3',
    'SELECT TRY "x"::INT, PROMPT "y" USING (a, b), DATE \'2020-01-01\', [1, 2], EXISTS (SELECT 1), (SELECT max(a) FROM t)',
    "SELECT a FROM t WHERE " + " AND ".join(f"(c{i} = {i})" for i in range(40)),
]


@pytest.mark.parametrize("text", [text.replace("DISTINCT)", "d)") for text in SPANNED])
def test_the_text_at_the_place_of_an_expression_is_that_expression(text: str) -> None:
    seen, stack = 0, [parse(text)]
    while stack:
        node = stack.pop()
        children = [getattr(node, name) for name in node.__dataclass_fields__]
        while children:
            child = children.pop()
            children.extend(child if isinstance(child, tuple) else ())
            stack.extend([child] if isinstance(child, syntax.Node) else [])
        if not isinstance(node, syntax.Expr | syntax.Select) or isinstance(node, syntax.Star):
            continue
        piece = text[node.span.start : node.span.end]
        assert piece == piece.strip()
        again = parse(piece) if isinstance(node, Select) else expr(piece)
        double = isinstance(node, String) and node.double
        assert again == (Quoted(node.value) if double else node), piece
        seen += 1
    assert seen > 8


def test_a_script_gives_trees_and_what_is_not_uql_as_text() -> None:
    text = "SELECT ';';\n PIVOT t ON x; -- end;\nSELECT 2;"
    parts = parse_script(text)
    assert [type(part).__name__ for part, _ in parts] == ["Select", "str", "Select"]
    assert [text[span.start : span.end] for _, span in parts] == ["SELECT ';'", "PIVOT t ON x", "SELECT 2"]
    last = parts[2][0]
    assert isinstance(last, Select) and last.items[0].span == Span(text.index("2"), text.index("2") + 1)


def test_nesting_has_a_stated_limit() -> None:
    parse("SELECT " + "(" * MAX_DEPTH + "1" + ")" * MAX_DEPTH)
    for text in ("SELECT " + "(" * (MAX_DEPTH + 1) + "1", "SELECT " + "NOT " * MAX_DEPTH + "a"):
        with pytest.raises(UQLSyntaxError) as caught:
            parse(text)
        assert caught.value.code == "UQL103"


@pytest.mark.parametrize("bracket", ["(", "[", "{"])
def test_brackets_that_are_not_closed_are_given_up_at_the_limit(bracket: str) -> None:
    with pytest.raises(UQLSyntaxError, match=f"UQL103: nested more than {MAX_DEPTH} deep"):
        parse("SELECT " + bracket * (MAX_DEPTH + 100))


@pytest.mark.thorough
def test_the_tables_are_those_of_the_grammar() -> None:
    from uql.compiler import _tables

    assert signature() == _tables.SIGNATURE
    assert make_tables.TABLES.read_text(encoding="utf-8") == make_tables.source()


def test_importing_and_parsing_writes_no_file_and_builds_no_table() -> None:
    code = (
        "import builtins, sys\nreal = builtins.open\n"
        "def guard(file, mode='r', *a, **k):\n    assert not set(mode) & set('wax+'), file\n    return real(file, mode, *a, **k)\n"
        "builtins.open = guard\nfrom ply import yacc\nyacc.LRGeneratedTable = None\n"
        "from uql.compiler.parser import parse\nparse('SELECT 1')\nassert 'uql.compiler.make_tables' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("*.test")), ids=lambda file: file.stem)
def test_errors_say_what_where_and_what_to_write_instead(file: Path, update_golden: bool) -> None:
    written = file.read_text(encoding="utf-8")
    shown = []
    for case in written.rstrip("\n").split("\n====\n"):
        text = case.split("\n----\n")[0]
        with pytest.raises(UQLSyntaxError) as caught:
            parse(text)
        shown.append(f"{text}\n----\n{caught.value}")
    result = "\n====\n".join(shown) + "\n"
    if update_golden:
        file.write_text(result, encoding="utf-8")
    else:
        assert result == written


@pytest.mark.parametrize("join", ["POSITIONAL", "positional"])
def test_positional_behind_a_table_is_a_join_and_never_its_alias(join: str) -> None:
    """Else rows that stand side by side would be joined with all that match."""
    found = parse(f"SELECT a, b FROM t {join} JOIN u")
    assert found.source.kind == "POSITIONAL" and found.source.left.alias is None
    with pytest.raises(UQLSyntaxError):
        parse(f"SELECT a, b FROM t {join} JOIN u ON a >= b")
    assert parse(f"SELECT x.a FROM t AS {join}").source.alias == join


def test_lateral_is_a_word_before_what_may_read_columns_and_a_name_elsewhere() -> None:
    assert parse("SELECT 1 FROM t, LATERAL (SELECT t.x) l") == parse("SELECT 1 FROM t, (SELECT t.x) l")
    assert parse("SELECT lateral FROM lateral").source.parts == ("lateral",)


def test_what_stands_in_a_string_between_dollars_is_neither_a_quoted_word_nor_the_end_of_another_string() -> None:
    assert statements('SELECT $$ "; $$, "b"; SELECT 1') == [(0, 20), (22, 30)]
    with pytest.raises(UQLSyntaxError, match="nested more than 500 deep"):
        check_brackets("SELECT $$'$$, " + "(" * 501 + "$$'$$")


@pytest.mark.parametrize(
    ("read", "pump"),
    [
        (check_brackets, "/* "),
        (statements, '\\"'),
        (answer_types._NUMERAL.fullmatch, " "),
    ],
)
def test_a_text_without_an_end_is_read_in_time_linear_in_its_length(read: Callable[[str], object], pump: str) -> None:
    """As each of them was, 100,000 characters took from 5 to 30 s; four times as many took sixteen times as long."""

    def least_s(characters: int) -> float:
        text = "1 " + pump * (characters // len(pump)) + "x"
        took = []
        for _ in range(3):
            started = time.process_time()
            read(text)
            took.append(time.process_time() - started)
        return min(took)

    assert least_s(80_000) < 8 * least_s(20_000) + 0.05

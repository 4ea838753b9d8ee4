"""Rules: what each does, as text before and after; that none changes an answer; that a plan it breaks is caught and the rule named."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hash_model import HashModel
from hypothesis import given, settings, strategies as st
from logical_text import tree

import uql
from uql.base.errors import ConfigError, PlanError
from uql.compiler import logical as logical_nodes
from uql.compiler.binder import bind
from uql.compiler.bound import BoundSelect
from uql.compiler.logical import (
    Aggregate,
    Distinct,
    LogicalPlan,
    OneInput,
    Project,
    SemFilter,
    SemGroup,
    SemMap,
    Sort,
    SqlFilter,
    build,
)
from uql.compiler.parser import parse
from uql.compiler.physical import Block, Goal
from uql.compiler.planner import plan as physical_plan
from uql.compiler.rules import CHOICES, NAMES, RULES, _everywhere, apply, known_names
from uql.compiler.syntax import Column
from uql.compiler.valid import LOGICAL, PHYSICAL, check_physical, problems

GOLDEN = Path(__file__).parents[1] / "golden" / "rules"
TABLES = """
CREATE TABLE reviews AS SELECT i AS id, ['Alien', 'Brazil'][1 + i % 2] AS film, 1 + i % 5 AS stars,
    CASE WHEN i % 7 <> 6 THEN 'Number ' || i || ': a film that I shall not forget so soon' END AS text,
    'Seen in row ' || i || ', with some noise from behind us' AS remark FROM range(24) t(i);
CREATE TABLE films AS SELECT * FROM (VALUES ('Alien', 1979, 'A crew meets a creature in deep space'),
    ('Brazil', 1985, 'A clerk dreams of flying from a state of files')) t(title, year, plot);
"""


@pytest.fixture(scope="module")
def con() -> Iterator[uql.Connection]:
    connection = uql.connect(model=HashModel({"rare": 0.1, "often": 0.9}), ledger=":memory:", budget="all")
    for statement in TABLES.strip().rstrip(";").split(";\n"):
        connection.session.duck.execute(statement)
    yield connection
    connection.close()


def logical(con: uql.Connection, query: str) -> LogicalPlan:
    return build(bind(parse(query), con.session.catalog, text=query).query)


# ----------------------------------------------------------------------------------------------------------- before, after
def cases(path: Path) -> list[tuple[str, str]]:
    blocks = path.read_text(encoding="utf-8").strip("\n").split("\n====\n")
    return [(query.strip(), said.strip("\n")) for query, _, said in (block.partition("\n----") for block in blocks)]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.__name__)
def test_a_rule_does_what_its_fixture_shows(
    rule: Callable[[LogicalPlan], LogicalPlan], con: uql.Connection, update_golden: bool
) -> None:
    path = GOLDEN / f"{rule.__name__}.test"
    found = []
    for query, _ in cases(path):
        before = logical(con, query)
        for earlier in RULES[: RULES.index(rule)]:
            before = _everywhere(before, earlier)
        after = _everywhere(before, rule)
        shown = "the same" if after is before else "\n".join(tree(after))
        found.append((query, "\n".join(tree(before)) + "\n----\n" + shown))
    if update_golden:
        path.write_text("\n====\n".join(f"{q}\n----\n{said}" for q, said in found) + "\n", encoding="utf-8")
    for (query, now), (_, wanted) in zip(found, cases(path), strict=True):
        assert now == wanted, query


def test_every_rule_has_a_fixture_where_it_does_something_and_one_where_not() -> None:
    for rule in RULES:
        said = [after.rpartition("\n----\n")[2] for _, after in cases(GOLDEN / f"{rule.__name__}.test")]
        assert "the same" in said
        assert any(s != "the same" for s in said)


# --------------------------------------------------------------------------------------------------- the answer stays
CONCRETE = ["stars > 2", "stars = 1", "film = 'Alien'", "id < 12", "text IS NOT NULL", "NULL", "stars IN (1, 2)"]
SEMANTIC = [
    '"often"',  # first, as what Hypothesis begins with: most rows pass
    '"rare"',
    '"one" USING (text)',
    '"two" USING (remark)',
    '"the number" > 4',
    "\"the kind\" IN ('a', 'b')",
]


def combined(below: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    two = st.tuples(below, st.sampled_from(["AND", "OR"]), below).map(lambda t: f"({t[0]} {t[1]} {t[2]})")
    return st.one_of(two, below.map(lambda s: f"NOT {s}"))


conditions = st.recursive(st.sampled_from([*SEMANTIC, *SEMANTIC, *CONCRETE]), combined, max_leaves=6)
items = st.lists(
    st.sampled_from(
        [
            '"the name" AS n',
            '"the number" + stars AS s',
            "stars",
            "film",
            '"rare"::BOOLEAN AS r',
            '("two" USING (remark))::BOOLEAN AS t',
        ]
    ),
    max_size=3,
    unique=True,
)


@st.composite
def queries(draw: st.DrawFn) -> str:
    where = draw(st.one_of(st.just(""), conditions.map(lambda c: f" WHERE {c}")))
    if draw(st.booleans()):
        chosen = ", ".join(["id", *draw(items)])
        key = draw(st.sampled_from(["id", "stars DESC, id", '"the number", id']))
        limit = draw(st.sampled_from(["", " LIMIT 3", " LIMIT 5 OFFSET 2", " LIMIT 0"]))
        distinct = "DISTINCT " if draw(st.booleans()) and key == "id" else ""
        return f"SELECT {distinct}{chosen} FROM reviews{where} ORDER BY {key}{limit}"
    group = draw(st.sampled_from(["film", '"the main topic"', "\"the kind\"::ENUM('a', 'b')"]))
    having = draw(st.sampled_from(["", " HAVING COUNT(*) > 2"]))
    if group == "film":
        having = draw(st.sampled_from([having, " HAVING film > 'Alien' AND COUNT(*) > 2", " HAVING film = 'Alien'"]))
    total = draw(st.sampled_from(["COUNT(*)", 'SUM("the number")', "AVG(stars)"]))
    return f"SELECT g, {total} AS a FROM reviews{where} GROUP BY {group} AS g{having} ORDER BY g, a"


FORMS = 6


@st.composite
def nested(draw: st.DrawFn, form: int) -> str:
    """Queries over sub-queries, unions, joins and groups with summaries, one of six forms."""
    inside = draw(conditions)
    outside = draw(
        st.sampled_from(["d.stars > 2", "d.film = 'Alien' AND d.id < 15", "d.n > 3", "d.n > 3 OR d.stars = 1"])
    )
    items_ = 'id, film, stars, "the number"::INTEGER AS n, "the name" AS unseen'
    one = f"SELECT {items_} FROM reviews WHERE {inside}"
    match form:
        case 0:
            return f"SELECT id, n FROM ({one}) d WHERE {outside} ORDER BY id"
        case 1:
            both = f'{one} UNION ALL SELECT {items_} FROM reviews WHERE "often"'
            return f"WITH d AS ({both}) SELECT id, n FROM d WHERE {outside} ORDER BY id, n"
        case 2:
            kind = draw(st.sampled_from(["JOIN", "LEFT JOIN", "RIGHT JOIN"]))
            return f"SELECT d.id, f.title FROM ({one}) d {kind} films f ON d.film = f.title WHERE f.year > 1980 ORDER BY d.id, f.title"
        case 3:
            return f"SELECT f.title, d.id FROM films f LEFT JOIN ({one}) d ON d.film = f.title ORDER BY f.title, d.id"
        case 4:
            return f"SELECT id FROM ({one} ORDER BY id) d LIMIT 3 OFFSET 1"
    having = draw(st.sampled_from(["", " HAVING COUNT(*) > 4", ' HAVING COUNT(*) > 4 AND "they are angry"']))
    return f'SELECT film, COUNT(*) AS n, "what is said" AS s FROM reviews WHERE {inside} GROUP BY film{having} ORDER BY n DESC, film LIMIT 1'


def answer(con: uql.Connection, query: str, disabled: tuple[str, ...]) -> list[tuple[object, ...]]:
    with con.settings(disabled_rules=disabled):
        return con.uql(query).fetchall()


@pytest.mark.thorough
@pytest.mark.parametrize("form", range(FORMS))
@settings(max_examples=4, deadline=None, derandomize=True, database=None)
@given(data=st.data(), alone=st.sampled_from(RULES))
def test_what_goes_into_sub_queries_keeps_the_answer(
    con: uql.Connection, form: int, data: st.DataObject, alone: Callable[[LogicalPlan], LogicalPlan]
) -> None:
    query = data.draw(nested(form))
    wanted = answer(con, query, NAMES)
    assert answer(con, query, ()) == wanted
    assert answer(con, query, tuple(name for name in NAMES if name != alone.__name__)) == wanted


@pytest.mark.thorough
@settings(max_examples=25, deadline=None, derandomize=True, database=None)
@given(query=queries(), without=st.sampled_from(NAMES), alone=st.sampled_from(NAMES))
def test_each_rule_and_all_together_keep_the_answer(con: uql.Connection, query: str, without: str, alone: str) -> None:
    wanted = answer(con, query, NAMES)
    assert answer(con, query, ()) == wanted
    assert answer(con, query, (without,)) == wanted
    assert answer(con, query, tuple(name for name in NAMES if name != alone)) == wanted


def test_a_rule_is_switched_off_by_name(con: uql.Connection) -> None:
    query = 'SELECT id FROM reviews WHERE "rare" AND stars > 2 ORDER BY id'
    on = con.uql(query)
    off = con.uql(f"{query} WITH (disabled_rules = 'sql_before_model')")
    assert "WHERE reviews.stars > 2" in on.explain()
    assert "WHERE" not in off.explain()
    assert on.fetchall() == off.fetchall()
    con.uql("SET uql.disabled_rules = 'sql_before_model, limit_before_map'")
    assert "WHERE" not in con.uql(query).explain()
    assert con.uql(query).fetchall() == on.fetchall()
    con.uql("RESET uql.disabled_rules")
    assert "WHERE" in con.uql(query).explain()


def test_an_unknown_rule_is_an_error_with_the_list(con: uql.Connection) -> None:
    for statement in (
        "SET uql.disabled_rules = 'sql_befor_model'",
        "SELECT id FROM reviews WHERE \"rare\" WITH (disabled_rules = 'sql_befor_model')",
    ):
        with pytest.raises(ConfigError) as error:
            con.uql(statement).explain()
        assert "sql_befor_model" in error.value.message
        for name in NAMES:
            assert name in str(error.value.help)
    assert known_names(CHOICES) == CHOICES


# ------------------------------------------------------------------------------------------------------------- guilty rules
def drops_a_column(plan: LogicalPlan) -> LogicalPlan:
    return replace(plan, items=plan.items[1:]) if isinstance(plan, Project) else plan


def renames_a_column(plan: LogicalPlan) -> LogicalPlan:
    return replace(plan, items=(replace(plan.items[0], name="x"),)) if isinstance(plan, Aggregate) else plan


def changes_a_type(plan: LogicalPlan) -> LogicalPlan:
    return (
        replace(plan, items=tuple(replace(i, type="BLOB") for i in plan.items)) if isinstance(plan, Project) else plan
    )


def forgets_the_map(plan: LogicalPlan) -> LogicalPlan:
    return plan.input if isinstance(plan, SemMap) else plan


def groups_twice(plan: LogicalPlan) -> LogicalPlan:
    return SemGroup(plan, plan.columns) if isinstance(plan, SemGroup) else plan


def asks_duckdb(plan: LogicalPlan) -> LogicalPlan:
    return SqlFilter(plan.input, plan.condition) if isinstance(plan, SemFilter) else plan


def asks_the_model_in_vain(plan: LogicalPlan) -> LogicalPlan:
    return SemFilter(plan.input, plan.condition) if isinstance(plan, SqlFilter) else plan


def filters_groups(plan: LogicalPlan) -> LogicalPlan:
    return SqlFilter(plan, Column("reviews", "id")) if isinstance(plan, Aggregate) else plan


def reads_a_stranger(plan: LogicalPlan) -> LogicalPlan:
    return SqlFilter(plan.input, Column("films", "year")) if isinstance(plan, SqlFilter) else plan


def sorts_too_early(plan: LogicalPlan) -> LogicalPlan:
    match plan:
        case Sort(input=SemMap(input=below) as asked) as sort:
            return replace(asked, input=replace(sort, input=below))
    return plan


def makes_rows_distinct(plan: LogicalPlan) -> LogicalPlan:
    return Distinct(plan.input) if isinstance(plan, Project) else plan


BROKEN = [
    (drops_a_column, "SELECT id, film FROM reviews WHERE \"rare\"", "columns"),
    (renames_a_column, 'SELECT COUNT(*) AS n FROM reviews WHERE "rare"', "columns"),
    (changes_a_type, 'SELECT id FROM reviews WHERE "rare"', "BLOB"),
    (forgets_the_map, 'SELECT id, "the name" AS n FROM reviews', "was not asked"),
    (groups_twice, 'SELECT g, COUNT(*) FROM reviews GROUP BY "the kind" AS g', "asked twice"),
    (asks_duckdb, 'SELECT id FROM reviews WHERE "rare"', "DuckDB cannot answer"),
    (asks_the_model_in_vain, 'SELECT id FROM reviews WHERE stars > 2 AND "rare"', "holds no quoted text"),
    (filters_groups, 'SELECT film, COUNT(*) FROM reviews WHERE "rare" GROUP BY film', "its rows are gone"),
    (reads_a_stranger, 'SELECT id FROM reviews WHERE stars > 2 AND "rare"', "films.year is not in scope"),
    (sorts_too_early, 'SELECT id FROM reviews ORDER BY "how angry it is"', "was not asked"),
    (makes_rows_distinct, 'SELECT id FROM reviews WHERE "rare"', "not Project"),
]  # fmt: skip


@pytest.mark.parametrize(("rule", "query", "said"), BROKEN, ids=lambda x: getattr(x, "__name__", ""))
def test_a_rule_that_breaks_a_plan_is_named(
    con: uql.Connection, rule: Callable[[LogicalPlan], LogicalPlan], query: str, said: str
) -> None:
    with pytest.raises(PlanError) as error:
        apply(logical(con, query), rules=(*RULES, rule))
    assert error.value.code == "UQL399"
    assert rule.__name__ in error.value.message
    assert said in error.value.message


def test_a_broken_rule_fails_the_query_and_says_how_to_go_on(
    con: uql.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("uql.compiler.rules.apply.__defaults__", ((), (*RULES, drops_a_column)))
    with pytest.raises(PlanError) as error:
        con.uql('SELECT id, film FROM reviews WHERE "rare"').fetchall()
    assert "drops_a_column" in str(error.value.help)


def test_every_node_has_its_checks() -> None:
    nodes = {c for c in vars(logical_nodes).values() if isinstance(c, type) and issubclass(c, LogicalPlan)}
    assert set(LOGICAL) == nodes - {LogicalPlan, OneInput}
    assert all(LOGICAL.values())
    assert PHYSICAL


BROKEN_BLOCKS = [
    ("a stage asks nothing", lambda b: b.with_requests(values=(replace(b.filter.stages[0], columns=()),))),
    ("a text is asked twice", lambda b: b.with_requests(values=b.values.stages * 2)),
    ("the WHERE asks other texts than it holds", lambda b: b.with_requests(b.filter.stages[:1])),
    ("one request shows two sets of columns", lambda b: b.with_requests((fused(b),))),
    (
        "DuckDB is given a quoted text",
        lambda b: replace(b, scan=replace(b.scan, where=b.filter.formula.leaves[0].expr)),
    ),
    ("it stops at a LIMIT that it does not have", lambda b: replace(b, filter=replace(b.filter, goal=Goal.FIRST))),
    ("it is estimated and has no aggregate", lambda b: replace(b, filter=replace(b.filter, goal=Goal.ESTIMATE))),
    ("a text is used and never asked", lambda b: b.with_requests(values=())),
]


def fused(block: Block) -> object:
    return replace(block.filter.stages[0], columns=tuple(c for s in block.filter.stages for c in s.columns))


@pytest.mark.parametrize(("said", "change"), BROKEN_BLOCKS, ids=[said for said, _ in BROKEN_BLOCKS])
def test_a_block_that_is_not_valid_is_refused(con: uql.Connection, said: str, change: Callable[[Block], Block]) -> None:
    query = 'SELECT id, "the name" AS n FROM reviews WHERE "one" USING (text) AND "two" USING (remark)'
    bound = bind(parse(query), con.session.catalog, text=query).query
    assert isinstance(bound, BoundSelect)
    block = physical_plan(bound)
    assert isinstance(block, Block)
    with pytest.raises(PlanError) as error:
        check_physical(change(block), "planner")
    assert error.value.message.endswith(said)


@settings(max_examples=40, deadline=None, derandomize=True, database=None)
@given(query=queries())
def test_every_plan_that_is_built_is_valid(con: uql.Connection, query: str) -> None:
    assert not list(problems(logical(con, query)))
    assert not list(problems(apply(logical(con, query))))

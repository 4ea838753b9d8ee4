"""The binder: kinds, types, scopes, parameters, nested queries and the errors that say where."""

from __future__ import annotations

import datetime as dt
from decimal import Decimal
from functools import cache

import duckdb
import pytest
from hypothesis import given, settings, strategies as st

from uql.base.errors import BindError, ConfigError, UQLError
from uql.base.schema import Modality
from uql.base.settings import Settings
from uql.compiler.binder import bind
from uql.compiler.bound import Bound, BoundJoin, BoundSelect, BoundStatement, BoundTable, BoundUnion
from uql.compiler.parser import parse
from uql.compiler.sql import query_sql
from uql.compiler.syntax import Binary, Column, Exists, InList, Name, Number, Quoted, Select, String
from uql.compiler.virtual import SemText, Virtual, VirtualColumn
from uql.compiler.walk import walk
from uql.operators import CONDITION, GROUP, LABEL, SUMMARY, VALUE
from uql.sources.catalog import Catalog

TABLES = """
CREATE TABLE reviews AS SELECT i AS id, repeat('some words ', 10) AS text, i % 5 AS stars, 'Rome' AS city FROM range(20) r(i);
CREATE TABLE films AS SELECT i AS id, repeat('a long plot ', 9) AS plot, {'year': 1990 + i} AS made FROM range(9) r(i);
"""


@cache
def shared() -> Catalog:
    connection = duckdb.connect()
    connection.execute(TABLES)
    return Catalog(connection)


@pytest.fixture(scope="module")
def catalog() -> Catalog:
    return shared()


def bound(catalog: Catalog, text: str, **parameters: object) -> BoundStatement:
    query = parse(text)
    assert isinstance(query, Select) or type(query).__name__ == "Union"
    return bind(query, catalog, text=text, parameters=parameters)


def select(catalog: Catalog, text: str, **parameters: object) -> BoundSelect:
    query = bound(catalog, text, **parameters).query
    assert isinstance(query, BoundSelect)
    return query


def virtuals(catalog: Catalog, text: str) -> list[VirtualColumn]:
    return list(select(catalog, text).virtuals)


def error(catalog: Catalog, text: str, **parameters: object) -> UQLError:
    with pytest.raises(UQLError) as caught:
        bound(catalog, text, **parameters)
    return caught.value


# ------------------------------------------------------------------------------------------------------ virtual columns
def test_the_same_text_is_one_virtual_column_however_often_it_stands(catalog: Catalog) -> None:
    query = select(
        catalog, 'SELECT "the price"::DOUBLE AS p FROM reviews WHERE "the price" > 3 AND p < 9 ORDER BY "the price", p'
    )
    assert [v.type for v in query.virtuals] == ["DOUBLE"]
    assert query.order_by[0].expr == query.order_by[1].expr == query.items[0].expr


def test_two_casts_of_one_text_are_one_virtual_column_of_the_widest_type(catalog: Catalog) -> None:
    for types, widest in (("DOUBLE VARCHAR", "VARCHAR"), ("INTEGER DOUBLE", "DOUBLE"), ("DATE TIMESTAMP", "TIMESTAMP")):
        items = ", ".join(f'"the price"::{type}' for type in types.split())
        assert [v.type for v in virtuals(catalog, f"SELECT {items} FROM reviews")] == [widest]


def test_a_text_that_is_selected_and_a_condition_is_boolean(catalog: Catalog) -> None:
    (column,) = virtuals(catalog, 'SELECT "is so" AS p FROM reviews WHERE p')
    assert (column.operator, column.type) == (CONDITION, "BOOLEAN")


def test_labels_of_a_text_are_united_over_the_query(catalog: Catalog) -> None:
    (column,) = virtuals(catalog, """SELECT id FROM reviews WHERE "the mood" IN ('a', 'b') OR "the mood" = 'c'""")
    assert (column.operator, column.labels, column.none_of_these) == (LABEL, ("a", "b", "c"), True)


def test_an_enum_is_closed_unless_it_names_none_of_these(catalog: Catalog) -> None:
    (closed,) = virtuals(catalog, """SELECT "the mood"::ENUM('a', 'b') FROM reviews""")
    (opened,) = virtuals(catalog, """SELECT "the mood"::ENUM('a', 'none of these') FROM reviews""")
    assert (closed.none_of_these, opened.none_of_these) == (False, True)


def test_a_list_is_the_label_as_a_whole_item_and_a_condition_in_where(catalog: Catalog) -> None:
    query = select(catalog, """SELECT "the mood" IN ('a', 'b') AS m FROM reviews WHERE "the mood" IN ('a')""")
    assert isinstance(query.items[0].expr, Virtual) and query.items[0].type == "VARCHAR"
    assert isinstance(query.where, InList) and isinstance(query.where.operand, Virtual)


def test_labels_from_a_query_are_kept_as_a_bound_query(catalog: Catalog) -> None:
    (column,) = virtuals(catalog, 'SELECT id FROM reviews WHERE "the town" IN (SELECT city FROM reviews)')
    assert column.operator is LABEL and isinstance(column.label_query, Bound)


def test_beside_aggregates_a_text_is_said_of_the_group_and_inside_them_of_the_row(catalog: Catalog) -> None:
    query = select(catalog, 'SELECT city, "the gist", AVG("the price") FROM reviews GROUP BY city HAVING "all are sad"')
    assert [(v.operator, v.type) for v in query.virtuals] == [
        (SUMMARY, "VARCHAR"),
        (VALUE, "DOUBLE"),
        (SUMMARY, "BOOLEAN"),
    ]


def test_a_name_given_in_group_by_is_known_in_select_having_and_order(catalog: Catalog) -> None:
    query = select(
        catalog,
        "SELECT g, COUNT(*) AS n FROM reviews GROUP BY \"the topic\" INTO 4 MANY AS g HAVING g <> 'x' ORDER BY g",
    )
    (column,) = query.virtuals
    assert (column.operator, column.into, column.many) == (GROUP, 4, True)
    assert query.group_by[0].name == "g" and query.items[0].expr == query.order_by[0].expr


def test_a_condition_of_a_join_reads_both_sides(catalog: Catalog) -> None:
    query = select(catalog, 'SELECT r.id FROM reviews r JOIN films f ON r.id = f.id AND "{r.text} is {f.plot}"')
    assert isinstance(query.source, BoundJoin) and query.virtuals[0].reads == (Column("r", "text"), Column("f", "plot"))
    assert any(isinstance(node, Virtual) for node in walk(query.source.on))


def test_a_structured_hole_is_part_of_the_question_and_not_of_the_row(catalog: Catalog) -> None:
    (column,) = virtuals(catalog, 'SELECT id FROM reviews WHERE "{text} is about {city}"')
    assert column.reads == (Column("reviews", "text"),) and column.holes == (Column("reviews", "city"),)


def test_a_cast_to_image_makes_the_column_an_image(catalog: Catalog) -> None:
    query = select(catalog, 'SELECT city::IMAGE AS photo FROM reviews WHERE "a cat is seen"')
    assert isinstance(query.source, BoundTable)
    field = query.source.table.field("city")
    assert field is not None and field.modality is Modality.IMAGE
    assert Column("reviews", "city") in query.virtuals[0].reads


def test_virtual_columns_are_numbered_in_the_order_in_which_they_appear(catalog: Catalog) -> None:
    found = virtuals(catalog, 'SELECT "first of all", "second of all" FROM reviews WHERE "third of all"')
    assert [(v.id, v.text.split()[0]) for v in found] == [(0, "first"), (1, "second"), (2, "third")]


# --------------------------------------------------------------------------------------------------------------- scopes
def test_a_column_goes_before_an_alias_in_where_and_after_it_in_order_by(catalog: Catalog) -> None:
    query = select(catalog, "SELECT id AS stars FROM reviews WHERE stars > 1 ORDER BY stars")
    assert isinstance(query.where, Binary) and query.where.left == Column("reviews", "stars")
    assert query.order_by[0].expr == Column("reviews", "id")


def test_a_star_holds_every_column_once_after_using_and_no_virtual_column(catalog: Catalog) -> None:
    query = select(catalog, 'SELECT * FROM reviews JOIN films USING (id) WHERE "good one"')
    assert [item.name for item in query.items] == ["id", "text", "stars", "city", "plot", "made"]


def test_a_field_of_a_struct_is_reached_by_a_dot(catalog: Catalog) -> None:
    assert select(catalog, "SELECT made.year, f.made.year AS y FROM films f").items[1].type == "BIGINT"


def test_a_correlated_sub_query_says_so(catalog: Catalog) -> None:
    query = select(catalog, "SELECT id FROM reviews r WHERE EXISTS (SELECT 1 FROM films f WHERE f.id = r.id)")
    assert isinstance(query.where, Exists) and isinstance(query.where.query, Bound) and query.where.query.correlated
    plain = select(catalog, "SELECT id FROM reviews r WHERE EXISTS (SELECT 1 FROM films f)")
    assert isinstance(plain.where, Exists) and isinstance(plain.where.query, Bound)
    assert not plain.where.query.correlated


def test_a_statement_is_semantic_when_only_a_sub_query_is(catalog: Catalog) -> None:
    assert bound(catalog, 'SELECT id FROM (SELECT id FROM reviews WHERE "good one") x').semantic
    assert not bound(catalog, "SELECT id FROM reviews").semantic


def test_text_that_passes_through_a_sub_query_stays_text(catalog: Catalog) -> None:
    (column,) = virtuals(
        catalog, 'SELECT id FROM (SELECT id, upper(text) AS loud, city FROM reviews) x WHERE "good one"'
    )
    assert column.reads == (Column("x", "loud"),)


@pytest.mark.parametrize(
    "items", ["1 AS a, 2 AS a_1, 3 AS a", "1 AS a, 2 AS a, 3 AS a_1", "1 AS a, 2 AS A, 3 AS a, 4 AS A_1"]
)
def test_columns_of_a_sub_query_are_numbered_as_duckdb_does(catalog: Catalog, items: str) -> None:
    with duckdb.connect() as con:
        names = con.sql(f"SELECT * FROM (SELECT {items})").columns
    query = select(catalog, f'SELECT * FROM (SELECT {items}, text FROM reviews) WHERE "it is good"')
    assert [item.name for item in query.items] == [*names, "text"]


def test_ordinals_stand_for_items(catalog: Catalog) -> None:
    query = select(catalog, "SELECT city, COUNT(*) FROM reviews GROUP BY 1 ORDER BY 2 DESC")
    assert query.group_by[0].expr == query.items[0].expr and query.order_by[0].expr == query.items[1].expr


def test_a_union_has_the_types_of_both_sides(catalog: Catalog) -> None:
    query = bound(catalog, "SELECT 1 AS x UNION ALL SELECT 2.5 UNION ALL SELECT 3 ORDER BY x LIMIT 2").query
    assert isinstance(query, BoundUnion) and query.items[0].type.startswith("DECIMAL") and query.limit == 2


def test_options_go_over_the_settings(catalog: Catalog) -> None:
    statement = bound(catalog, "SELECT id FROM reviews WITH (budget = 7, exact)")
    assert statement.options == (("budget", 7), ("exact", True))


@pytest.mark.parametrize("count", [2, 40, 2_000])
def test_a_long_chain_of_conditions_binds_without_deep_recursion(catalog: Catalog, count: int) -> None:
    text = "SELECT COUNT(*) FROM reviews WHERE " + " OR ".join(f"id = {i}" for i in range(count))
    sql = query_sql(bound(catalog, text).query)
    assert catalog.value(sql) == min(count, 20)


# ----------------------------------------------------------------------------------------------------------- parameters
@pytest.mark.parametrize(
    "value",
    [1, -2, 2.5, -0.0, 1e-9, Decimal("1.50"), "it's", "", True, None, dt.date(2024, 2, 29), dt.time(1, 2, 3),
     dt.datetime(2024, 1, 1, 5, 6, 7, 8), dt.timedelta(days=2, seconds=1), [1, 2], b"\x00a\xff", float("inf")],
    ids=repr,
)  # fmt: skip
def test_a_parameter_comes_back_from_duckdb_as_it_went_in(catalog: Catalog, value: object) -> None:
    found = catalog.value(query_sql(bound(catalog, "SELECT $v AS v", v=value).query))
    assert found == value


@settings(max_examples=60, deadline=None, database=None, derandomize=True)
@given(text=st.text(alphabet=st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=30))
def test_no_text_in_a_parameter_can_leave_its_quotes(text: str) -> None:
    catalog = shared()
    assert catalog.value(query_sql(bound(catalog, "SELECT $v AS v", v=text).query)) == text


def test_a_list_parameter_fills_an_in_list(catalog: Catalog) -> None:
    query = select(catalog, "SELECT id FROM reviews WHERE city IN ($towns)", towns=["Rome", "Oslo"])
    assert isinstance(query.where, InList) and query.where.items == (String("Rome"), String("Oslo"))


def test_a_sem_text_is_a_virtual_column_even_when_a_column_has_its_name(catalog: Catalog) -> None:
    query = select(catalog, "SELECT $a AS a FROM reviews WHERE $b", a=SemText("stars", "INTEGER"), b=SemText("angry"))
    assert [(v.text, v.type) for v in query.virtuals] == [("stars", "INTEGER"), ("angry", "BOOLEAN")]


@pytest.mark.parametrize("type", ["INTEGER) AS x, (SELECT 1", "nonsense(((", "INTEGER FROM reviews --", ""])
def test_a_sem_text_of_no_type_is_refused(catalog: Catalog, type: str) -> None:
    assert error(catalog, "SELECT $a FROM reviews", a=SemText("x", type)).code == "UQL210"


def test_missing_unused_and_odd_parameters_are_named(catalog: Catalog) -> None:
    assert "$day" in error(catalog, "SELECT $day").message
    assert "$night" in error(catalog, "SELECT $day", day=1, night=2).message
    assert "object" in error(catalog, "SELECT $day", day=object()).message


# --------------------------------------------------------------------------------------------------------------- errors
@pytest.mark.parametrize(
    ("text", "code", "place"),
    [
        ("SELECT id FROM nope", "UQL201", "nope"),
        ("SELECT id FROM 'nope.csv'", "UQL501", "'nope.csv'"),
        ("SELECT idd FROM reviews", "UQL202", "idd"),
        ("SELECT x.id FROM reviews", "UQL202", "x.id"),
        ("SELECT id FROM reviews, films", "UQL204", "id"),
        ("SELECT 1 FROM reviews JOIN reviews ON true", "UQL204", "reviews"),
        ('SELECT "of {nope}" FROM reviews', "UQL205", '"of {nope}"'),
        ('SELECT id FROM reviews WHERE "a b" AND "a b" > 2', "UQL206", '"a b"'),
        ('SELECT "is so"::VARCHAR AS p FROM reviews WHERE p', "UQL206", "p"),
        ('SELECT "is so"', "UQL207", '"is so"'),
        ("SELECT id FROM reviews LIMIT -1", "UQL208", "-1"),
        ("SELECT id FROM reviews LIMIT 1.5", "UQL208", "1.5"),
        ("SELECT id FROM reviews OFFSET NULL", "UQL208", "NULL"),
        ("SELECT id FROM reviews ORDER BY 2", "UQL208", "2"),
        ("SELECT city FROM reviews GROUP BY 0", "UQL208", "0"),
        ("SELECT id, foo(stars) FROM reviews", "UQL209", "foo(stars)"),
        ("SELECT cnt(*) FROM reviews", "UQL212", "cnt(*)"),
        ('SELECT id FROM reviews WHERE "mood" BETWEEN "low" AND 30', "UQL206", '"low"'),
        ('SELECT id FROM reviews WHERE "mood" BETWEEN 3 AND "high"', "UQL206", '"high"'),
        ("SELECT id FROM reviews WHERE COUNT(*) > 1", "UQL209", "COUNT(*)"),
        ("SELECT id, COUNT(*) FROM reviews", "UQL209", "id"),
        ("SELECT SUM(MAX(id)) FROM reviews", "UQL209", "SUM(MAX(id))"),
        ("SELECT id FROM reviews UNION SELECT id, id FROM reviews", "UQL211", None),
        ("SELECT id FROM reviews WHERE id IN (SELECT id, id FROM films)", "UQL211", None),
        ("SELECT city, COUNT(*) FROM reviews GROUP BY city INTO 3", "UQL212", "city"),
        ("SELECT TRY id FROM reviews", None, None),
        ("SELECT id FROM reviews WITH (budgt = 3)", "UQL105", None),
        ("SELECT id FROM reviews WITH (budget = -3)", "UQL105", None),
    ],
)
def test_errors_have_a_code_and_a_place(catalog: Catalog, text: str, code: str | None, place: str | None) -> None:
    found = error(catalog, text)
    assert isinstance(found, UQLError) and found.text == text and found.start >= 0
    assert code is None or found.code == code
    assert place is None or text[found.start : found.end] == place


@pytest.mark.parametrize(
    ("text", "help"),
    [
        ("SELECT cnt(*) FROM reviews", "did you mean count?"),
        ("SELECT sum(*) FROM reviews", "sum takes a value, as in sum(x); COUNT(*) counts rows"),
        (
            'SELECT id FROM reviews WHERE "mood" BETWEEN "low" AND 30',
            'write "mood"::DOUBLE BETWEEN PROMPT "low"::DOUBLE AND …',
        ),
        ("SELECT id FROM reviews WHERE text BETWEEN 3 AND stars", "a value and its bounds have one type"),
    ],
)
def test_errors_say_what_to_write(catalog: Catalog, text: str, help: str) -> None:
    assert help in (error(catalog, text).help or "")


@pytest.mark.parametrize(
    ("sample", "told"), [("5 ROWS", "reservoir(5 ROWS) REPEATABLE (1)"), ("reservoir(5 ROWS) REPEATABLE (1)", None)]
)
def test_a_sample_without_a_seed_beside_a_text_says_that_a_repeat_pays_anew(
    catalog: Catalog, sample: str, told: str | None
) -> None:
    text = f'SELECT id FROM reviews TABLESAMPLE {sample} WHERE "it is sad"'
    warnings = bind(parse(text), catalog, text=text).warnings
    assert [told] == [told for warning in warnings if told in warning] if told else not warnings


def test_a_wrong_setting_given_by_hand_is_a_config_error(catalog: Catalog) -> None:
    with pytest.raises(ConfigError):
        Settings().with_values(nonsense=1)


def test_a_tree_made_by_hand_without_places_binds_too(catalog: Catalog) -> None:
    from uql.compiler.syntax import SelectItem, TableName

    tree = Select((SelectItem(Name(("id",))), SelectItem(Quoted("the gist of it"))), TableName(("reviews",)))
    statement = bind(tree, catalog)
    assert [item.name for item in statement.query.items] == ["id", "the gist of it"]
    with pytest.raises(BindError):
        bind(Number("1"), catalog)  # type: ignore[arg-type]


@settings(max_examples=150, deadline=None, database=None, derandomize=True)
@given(data=st.data())
def test_whatever_parses_binds_or_says_where_it_does_not(data: st.DataObject) -> None:
    parts = st.sampled_from(
        ["id", "stars", "text", '"is sad"', '"stars"', "3", "'x'", 'COUNT(*)', 'SUM("price of it")', "NULL", "$p",
         '"mood" IN (\'a\')', '"mood of it" > 2', "nope", "(SELECT MAX(id) FROM films)", '"of {city}"', "made"]
    )  # fmt: skip
    a, b, c, d = (data.draw(parts) for _ in range(4))
    text = f"SELECT {a} AS a FROM reviews WHERE {b} AND stars = {c} GROUP BY {d} ORDER BY {a}, {c} LIMIT 3"
    try:
        statement = bind(parse(text), shared(), text=text, parameters={"p": 1} if "$p" in text else {})
    except UQLError as error:
        assert error.code.startswith("UQL") and str(error)
        return
    assert not any(isinstance(n, Name | Quoted) for item in statement.query.items for n in walk(item.expr))


@pytest.mark.parametrize(
    ("query", "type"),
    [
        ('SELECT id, "the text is rude" AS c FROM reviews', "BOOLEAN"),
        ("SELECT {'a': \"the text is rude\"} AS c FROM reviews", "STRUCT(a BOOLEAN)"),
        ('SELECT ["the text is rude"] AS c FROM reviews', "BOOLEAN[]"),
        ('SELECT CASE WHEN id = 1 THEN "the text is rude" END AS c FROM reviews', "BOOLEAN"),
        ("SELECT CASE WHEN id = 1 THEN \"the text is rude\" ELSE 'n/a' END AS c FROM reviews", "VARCHAR"),
        ('SELECT city, "the texts are rude" AS c FROM reviews GROUP BY city', "BOOLEAN"),
        ("SELECT c FROM (SELECT \"the text is rude\" AS c FROM reviews) x WHERE c = 'yes'", "BOOLEAN"),
        ("SELECT c FROM (SELECT \"the text is rude\" AS c FROM reviews) x WHERE c LIKE '%x%'", "VARCHAR"),
        ("SELECT c FROM (SELECT \"the text is rude\" AS c FROM reviews) x WHERE c IN ('a', 'b')", "VARCHAR"),
        ('SELECT upper(c) AS c FROM (SELECT "the text is rude" AS c FROM reviews) x', "VARCHAR"),
        ('SELECT "the text is rude"::VARCHAR AS c FROM reviews', "VARCHAR"),
        ('SELECT "the texts that are rude" AS c FROM reviews', "VARCHAR"),
    ],
)
def test_a_statement_without_a_type_is_true_or_false(catalog, query, type):
    assert select(catalog, query).items[-1].type == type


def test_a_statement_by_which_alone_rows_are_ordered_is_a_score(catalog):
    (column,) = virtuals(catalog, 'SELECT id FROM reviews ORDER BY "the text is rude" DESC LIMIT 3')
    assert column.type == "DOUBLE"


@pytest.mark.parametrize(
    ("query", "warned"),
    [
        ('SELECT upper("the text is rude") FROM reviews', ["VARCHAR"]),
        ('SELECT sqrt("the text is rude") FROM reviews', ["DOUBLE"]),
        ('SELECT id FROM reviews WHERE "the text is rude" > 3', ["DOUBLE"]),
        ('SELECT "the text is rude" FROM reviews', []),
        ('SELECT "the text is rude"::DOUBLE FROM reviews', []),
        ('SELECT upper("the main topic") FROM reviews', []),
    ],
)
def test_a_statement_whose_place_asks_for_another_type_is_warned_of(catalog, query, warned):
    warnings = bound(catalog, query).warnings
    assert [w for w in warnings if "true or false" in w] == [
        f'UQL102: "the text is rude" says what is true or false, and is asked as {type} here; "the text is rude"::BOOLEAN asks whether '
        'it holds, and a number is asked for by its name, as in "how much …"::DOUBLE'
        for type in warned
    ]


def test_a_text_among_the_values_that_a_number_is_compared_with_is_refused(catalog):
    failure = error(catalog, 'SELECT id FROM reviews WHERE stars IN ("the number of stars", 2)')
    assert failure.code == "UQL206" and 'PROMPT "the number of stars"' in failure.help


@pytest.mark.parametrize(
    "query",
    [
        'SELECT to_json("the text is rude") FROM reviews',
        "SELECT 'x' || \"the text is rude\" FROM reviews",
        'SELECT typeof(c) FROM (SELECT "the text is rude" AS c FROM reviews) x',
    ],
)
def test_a_function_that_takes_any_type_leaves_a_statement_true_or_false(catalog, query):
    query = bound(catalog, query).query
    source = query.source
    (column,) = query.virtuals or source.query.virtuals
    assert column.type == "BOOLEAN"


def test_of_a_statement_that_is_added_up_one_warning_says_how_to_count_it(catalog):
    (warning,) = bound(catalog, 'SELECT sum("the text is rude") FROM reviews').warnings
    assert 'sum(CASE WHEN "the text is rude" THEN 1 ELSE 0 END)' in warning

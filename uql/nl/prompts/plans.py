"""Questions over made-up databases with their plans, shown to a planner as examples. None is of a benchmark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

VERSION = "plans-1"
Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A question, the tables it is asked of (columns with their types), and the nodes of its plan."""

    question: str
    tables: Mapping[str, Mapping[str, str]]
    nodes: Sequence[Mapping[str, Any]]


def _uql(
    table: str,
    select: Sequence[Row],
    *,
    join: Sequence[tuple[str, str, str]] = (),
    where: Sequence[tuple[str, str, str]] = (),
    ask: Sequence[str] = (),
    group: Sequence[str] = (),
    order: tuple[str, bool] | None = None,
    limit: int = 0,
) -> Row:
    query = {
        "from": table,
        "join": [{"table": t, "left": left, "right": right} for t, left, right in join],
        "where": [{"column": c, "op": op, "value": value} for c, op, value in where],
        "ask": list(ask),
        "select": list(select),
        "group_by": list(group),
        "order_by": [{"by": order[0], "desc": order[1]}] if order else [],
        "limit": limit,
    }
    return {"kind": "uql", "query": query}


def _col(column: str, agg: str = "none", name: str = "") -> Row:
    return {
        "column": column,
        "read": "",
        "type": "text",
        "agg": agg,
        "as": name or column.rpartition(".")[2].replace("*", "n"),
    }


def _read(text: str, name: str, kind: str = "text", agg: str = "none") -> Row:
    return {"column": "read", "read": text, "type": kind, "agg": agg, "as": name}


def _plot(mark: str, source: str, x: str, y: str, title: str, color: str = "") -> Row:
    return {
        "kind": "plot",
        "name": "plot",
        "input": source,
        "mark": mark,
        "x": x,
        "y": y,
        "color": color,
        "title": title,
    }


_SHOP = {
    "customers": {"id": "BIGINT", "name": "VARCHAR", "city": "VARCHAR"},
    "letters": {"customer_id": "BIGINT", "letter": "TEXT"},
}
_MOTHS = {
    "moths": {"id": "BIGINT", "name": "VARCHAR", "habitat": "VARCHAR"},
    "photos": {"moth_id": "BIGINT", "photo": "IMAGE"},
}
_BOOKS = {"books": {"id": "BIGINT", "title": "VARCHAR", "author": "VARCHAR", "year": "BIGINT", "pages": "BIGINT"}}
_RACES = {
    "drivers": {"name": "VARCHAR", "born": "DATE", "team": "VARCHAR"},
    "starts": {"name": "VARCHAR", "race_id": "BIGINT"},
    "stories": {"race_id": "BIGINT", "story": "TEXT"},
}
_STAFF = {
    "staff": {"name": "VARCHAR", "dept_id": "BIGINT", "salary": "DOUBLE", "hired": "DATE"},
    "depts": {"id": "BIGINT", "title": "VARCHAR"},
}

EXAMPLES: tuple[Example, ...] = (
    Example(
        "How many books came out after 1990?",
        _BOOKS,
        [_uql("books", [_col("*", "count", "n")], where=[("books.year", ">", "1990")])],
    ),
    Example(
        "Which book has the most pages?",
        _BOOKS,
        [_uql("books", [_col("books.title"), _col("books.pages")], order=("pages", True), limit=1)],
    ),
    Example(
        "Who is the youngest driver of the team Falcon?",
        _RACES,
        [
            _uql(
                "drivers",
                [_col("drivers.name"), _col("drivers.born")],
                where=[("drivers.team", "=", "Falcon")],
                order=("born", True),
                limit=1,
            )
        ],
    ),
    Example(
        "Which moths of the habitat forest have spots on their wings in the photo?",
        _MOTHS,
        [
            _uql(
                "moths",
                [_col("moths.name")],
                join=[("photos", "moths.id", "photos.moth_id")],
                where=[("moths.habitat", "=", "forest")],
                ask=["the wings have spots"],
            )
        ],
    ),
    Example(
        "How many moths show a striped body?",
        _MOTHS,
        [
            _uql(
                "moths",
                [_col("*", "count", "n")],
                join=[("photos", "moths.id", "photos.moth_id")],
                ask=["the body is striped"],
            )
        ],
    ),
    Example(
        "How many letters from Leeds complain about the price?",
        _SHOP,
        [
            _uql(
                "letters",
                [_col("*", "count", "n")],
                join=[("customers", "letters.customer_id", "customers.id")],
                where=[("customers.city", "=", "Leeds")],
                ask=["the letter complains about the price"],
            )
        ],
    ),
    Example(
        "What is the best place that Ida Roth reached in a race?",
        _RACES,
        [
            _uql(
                "starts",
                [_read("the place that {starts.name} reached", "best_place", "number", "min")],
                join=[("stories", "starts.race_id", "stories.race_id")],
                where=[("starts.name", "=", "Ida Roth")],
            )
        ],
    ),
    Example(
        "For each driver, what is the highest number of pit stops in a race?",
        _RACES,
        [
            _uql(
                "starts",
                [_col("starts.name"), _read("the number of pit stops of {starts.name}", "most_stops", "number", "max")],
                join=[("stories", "starts.race_id", "stories.race_id")],
                group=["starts.name"],
            )
        ],
    ),
    Example(
        "How many races did the team Falcon win?",
        _RACES,
        [
            _uql(
                "drivers",
                [_col("stories.race_id", "count_distinct", "races")],
                join=[("starts", "drivers.name", "starts.name"), ("stories", "starts.race_id", "stories.race_id")],
                where=[("drivers.team", "=", "Falcon")],
                ask=["{drivers.name} won the race"],
            )
        ],
    ),
    Example(
        "Average salary per department, the highest first",
        _STAFF,
        [
            _uql(
                "staff",
                [_col("depts.title"), _col("staff.salary", "avg", "average_salary")],
                join=[("depts", "staff.dept_id", "depts.id")],
                group=["depts.title"],
                order=("average_salary", True),
            )
        ],
    ),
    Example(
        "Plot the number of books of each author",
        _BOOKS,
        [
            _uql("books", [_col("books.author"), _col("*", "count", "books")], group=["books.author"]),
            _plot("bar", "step1", "author", "books", "Books by author"),
        ],
    ),
    Example(
        "Plot the average salary against the department as a line",
        _STAFF,
        [
            _uql(
                "staff",
                [_col("depts.title"), _col("staff.salary", "avg", "average_salary")],
                join=[("depts", "staff.dept_id", "depts.id")],
                group=["depts.title"],
            ),
            _plot("line", "step1", "title", "average_salary", "Average salary by department"),
        ],
    ),
    Example(
        "Draw a bar chart of how many moths of each habitat have an eye on the wing",
        _MOTHS,
        [
            _uql(
                "moths",
                [_col("moths.habitat"), _col("*", "count", "n")],
                join=[("photos", "moths.id", "photos.moth_id")],
                ask=["there is an eye on the wing"],
                group=["moths.habitat"],
            ),
            _plot("bar", "step1", "habitat", "n", "Moths with an eye on the wing"),
        ],
    ),
    Example(
        "Which city do most customers live in, and how many of the letters from there are thankful?",
        _SHOP,
        [
            _uql(
                "customers",
                [_col("customers.city"), _col("*", "count", "n")],
                group=["customers.city"],
                order=("n", True),
                limit=1,
            ),
            _uql(
                "step1",
                [_col("customers.city"), _col("*", "count", "thankful")],
                join=[
                    ("customers", "step1.city", "customers.city"),
                    ("letters", "customers.id", "letters.customer_id"),
                ],
                ask=["the letter says thank you"],
                group=["customers.city"],
            ),
        ],
    ),
    Example(
        "In which year was the winner of each race born, as the story tells?",
        _RACES,
        [_uql("stories", [_col("stories.race_id"), _read("the year in which the winner was born", "born", "number")])],
    ),
    Example(
        "Which books have war in the title?",
        _BOOKS,
        [_uql("books", [_col("books.title")], where=[("books.title", "contains", "war")])],
    ),
)

"""Questions over made-up databases with their plans; the nearest ones stand in the planner's prompt. None is of a benchmark."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from uql.nl.schema.name_words import Near

Node = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Example:
    """A question, the tables it is asked of (columns with their types), and the nodes of its plan."""

    question: str
    tables: Mapping[str, Mapping[str, str]]
    nodes: Sequence[Node]


def _uql(sql: str, name: str = "step1") -> Node:
    return {"kind": "uql", "name": name, "sql": sql}


def _python(source: str, name: str, *inputs: str) -> Node:
    return {"kind": "python", "name": name, "inputs": list(inputs), "python": source}


def _plot(mark: str, x: str, y: str, title: str, source: str = "step1") -> Node:
    return {"kind": "plot", "name": "plot", "input": source, "mark": mark, "x": x, "y": y, "color": "", "title": title}


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
_TOLD = "starts JOIN stories ON starts.race_id = stories.race_id"
_SEEN = "moths JOIN photos ON moths.id = photos.moth_id"
_PAID = (
    "SELECT depts.title, avg(staff.salary) AS average_salary FROM staff JOIN depts ON staff.dept_id = depts.id "
    "GROUP BY depts.title"
)

EXAMPLES: tuple[Example, ...] = (
    Example("How many books came out after 1990?", _BOOKS, [_uql("SELECT count(*) AS n FROM books WHERE year > 1990")]),
    Example(
        "Which book has the most pages?",
        _BOOKS,
        [_uql("SELECT title, pages FROM books ORDER BY pages DESC LIMIT 1")],
    ),
    Example(
        "Who is the youngest driver of the team Falcon?",
        _RACES,
        [_uql("SELECT name, born FROM drivers WHERE team = 'Falcon' ORDER BY born DESC LIMIT 1")],
    ),
    Example(
        "Which moths of the habitat forest have spots on their wings in the photo?",
        _MOTHS,
        [_uql(f"SELECT moths.name FROM {_SEEN} WHERE moths.habitat = 'forest' AND ask('the wings have spots')")],
    ),
    Example(
        "How many moths show a striped body?",
        _MOTHS,
        [_uql(f"SELECT count(*) AS n FROM {_SEEN} WHERE ask('the body is striped')")],
    ),
    Example(
        "How many letters from Leeds complain about the price?",
        _SHOP,
        [
            _uql(
                "SELECT count(*) AS n FROM letters JOIN customers ON letters.customer_id = customers.id "
                "WHERE customers.city = 'Leeds' AND ask('the letter complains about the price')"
            )
        ],
    ),
    Example(
        "What is the best place that Ida Roth reached in a race?",
        _RACES,
        [
            _uql(
                "SELECT min(CAST(ask('the place that {starts.name} reached') AS DOUBLE)) AS best_place "
                f"FROM {_TOLD} WHERE starts.name = 'Ida Roth'"
            )
        ],
    ),
    Example(
        "For each driver, what is the highest number of pit stops in a race?",
        _RACES,
        [
            _uql(
                "SELECT starts.name, max(CAST(ask('the number of pit stops of {starts.name}') AS DOUBLE)) AS most_stops "
                f"FROM {_TOLD} GROUP BY starts.name"
            )
        ],
    ),
    Example(
        "How many races did the team Falcon win?",
        _RACES,
        [
            _uql(
                "SELECT count(DISTINCT stories.race_id) AS races FROM drivers JOIN starts ON drivers.name = starts.name "
                "JOIN stories ON starts.race_id = stories.race_id "
                "WHERE drivers.team = 'Falcon' AND ask('{drivers.name} won the race')"
            )
        ],
    ),
    Example(
        "Average salary per department, the highest first", _STAFF, [_uql(f"{_PAID} ORDER BY average_salary DESC")]
    ),
    Example(
        "Plot the number of books of each author",
        _BOOKS,
        [
            _uql("SELECT author, count(*) AS books FROM books GROUP BY author"),
            _plot("bar", "author", "books", "Books by author"),
        ],
    ),
    Example(
        "Plot the average salary against the department as a line",
        _STAFF,
        [_uql(_PAID), _plot("line", "title", "average_salary", "Average salary by department")],
    ),
    Example(
        "Draw a bar chart of how many moths of each habitat have an eye on the wing",
        _MOTHS,
        [
            _uql(
                f"SELECT moths.habitat, count(*) AS n FROM {_SEEN} WHERE ask('there is an eye on the wing') "
                "GROUP BY moths.habitat"
            ),
            _plot("bar", "habitat", "n", "Moths with an eye on the wing"),
        ],
    ),
    Example(
        "Which city do most customers live in, and how many of the letters from there are thankful?",
        _SHOP,
        [
            _uql("SELECT city, count(*) AS n FROM customers GROUP BY city ORDER BY n DESC LIMIT 1"),
            _uql(
                "SELECT customers.city, count(*) AS thankful FROM step1 JOIN customers ON step1.city = customers.city "
                "JOIN letters ON customers.id = letters.customer_id WHERE ask('the letter says thank you') "
                "GROUP BY customers.city",
                "step2",
            ),
        ],
    ),
    Example(
        "In which year was the winner of each race born, as the story tells?",
        _RACES,
        [_uql("SELECT race_id, CAST(ask('the year in which the winner was born') AS DOUBLE) AS born FROM stories")],
    ),
    Example("Which books have war in the title?", _BOOKS, [_uql("SELECT title FROM books WHERE title ILIKE '%war%'")]),
    Example(
        "Give me the titles of each author as JSON, and plot the pages of the books.",
        _BOOKS,
        [
            _uql("SELECT author, title, pages FROM books ORDER BY author, title"),
            _python(
                "{a: [r['title'] for r in step1 if r['author'] == a] for a in [r['author'] for r in step1]}",
                "titles",
                "step1",
            ),
            _plot("bar", "title", "pages", "Pages of the books"),
        ],
    ),
)


def examples_text(question: str, near: Near, *, most: int = 4) -> str:
    """The nearest examples as a prompt shows them, the nearest last; "" for none.

    Args:
        near: similarities of the question and others.
        most: examples.
    """
    scores = list(near(question, [example.question for example in EXAMPLES]))
    order = sorted(range(len(EXAMPLES)), key=lambda i: -scores[i])[:most]
    examples = "\n\n".join(_example_text(EXAMPLES[i]) for i in reversed(order))
    return f"Examples over other databases:\n\n{examples}\n\nNow over the database above.\n\n" if examples else ""


def _example_text(example: Example) -> str:
    schema = "; ".join(f"{t}({', '.join(f'{c} {kind}' for c, kind in cs.items())})" for t, cs in example.tables.items())
    plan = json.dumps({"cannot": "", "nodes": list(example.nodes)}, ensure_ascii=False, separators=(",", ":"))
    return f"{schema}\nQuestion: {example.question}\nThe plan: {plan}"

"""The plan of a question, written at once as a DAG. Source: M²EX (plan), CAESURA (tools described beside the schema)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from uql.nl.plan import clauses
from uql.nl.plan.dag import MAX_NODES
from uql.nl.prompts import Schema, Wording, array, obj, one_of, rules_text, text

VERSION = "planner-2"
Form = Literal["text", "clauses"]
MARKS = ("bar", "line", "point", "arc", "area", "boxplot", "rect")
STEPS = tuple(f"step{n}" for n in range(1, 5))
SQL = (
    "You answer questions over a database with queries in SQL. SQL has one more function: ask('…'), which a "
    "model answers by reading the texts or "
    "looking at the images of the row. In WHERE it is a condition, as ask('the review complains about the "
    "price'). Elsewhere it is a value, as "
    "CAST(ask('the points that {name} scored') AS DOUBLE); {name} stands for the value of that column. Use ask "
    "only for what no column "
    "holds, and columns for all else. To ask about a text or image, the table that has it must be in FROM or JOIN."
)
NODES = (
    "A plan is a list of nodes. A uql node is one SELECT; later nodes read its rows as a table of its name. A "
    "python node computes over its inputs, "
    "lists of dictionaries by their names, and its last line is a list of dictionaries; use it only for what "
    "SQL cannot do. A plot node draws "
    "the columns x and y of its input. Use as few nodes as possible; most questions need one. The last query "
    "gives the answer, with readable names."
)


def wording(
    question: str,
    schema: str,
    tables: Sequence[str],
    columns: Sequence[str],
    examples: str,
    rules: Sequence[str] = (),
    *,
    form: Form = "text",
    plots: bool = True,
    faults: str = "",
    kept: str = "",
    max_tokens: int = 900,
) -> Wording:
    """The request for a plan.

    Args:
        tables, columns: names in scope, columns as "table.column".
        examples: other questions with their plans.
        form: queries as text, or as clauses that a grammar holds to the names in scope.
        plots: the question asks for one.
        faults: the last plan and what is wrong with it.
        kept: nodes of the last plan that have run; the new nodes may read them.
    """
    more = f"{faults}\n\n" if faults else ""
    there = f"These nodes have run; read them and do not write them again:\n{kept}\n\n" if kept else ""
    shape = text_form(plots) if form == "text" else clauses_form(tables, columns, plots)
    return Wording(
        "planner",
        VERSION,
        f"{SQL}\n{NODES}",
        f"Database:\n{schema}\n\n{rules_text(rules)}{examples}{there}{more}Question: {question}\nThe plan:",
        shape,
        max_tokens,
    )


def text_form(plots: bool = True) -> Schema:
    """Queries as SQL text."""
    kinds = [
        obj({"kind": one_of(["uql"]), "name": clauses.NAME, "sql": text(1500)}),
        obj(
            {
                "kind": one_of(["python"]),
                "name": clauses.NAME,
                "inputs": array(clauses.NAME, 4, 1),
                "python": text(2000),
            }
        ),
    ]
    if plots:
        kinds.append(plot_form(clauses.NAME))
    return obj({"cannot": text(200), "nodes": array({"anyOf": kinds}, MAX_NODES - 1)})


def clauses_form(tables: Sequence[str], columns: Sequence[str], plots: bool = True) -> Schema:
    """Queries as clauses over the names in scope; nodes are called step1, step2 …"""
    names: Schema = {
        "anyOf": [one_of(list(columns)), {"type": "string", "pattern": "^step[1-4][.][a-z][a-z0-9_]{0,24}$"}]
    }
    query = clauses.schema([*tables, *STEPS[:-1]], list(columns))
    for part in (
        query["properties"]["join"]["items"]["properties"],
        query["properties"]["where"]["items"]["properties"],
    ):
        part.update({key: names for key in ("left", "right", "column") if key in part})
    select = query["properties"]["select"]["items"]["properties"]
    select["column"] = {"anyOf": [*names["anyOf"], one_of(["*", "read"])]}
    query["properties"]["group_by"]["items"] = names
    kinds = [obj({"kind": one_of(["uql"]), "query": query})]
    if plots:
        kinds.append(plot_form(one_of(STEPS)))
    return obj({"nodes": array({"anyOf": kinds} if plots else kinds[0], 3, 1)})


def plot_form(name: Schema) -> Schema:
    column = {"type": "string", "maxLength": 40}
    return obj(
        {
            "kind": one_of(["plot"]),
            "name": clauses.NAME,
            "input": name,
            "mark": one_of(MARKS),
            "x": column,
            "y": column,
            "color": column,
            "title": text(80),
        }
    )


def repaired(plan: str, problems: str) -> str:
    """What goes back with an invalid plan: the plan, its faults, and the questions that lead to a right one."""
    return (
        f"Your last plan:\n{plan}\n\nIt cannot be run:\n{problems}\n\nAsk yourself: is a step missing, or an "
        f"input wrong? Does the column "
        "stand in another table, or is it to be read from a text or an image with ask? Are all names written as "
        "the database has them? "
        "Is another kind of node needed? Write the whole plan again, right."
    )


def debugging(
    question: str, kind: str, body: str, error: str, schema: str, form: Form, shape: Schema | None
) -> Wording:
    """One node that failed while it ran, to be written again."""
    what = {"uql": "query", "sql": "query", "python": "Python source", "plot": "Vega-Lite specification"}.get(
        kind, kind
    )
    reply = shape if form == "clauses" and shape is not None else obj({"body": text(2000)})
    return Wording(
        "debug",
        VERSION,
        SQL if kind in ("uql", "sql") else "You mend one step of a plan.",
        f"Database:\n{schema}\n\nQuestion: {question}\n\nThis {what} failed:\n{body}\n\nWhy: {error}\n\nThe "
        f"{what}, mended:",
        reply,
        700,
    )

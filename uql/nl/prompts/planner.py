"""The plan of a question, written at once as a DAG; and what is asked before: what it may mean, which columns it needs.

Sources: M²EX (plan, re-plan), CAESURA (tools described beside the schema).
"""

from __future__ import annotations

from collections.abc import Sequence

from uql.llm.prompts.json_schema import closed
from uql.nl.plan.dag import MAX_NODES
from uql.nl.prompts import BOOLEAN, NAME, Schema, Wording, array, one_of, rules_text, text

VERSION = "planner-3"
MARKS = ("bar", "line", "point", "arc", "area", "boxplot", "rect")
SQL = (
    "You answer questions over a database with queries in SQL. SQL has one more function: ask('…'), which a model answers by "
    "reading the texts or looking at the images of the row. In WHERE it is a condition, as "
    "ask('the review complains about the price'). Elsewhere it is a value, as "
    "CAST(ask('the points that {name} scored') AS DOUBLE); {name} stands for the value of that column. Use ask only for what no "
    "column holds, and columns for all else. To ask about a text or image, the table that has it must be in FROM or JOIN."
)
NODES = (
    "A plan is a list of nodes. A uql node is one SELECT; later nodes read its rows as a table of its name. A python node "
    "computes over its inputs, lists of dictionaries by their names, and its last line is its output: a list of dictionaries, or "
    "any JSON; use it only for what SQL cannot do, or where JSON is asked for. A plot node draws the columns x and y of its "
    "input; add one where the question asks for a plot, or for a trend, a distribution or a comparison of several values. Use as "
    "few nodes as possible; most questions need one. A question may ask for several outputs, as a table and a plot: each is a "
    "node that no other node reads, and all of those are the answer. Give columns readable names."
)


def wording(
    question: str, schema: str, examples: str, rules: Sequence[str] = (), *, faults: str = "", results: str = ""
) -> Wording:
    """The request for a plan.

    Args:
        examples: other questions with their plans.
        faults: the last plan and what is wrong with it, or what it gave.
        results: nodes of the last plan that have run, with their rows; the new nodes may read them.
    """
    more = f"{faults}\n\n" if faults else ""
    there = f"These nodes have run; read them and do not write them again:\n{results}\n\n" if results else ""
    return Wording(
        "planner",
        VERSION,
        f"{SQL}\n{NODES}",
        f"Database:\n{schema}\n\n{rules_text(rules)}{examples}{there}{more}Question: {question}\nThe plan:",
        text_form(),
    )


def node_forms() -> list[Schema]:
    """One node: a query, Python, or a plot."""
    query = closed({"kind": one_of(["uql"]), "name": NAME, "sql": text(1500)})
    python = {"kind": one_of(["python"]), "name": NAME, "inputs": array(NAME, 4, 1), "python": text(2000)}
    column = {"type": "string", "maxLength": 40}
    plot = {"kind": one_of(["plot"]), "name": NAME, "input": NAME, "mark": one_of(MARKS), "x": column, "y": column}
    return [query, closed(python), closed({**plot, "color": column, "title": text(80)})]


def text_form() -> Schema:
    """A plan: its nodes, or why there is none."""
    return closed({"cannot": text(200), "nodes": array({"anyOf": node_forms()}, MAX_NODES - 1)})


def repaired(plan: str, problems: str) -> str:
    """What goes back with an invalid plan: the plan, its faults, and the questions that lead to a right one."""
    return (
        f"Your last plan:\n{plan}\n\nIt cannot be run:\n{problems}\n\nAsk yourself: is a step missing, or an input wrong? Does "
        "the column stand in another table, or is it to be read from a text or an image with ask? Are all names written as the "
        "database has them? Is another kind of node needed? Write the whole plan again, right."
    )


def replanned(plan: str, why: str) -> str:
    """What goes back with a plan that has run, but whose results are not an answer."""
    return f"The plan before, with what each node gave:\n{plan}\n\nWhy it is planned again: {why}\nWrite the nodes that are still needed."


def debugging(question: str, kind: str, body: str, error: str, schema: str, inputs: str = "") -> Wording:
    """One node that failed while it ran, to be written again.

    Args:
        inputs: the results that it reads, with rows.
    """
    what = {"uql": "query", "sql": "query", "python": "Python source", "plot": "Vega-Lite specification"}.get(
        kind, kind
    )
    read = f"What it reads:\n{inputs}\n\n" if inputs else ""
    return Wording(
        "debug",
        VERSION,
        SQL if kind in ("uql", "sql") else "You mend one step of a plan.",
        f"Database:\n{schema}\n\n{read}Question: {question}\n\nThis {what} failed:\n{body}\n\nWhy: {error}\n\nThe {what}, mended:",
        closed({"body": text(2000)}),
        ruled=True,
    )


def readings(question: str, schema: str) -> Wording:
    """What an ambiguous question may mean: up to three readings."""
    return Wording(
        "readings",
        "readings-2",
        "You say whether a question to a database can be read in ways that give different answers: a word that fits two columns, a "
        "period or a measure that is not named. Differences in wording alone are no readings.",
        f"{schema}\n\nQuestion: {question}\n\nIs it ambiguous? If so, write up to three precise questions, the most probable first.",
        closed({"ambiguous": BOOLEAN, "readings": array(text(200), 3)}),
    )


def columns(question: str, schema: str, names: list[str]) -> Wording:
    """Asks which columns a question needs. Source: CAESURA's discovery phase.

    Args:
        question: as the user wrote it.
        schema: the tables, as text.
        names: the columns to choose from: table.column.
    """
    return Wording(
        "columns",
        "columns-2",
        "You find the columns of a database that a question needs. Texts and images count: what a table does not hold may be read from "
        "them.",
        f"{schema}\n\nQuestion: {question}\n\nList the columns that are needed to answer it: those to filter, to join, to read and to "
        "show.",
        closed({"columns": array(one_of(names), 12, 1)}),
    )

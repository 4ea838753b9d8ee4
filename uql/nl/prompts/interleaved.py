"""Logical steps first, each mapped to a node when its inputs are there. Source: CAESURA's planning and mapping phases."""

from __future__ import annotations

import json
from collections.abc import Sequence

from uql.nl.plan import clauses
from uql.nl.prompts import Schema, Wording, array, obj, one_of, rules_text, text
from uql.nl.prompts.planner import SQL, plot_form, text_form

VERSION = "interleaved-2"
MOST = 6
TOOLS = (
    "Steps may: select, filter, join, group and sort the rows of tables; read a fact from each text, or see it "
    "in each image, as a new column; keep "
    "the rows whose text or image meets a condition; compute with Python; draw a plot."
)


_ASKED: tuple[tuple[str, tuple[tuple[str, list[str]], ...]], ...] = (
    (
        "How many of the books whose cover shows an animal were lent to members from Oslo?",
        (
            (
                "How many of the books whose cover shows an animal were lent to members from Oslo?",
                ["books", "loans", "members"],
            ),
        ),
    ),
    (
        "What is the highest number of pages of each author's books whose blurb promises a happy end?",
        (("What is the highest number of pages of each author's books whose blurb promises a happy end?", ["books"]),),
    ),
    (
        "Plot the number of loans per city of the members who complained in a letter.",
        (
            (
                "How many loans are there per city of the members who complained in a letter?",
                ["loans", "members", "letters"],
            ),
            ("Plot the number of loans per city as a bar chart", ["result1"]),
        ),
    ),
    (
        "Who wrote the book that was lent most often, and what do its reviews praise?",
        (
            ("Which book was lent most often, and who wrote it?", ["books", "loans"]),
            ("What does each review of the book of result1 praise?", ["result1", "reviews"]),
        ),
    ),
)


def _shot(question: str, planned: Sequence[tuple[str, list[str]]]) -> str:
    made = [
        {"description": said, "inputs": read, "output": f"result{n}", "new_columns": []}
        for n, (said, read) in enumerate(planned, 1)
    ]
    return f"Question: {question}\n{json.dumps({'steps': made})}"


SHOTS = "\n\n".join(_shot(*asked) for asked in _ASKED)


def steps(
    question: str, schema: str, rules: Sequence[str], why: str = "", kept: str = "", *, names: Sequence[str] = ()
) -> Wording:
    """The logical plan: steps in words, each with its inputs, its output and the columns it adds.

    Args:
        names: of the tables and results there are, for a model that holds its reply to a grammar: inputs are those or `result1` …, and
            there are half as many steps; none: names are free.
    """
    results = [f"result{n}" for n in range(1, 1 + MOST // 2)]
    read: Schema = one_of([*names, *results]) if names else {"type": "string", "maxLength": 40}
    there = f"These results are there already; use them:\n{kept}\n\n" if kept else ""
    again = f"The plan before failed: {why}\n\n" if why else ""
    return Wording(
        "steps",
        VERSION,
        f"You plan how a question is answered from a database, step by step, in words. {TOOLS} Use as few steps "
        f"as possible: one step filters, joins, groups and sorts at once, and is written as a question. Each names the tables "
        "it reads, which are tables of the database or outputs of earlier steps, and its output, a new name. "
        "The last step gives the answer.",
        f"Examples, over a database of another library:\n{SHOTS}\n\nDatabase:\n{schema}\n\n{rules_text(rules)}{there}{again}"
        f"Question: {question}\n\nThe steps:",
        obj(
            {
                "steps": array(
                    obj(
                        {
                            "description": text(240),
                            "inputs": array(read, 4, 1),
                            "output": one_of(results) if names else clauses.NAME,
                            "new_columns": array(clauses.NAME, 5),
                        }
                    ),
                    len(results) if names else MOST,
                    1,
                )
            }
        ),
        700,
    )


def mapping(question: str, step: str, schema: str, observed: str, why: str = "") -> Wording:
    """One step as a node, now that its inputs are there."""
    again = f"Your last try failed: {why}\n\n" if why else ""
    return Wording(
        "mapping",
        VERSION,
        f"{SQL}\nYou write one step of a plan: a uql query, Python over lists of dictionaries by their names, "
        f"or a plot.",
        f"Tables:\n{schema}\n\nRows of them so far:\n{observed}\n\nThe whole question: {question}\n\n{again}The "
        f"step: {step}\n\nThe node:",
        obj({"node": _one()}),
        700,
    )


def _one() -> Schema:
    kinds = text_form()["properties"]["nodes"]["items"]["anyOf"][:2]
    return {"anyOf": [*kinds, plot_form(clauses.NAME)]}

"""Logical steps first, each mapped to a node when its inputs are there. Source: CAESURA's planning and mapping phases, figure 3."""

from __future__ import annotations

import json
from collections.abc import Sequence

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import BOOLEAN, NAME, Schema, Wording, array, one_of, rules_text, text
from uql.nl.prompts.planner import SQL, node_forms

VERSION = "interleaved-3"
MOST, MOST_WHOLE = 10, 3  # steps of a plan, and of one whose steps are questions
OPERATORS = """Operators that a step may use:
- SQL: select and filter rows by columns, join tables, group and aggregate, sort and limit
- TextQA: read a fact from the text of each row into a new column; or keep the rows whose text meets a condition
- VisualQA: see a fact in the image of each row as a new column; or keep the rows whose image meets a condition
- Python: compute what SQL cannot, from columns that are there, as a new column, a table or JSON
- Plot: draw columns of a table"""
_PLANS = "You plan how a question is answered from a database, step by step, in words. "
_NAMES = (
    "Each names the tables it reads, which are tables of the database or outputs of earlier steps, and its output, a new name. "
    "The last step gives the answer."
)
FINE = (
    f"{_PLANS}{OPERATORS}\nA step does one thing with one operator, and its description says which. {_NAMES} A question may ask for "
    "several outputs: each is then the output of a step that no other step reads. new_columns are those that the step adds."
)
WHOLE = f"{_PLANS}Use as few steps as possible: one step filters, joins, groups and sorts at once, and is written as a question. {_NAMES}"
FAULTS = """1. What are the causes of this error?
2. How can it be fixed?
3. Are there flaws in the plan, such as a missing step or a wrong input table?
4. Is there a better plan, such as reading a text or an image instead of a column, or the other way round?
5. Should another tool be chosen for this step?
6. Do the arguments of the step have to be changed?"""
Steps = Sequence[tuple[str, list[str], str, list[str]]]  # description, inputs, output, new columns

_FINE_SHOTS: tuple[tuple[str, Steps], ...] = (
    (
        "Plot the number of loans per city of the members who complained in a letter.",
        (
            ("TextQA: keep the letters that complain", ["letters"], "complaints", []),
            ("SQL: join complaints with members, each member once", ["complaints", "members"], "complainers", []),
            (
                "SQL: join loans with complainers, count the loans of each city",
                ["loans", "complainers"],
                "per_city",
                ["loans"],
            ),
            ("Plot: a bar chart of loans by city", ["per_city"], "chart", []),
        ),
    ),
    (
        "What is the highest number of people on the covers of each author's books?",
        (
            ("VisualQA: see the number of people on each cover", ["books"], "covers", ["people"]),
            ("SQL: the highest number of people for each author", ["covers"], "highest", ["most_people"]),
        ),
    ),
)
_WHOLE_SHOTS: tuple[tuple[str, Steps], ...] = (
    (
        "How many of the books whose cover shows an animal were lent to members from Oslo?",
        (
            (
                "How many of the books whose cover shows an animal were lent to members from Oslo?",
                ["books", "loans", "members"],
                "result1",
                [],
            ),
        ),
    ),
    (
        "Plot the number of loans per city of the members who complained in a letter.",
        (
            (
                "How many loans are there per city of the members who complained in a letter?",
                ["loans", "members", "letters"],
                "result1",
                [],
            ),
            ("Plot the number of loans per city as a bar chart", ["result1"], "result2", []),
        ),
    ),
    (
        "Who wrote the book that was lent most often, and what do its reviews praise?",
        (
            ("Which book was lent most often, and who wrote it?", ["books", "loans"], "result1", []),
            ("What does each review of the book of result1 praise?", ["result1", "reviews"], "result2", []),
        ),
    ),
)


def _shot(question: str, planned: Steps) -> str:
    shot_steps = [
        {"description": description, "inputs": read, "output": output, "new_columns": new}
        for description, read, output, new in planned
    ]
    return f"Question: {question}\n{json.dumps({'steps': shot_steps})}"


def steps(
    question: str, schema: str, rules: Sequence[str], why: str = "", existing: str = "", *, names: Sequence[str] = ()
) -> Wording:
    """The logical plan: steps in words, each with its inputs, its output and the columns it adds.

    Args:
        why: the plan before, with what its steps gave, and why it failed.
        existing: results that are there, with rows.
        names: of the tables and results there are, for a model that fills in forms: its steps are questions, at most MOST_WHOLE, and
            inputs are those names or `result1` …; none: steps are fine, and names free.
    """
    results = [f"result{n}" for n in range(1, 1 + MOST_WHOLE)]
    read: Schema = one_of([*names, *results]) if names else {"type": "string", "maxLength": 40}
    there = f"These results are there already; use them:\n{existing}\n\n" if existing else ""
    again = f"{why}\n\n" if why else ""
    shots = "\n\n".join(_shot(*shot) for shot in (_WHOLE_SHOTS if names else _FINE_SHOTS))
    step = {
        "description": text(240),
        "inputs": array(read, 4, 1),
        "output": one_of(results) if names else NAME,
        "new_columns": array(NAME, 5),
    }
    return Wording(
        "steps",
        VERSION,
        WHOLE if names else FINE,
        f"Examples, over a database of another library:\n{shots}\n\nDatabase:\n{schema}\n\n{rules_text(rules)}{there}{again}"
        f"Question: {question}\n\nThe steps:",
        closed({"steps": array(closed(step), MOST_WHOLE if names else MOST, 1)}),
    )


def mapping(question: str, step: str, schema: str, observed: str, why: str = "") -> Wording:
    """One step as a node, now that its inputs are there: `observed` are their rows so far.

    Args:
        question: as the user wrote it.
        step: in words.
        schema: the tables, as text.
        observed: the rows of the results so far.
        why: the last try failed; "": there was none.
    """
    again = f"Your last try failed: {why}\n\n" if why else ""
    return Wording(
        "mapping",
        VERSION,
        f"{SQL}\nYou write one step of a plan: a uql query, Python over lists of dictionaries by their names, or a plot.",
        f"Tables:\n{schema}\n\nResults so far, with rows:\n{observed}\n\nThe whole question: {question}\n\n{again}The step: {step}"
        "\n\nThe node:",
        closed({"node": {"anyOf": node_forms()}}),
        ruled=True,
    )


def faults(question: str, plan: str, step: str, error: str, schema: str) -> Wording:
    """Asks why a step of a plan failed, and what to do. Source: CAESURA, section 3.2, its six questions.

    Args:
        question: as the user wrote it.
        plan: as text.
        step: the body of the one that failed.
        schema: the tables, as text.
    """
    decided = dict.fromkeys(("plan_flawed", "better_plan", "another_tool", "other_arguments"), BOOLEAN)
    return Wording(
        "faults",
        "faults-2",
        "You find out why a step of a plan failed.",
        f"{schema}\n\nQuestion: {question}\n\nPlan:\n{plan}\n\nThe step that failed:\n{step}\n\nError: {error}\n\n{FAULTS}",
        closed({"causes": text(240), "fix": text(240), **decided}),
    )

"""Few-shot examples of plans: those whose questions are nearest to the one asked."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from uql.base.schema import Field, Modality
from uql.nl.plan.clauses import statement
from uql.nl.prompts.plans import EXAMPLES, Example

Near = Callable[[str, Sequence[str]], Sequence[float]]  # a question and others → their similarities
_PROMPT = re.compile(r'PROMPT "([^"]*)"')
_WORD = re.compile(r"[a-z]+")


def examples_text(question: str, form: str, near: Near | None, *, most: int = 4) -> str:
    """The nearest examples as a prompt shows them, the nearest last; "" for none.

    Args:
        form: of the queries, "text" or "clauses".
        near: similarities of the question and others; None: by words in common.
        most: examples.
    """
    questions = [example.question for example in EXAMPLES]
    scores = list((near or _common)(question, questions))
    order = sorted(range(len(EXAMPLES)), key=lambda i: -scores[i])[:most]
    shown = [_shown(EXAMPLES[i], form) for i in reversed(order)]
    return (
        "Examples over other databases:\n\n" + "\n\n".join(shown) + "\n\nNow over the database above.\n\n"
        if shown
        else ""
    )


def _shown(example: Example, form: str) -> str:
    schema = "; ".join(f"{t}({', '.join(f'{c} {kind}' for c, kind in cs.items())})" for t, cs in example.tables.items())
    nodes = example.nodes if form == "clauses" else texts(example)
    plan = {"nodes": list(nodes)} if form == "clauses" else {"cannot": "", "nodes": list(nodes)}
    return f"{schema}\nQuestion: {example.question}\nThe plan: {json.dumps(plan, ensure_ascii=False, separators=(',', ':'))}"


def texts(example: Example) -> list[Mapping[str, Any]]:
    """The nodes of an example with their queries as SQL text."""
    return list(_texts(EXAMPLES.index(example)))


@lru_cache(maxsize=len(EXAMPLES))
def _texts(number: int) -> tuple[Mapping[str, Any], ...]:
    example = EXAMPLES[number]
    tables = {t: tuple(_field(c, kind) for c, kind in cs.items()) for t, cs in example.tables.items()}
    made: list[Mapping[str, Any]] = []
    for n, node in enumerate(example.nodes, 1):
        if node["kind"] != "uql":
            made.append(node)
            continue
        name = f"step{n}"
        sql = _PROMPT.sub(lambda found: "ask('" + found[1].replace("'", "''") + "')", statement(node["query"], tables))
        made.append({"kind": "uql", "name": name, "sql": sql})
        tables[name] = tuple(Field(item["as"], "DOUBLE") for item in node["query"]["select"])
    return tuple(made)


def _field(name: str, kind: str) -> Field:
    modality = {"TEXT": Modality.TEXT, "IMAGE": Modality.IMAGE}.get(kind, Modality.STRUCTURED)
    return Field(name, {"TEXT": "VARCHAR", "IMAGE": "BLOB"}.get(kind, kind), modality)


def _common(question: str, others: Sequence[str]) -> list[float]:
    mine = set(_WORD.findall(question.lower()))
    return [len(mine & (theirs := set(_WORD.findall(other.lower())))) / (1 + len(mine | theirs)) for other in others]

"""What went wrong, and what to do: the error questions. Source: CAESURA, section 3.2, its six questions."""

from __future__ import annotations

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import BOOLEAN, Wording, text

VERSION = "faults-2"
QUESTIONS = """1. What are the causes of this error?
2. How can it be fixed?
3. Are there flaws in the plan, such as a missing step or a wrong input table?
4. Is there a better plan, such as reading a text or an image instead of a column, or the other way round?
5. Should another tool be chosen for this step?
6. Do the arguments of the step have to be changed?"""


def wording(question: str, plan: str, step: str, error: str, schema: str) -> Wording:
    """Asks why a step of a plan failed.

    Args:
        question: as the user wrote it.
        plan: as text.
        step: the body of the one that failed.
        schema: the tables, as text.
    """
    decided = dict.fromkeys(("plan_flawed", "better_plan", "another_tool", "other_arguments"), BOOLEAN)
    return Wording(
        "faults",
        VERSION,
        "You find out why a step of a plan failed.",
        f"{schema}\n\nQuestion: {question}\n\nPlan:\n{plan}\n\nThe step that failed:\n{step}\n\nError: {error}\n\n{QUESTIONS}",
        closed({"causes": text(240), "fix": text(240), **decided}),
    )

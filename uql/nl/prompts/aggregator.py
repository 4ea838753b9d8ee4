"""The answer in words, from what was found for each part. Sources: Meta Engine, figure 7 (conflicts, brevity); M²EX (the fields)."""

from __future__ import annotations

from collections.abc import Sequence

from uql.llm.prompts.json_schema import closed
from uql.nl.prompts import BOOLEAN, Wording, array, one_of, rules_text, text

VERSION = "aggregator-2"
SHORT_WORDS = 10
ALL = "all"
SHORT = (
    f"The summary is the answer alone, at most {SHORT_WORDS} words: a name, a number, yes or no, or a list; no sentence, no unit that "
    "was not asked for. Leave details, inference and extra empty."
)
FULL = (
    "The summary is one sentence. Details give the figures. Inference says what follows from them beyond what was read off. Extra says "
    "what the reader should know: what is missing, estimated or uncertain."
)


def wording(question: str, findings: str, sources: Sequence[str], rules: Sequence[str], style: str) -> Wording:
    """Asks for the answer to a question from what was found.

    Args:
        question: as the user wrote it.
        findings: one paragraph a step.
        sources: names that the answer may cite.
        rules: of the user, each a sentence.
        style: "short" or "full".
    """
    fields = {
        "answerable": BOOLEAN,
        "reason": text(200),
        "need_more": BOOLEAN,
        "summary": text(300),
        "details": text(600),
        "source": array(one_of(list(sources) or ["none"]), 6),
        "inference": text(400),
        "extra": text(300),
    }
    return Wording(
        "aggregator",
        VERSION,
        "You write the answer to a question from findings alone; you add no knowledge of your own and copy figures exactly. Findings "
        "that do not bear on the question are left out. Where findings contradict each other: one that answers goes before one that "
        "says it found nothing; one that agrees with what earlier parts found before one that does not; one computed from a table "
        "before one read from a text or an image; one with more rows behind it, or more specific, before the other; say in extra that "
        "there was a conflict. Where the findings do not hold the answer, answerable is false and the reason says what is missing; "
        "where more could be computed from the data, need_more is true.",
        f"{rules_text(rules)}Question: {question}\n\nFindings:\n{findings}\n\n{SHORT if style == 'short' else FULL}",
        closed(fields),
    )


def picking(question: str, findings: str, count: int) -> Wording:
    """Which of the findings is the answer, or whether all of them are, one for each thing that was asked.

    Args:
        question: as the user wrote it.
        findings: numbered from 1.
        count: findings.
    """
    return Wording(
        "pick",
        VERSION,
        "You say which of the findings answers a question. The later ones rest on the earlier ones, so mostly the last one does; "
        f"where the question asks for several things, each found on its own, {ALL} of them do.",
        f"Question: {question}\n\nFindings:\n{findings}\n\nThe question was: {question}\nWhich finding answers it?",
        closed({"finding": one_of([*(str(n) for n in range(1, count + 1)), ALL])}),
    )

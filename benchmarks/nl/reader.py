"""A reader that understands a question by its words, so that a plan is not judged by how it puts what it asks.

It finds the attribute of the labels that a text is about (`ABOUT`: words that must stand in it), asks the oracle of the suite for it, and
makes of that what was asked: a number, a condition with a number, a yes. Where the words fit no attribute, or the labels say nothing of
the row, it says nothing.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from uql.base.errors import ConfigError, DataError
from uql.benchmarks.nl.ehrxqa import FINDINGS, PLACES, asked
from uql.benchmarks.sembench.scenarios import PLACES as DESTINATIONS
from uql.llm.providers.base import Answer, Problem, Reply, Request
from uql.llm.providers.oracle import Oracle
from uql.llm.questions import Choice, Extract, Predicate, Question, Row, Write

_MORE = re.compile(
    r"(more than|over|above|at least|greater than|exceed\w*|less than|fewer than|under|below|at most)?\s*(\d+)"
)
_UP, _UP_TO = ("more than", "over", "above", "greater than", "exceed"), ("at least",)
_DOWN, _DOWN_TO = ("less than", "fewer than", "under", "below"), ("at most",)


@dataclass(frozen=True, slots=True)
class About:
    """An attribute of the labels: the beginnings of words that a text about it has, and the oracle's texts for it, the first that knows."""

    words: tuple[str, ...]
    texts: tuple[str, ...]


def _game(text: str) -> str:
    return f"{text} in the game, according to {{report}}"


def _flag(what: str) -> About:
    article = "" if what == "writing" else "an " if what == "animal" else "a "
    return About((what,), (f"the flag {{f.image}} shows {article}{what}",))


def _film(what: str) -> str:
    return f"the film described in {{text}} is {what}"


ABOUT: Mapping[str, Sequence[About]] = {
    "rotowire": (
        About(("three", "pointer"), (_game("the three pointers that {name} made"),)),
        About(("percent", "field goal"), (_game("the percentage of field goals of the {name}"),)),
        About(("field goal",), (_game("the field goals that {name} made"),)),
        About(("rebound",), (_game("the rebounds of {name}"),)),
        About(("assist",), (_game("the assists of {name}"),)),
        About(("quarter", "point"), (_game("the points of the {name} in the first quarter"),)),
        About(("total point",), (_game("the final score of the {name}"),)),
        About(("point",), (_game("the points that {name} scored"), _game("the final score of the {name}"))),
        About(("score",), (_game("the final score of the {name}"), _game("the points that {name} scored"))),
    ),
    "countries_flags": (
        *(_flag(what) for what in ("star", "crescent", "cross", "sun", "animal", "weapon", "writing")),
        About(("independen",), ("the year in which {name} became independent, according to {background}",)),
    ),
    "artwork": (
        About(("number", "bab"), ("the number of babies that {image} depicts",)),
        About(("number", "sword"), ("the number of swords that {image} depicts",)),
        About(("war",), ("{image} depicts war",)),
        About(("animal",), ("{image} depicts animals",)),
        About(("fruit",), ("{image} depicts fruit",)),
        About(("person",), ("{image} depicts a person",)),
        About(("sword",), ("{image} depicts a sword",)),
        About(("bab",), ("the number of babies that {image} depicts",)),
    ),
    "ehrxqa": (
        *(About((place, finding), (asked(finding, place),)) for finding in FINDINGS for place in PLACES),
        *(About((finding,), (asked(finding),)) for finding in FINDINGS),
        *(About((place, "abnormal"), (asked("any abnormality", place),)) for place in PLACES),
    ),
    "sembench-mmqa": (
        About(("director",), ("the director of the film described in {t.text}",)),
        About(("colo", "logo"), ("the colour of the logo {i.image}",)),
        About(("logo",), ("{i.image} is a logo of the racetrack {w.Track}",)),
        About(("romantic", "comed"), (_film("a romantic comedy"),)),
        About(("biographical", "comed"), (_film("a biographical comedy"),)),
        About(("science", "fiction"), (_film("science fiction"),)),
        About(("horror",), (_film("a horror film"),)),
        About(("comed",), (_film("a comedy"),)),
        About(("caplan",), ("Lizzy Caplan plays in the film {title}, described in {text}",)),
        *(
            About((place[:6].lower(),), (f"one of these places is in {place}: {{Destinations}}",))
            for place in DESTINATIONS.values()
        ),
    ),
}


class Reader(Oracle):
    """The oracle of a suite, for texts in any words.

    Args:
        path: of the oracle's file.
        about: what its texts may be about, the more particular first.
    """

    def __init__(self, path: str | Path, about: Sequence[About]) -> None:
        super().__init__(path)
        self.about = tuple(about)
        self.name += "/any-words"

    async def answer(self, request: Request) -> Reply:
        """Oracle's answers; of a text that it does not know, what the labels say of the attributes named."""
        answers = tuple(self._said(question, request.row) for question in request.questions)
        return Reply(answers, 1, sum(1 + len(str(a.value)) // 4 for a in answers), 1)

    def _said(self, question: Question, row: Row) -> Answer:
        if isinstance(question, Write) or question.text in self.answers:
            return self._answer(question, row)
        held = self._held(question.text, row)
        if not held or any(value is None for value in held):
            return (
                Answer(None)
                if isinstance(question, Extract)
                else Answer(problem=Problem("wrong_type", "the labels do not say"))
            )
        match question:
            case Predicate():
                said = all(_holds(question.text, value) for value in held)
                return Answer(said, float(said))
            case Extract():
                return Answer(_typed(held[0], question.type), 1.0)
            case Choice():
                yes = all(_holds(question.text, value) for value in held)
                words = ("yes", "true") if yes else ("no", "false")
                label = next((label for label in question.labels if label.lower() in words), None)
                return Answer(label, 1.0) if label else Answer(problem=Problem("wrong_type", "the labels do not say"))
        return Answer(problem=Problem("wrong_type", "the labels do not say"))

    def _held(self, text: str, row: Row) -> list[Any]:
        """What the labels hold of the attributes that a text names; a more particular one hides those within it."""
        low, found, taken = re.sub(r"\{[^}]*\}", " ", text.lower()), [], ""
        for one in self.about:
            if all(re.search(rf"\b{re.escape(w)}", low) for w in one.words) and one.words[-1] not in taken:
                found.append(self._first(one, row))
                taken += " ".join(one.words) + " "
        return found

    def _first(self, one: About, row: Row) -> Any:
        known = {column.lower() for column in self._rows.columns}
        cells = tuple(cell for cell in row.cells if cell.name.lower() in known)
        holes = tuple((name, value) for name, value in row.holes if name.rpartition(".")[2].lower() in known)
        for text in one.texts:
            try:
                value = self.truth(text, replace(row, cells=cells, holes=holes))[0]
            except (DataError, ConfigError):  # another row, or several that differ: the labels do not say
                continue
            if value is not None:
                return value
        return None


def _holds(text: str, value: Any) -> bool:
    """Is a condition true of a value: a yes, a number beside one in the text, or a number that is not nought?"""
    if isinstance(value, bool):
        negated = re.search(r"\b(no|not|without)\b", text.lower()) is not None
        return value != negated
    asked = _MORE.search(re.sub(r"\{[^}]*\}", " ", text.lower()))
    if asked is None:
        return bool(value)
    how, number = asked[1] or "", float(asked[2])
    if how.startswith(_UP):
        return bool(value > number)
    if how in _UP_TO:
        return bool(value >= number)
    if how.startswith(_DOWN):
        return bool(value < number)
    return bool(value <= number) if how in _DOWN_TO else bool(float(value) == number)


def _typed(value: Any, kind: str) -> Any:
    if kind == "BOOLEAN":
        return bool(value)
    if kind.startswith("VARCHAR"):
        return str(value)
    return float(value) if kind.startswith(("DOUBLE", "FLOAT", "DECIMAL")) else int(value)

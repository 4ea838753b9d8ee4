"""Rows longer than the model's context are shown in pieces, and the answers to the pieces are one answer."""

from __future__ import annotations

import asyncio

import pytest
from row_model import RowModel

from uql.base.settings import Settings
from uql.llm.chunks import MOST_PIECES, merged, pieces, requests, room, size, split
from uql.llm.gate import Gate
from uql.llm.providers.base import Answer, CallError, Capabilities, Problem, Request
from uql.llm.questions import NONE, Cell, Choice, Compare, Extract, Predicate, Row, Score


class Reader(RowModel):
    """Finds words in what it is shown; 2,000 tokens of context."""

    name, is_local = "reader", True
    capabilities = Capabilities(context=2_000)

    def __init__(self):
        self.shown = []

    def tokens_at_most(self, request):
        return size("".join(c.value for c in request.row.cells if c.value)) // 3 + 300, 50

    def _one(self, question, row):
        text = " ".join(c.value for c in row.cells if c.value)
        self.shown.append(text)
        assert size(text) <= room(2_000, 50)
        if isinstance(question, Predicate):
            return Answer("needle" in text, 0.9 if "needle" in text else 0.2)
        if question.type == "VARCHAR[]":
            return Answer([w for w in ("anna", "bob", "carl") if w in text])
        return Answer(next((w for w in text.split() if w.startswith("#")), None))


LONG = " ".join(["hay"] * 2_000)


def ask(questions, rows, near=None):
    async def go():
        async with Gate.open(Settings(ledger=":memory:"), model=model, calls=None) as gate:
            gate.sender.near = near
            answers = await gate.ask(questions, rows)
            return answers, gate.cost, gate.warnings

    model = Reader()
    answers, cost, warnings = asyncio.run(go())
    return answers, cost, warnings, model.shown


def row(text):
    return Row((Cell("text", text),))


@pytest.mark.parametrize("place", [0, 3_000, len(LONG)])
def test_a_condition_that_holds_anywhere_in_a_long_row_holds(place):
    text = LONG[:place] + " needle " + LONG[place:]
    (found, other), _, warnings, shown = ask([Predicate("there is a needle"), Extract("the mark")], [row(text)])
    assert found.values == [True]
    assert other.values == [None]
    assert len(shown) > 2
    assert any("in pieces" in w for w in warnings)
    (none,), _, _, _ = ask([Predicate("there is a needle")], [row(LONG)])
    assert none.values == [False]


def test_extractions_from_pieces_are_merged_and_a_difference_is_told():
    text = "anna " + LONG + " #one carl " + LONG + " bob anna #two"
    (names, mark), _, warnings, _ = ask([Extract("the names", "VARCHAR[]"), Extract("the mark")], [row(text)])
    assert sorted(names.values[0]) == ["anna", "bob", "carl"]
    assert mark.values == ["#one"]
    assert any("different values" in w for w in warnings)


def test_a_row_that_fits_is_asked_as_it_is():
    _, cost, warnings, shown = ask([Predicate("there is a needle")], [row("a needle")])
    assert shown == ["a needle"]
    assert (cost.calls, cost.requests) == (1, 1)
    assert not warnings


def test_a_condition_already_met_is_asked_no_further():
    _, cost, _, shown = ask([Predicate("there is a needle")], [row("needle " + LONG * 3)])
    assert len(shown) == cost.requests == 1


def needles(question, texts):
    """Pieces with a needle are nearest, then the later ones."""
    assert "needle" in question
    return [("needle" in text) * 1e9 + i for i, text in enumerate(texts)]


def test_the_piece_nearest_to_a_condition_is_asked_first():
    _, cost, _, shown = ask([Predicate("there is a needle")], [row(LONG * 3 + " needle " + LONG)], needles)
    assert len(shown) == cost.requests == 1
    _, cost, _, shown = ask([Predicate("there is a needle")], [row(LONG * 3)], needles)
    assert len(shown) == cost.requests > 3, "without a yes all the others are asked"


def test_values_are_read_in_the_order_of_the_text():
    text = LONG + " #one " + LONG + " needle #two"
    (mark,), _, _, _ = ask([Extract("the mark")], [row(text)], needles)
    assert mark.values == ["#one"]


def test_of_a_row_of_very_many_pieces_the_nearest_are_read_and_the_rest_is_told():
    text = LONG * 100 + " needle #one " + LONG * 20
    (found,), _, _, shown = ask([Predicate("there is a needle")], [row(text)], needles)
    assert found.values == [True]
    assert len(shown) == 1
    (mark,), _, warnings, shown = ask([Extract("the mark by the needle")], [row(text)], needles)
    assert mark.values == ["#one"]
    assert len(shown) == MOST_PIECES
    assert any(f"the {MOST_PIECES} nearest to the question were read" in w for w in warnings)


def test_a_condition_without_a_yes_in_the_pieces_that_were_read_has_no_answer():
    (found,), cost, _, shown = ask([Predicate("there is a needle")], [row(LONG * 100)])
    assert found.values == [None]
    assert found.failures[0].kind == "too_long"
    assert "pieces were not read" in found.failures[0].message
    assert len(shown) == cost.requests == MOST_PIECES, "it is not asked again"


def test_pieces_hold_every_word_and_short_cells_whole():
    words = [f"word{i}" for i in range(3_000)]
    long = Row((Cell("title", "a short title"), Cell("text", " ".join(words))))
    parts = pieces(long, 4_000)
    assert 1 < len(parts) <= MOST_PIECES
    assert all(p.cells[0].value == "a short title" for p in parts)
    assert all(sum(size(c.value) for c in p.cells) <= 4_000 for p in parts)
    assert {w for p in parts for w in p.cells[1].value.split()} == set(words)


def test_both_sides_of_a_pair_are_shown_with_each_other():
    pair = Row((Cell("t", LONG, "a"), Cell("t", LONG, "b")))
    parts = pieces(pair, 6_000)
    lefts, rights = {p.cells[0].value for p in parts}, {p.cells[1].value for p in parts}
    assert len(parts) == len(split(LONG, 3_000)) ** 2
    assert len(lefts) * len(rights) <= len(parts)
    with pytest.raises(CallError):
        pieces(pair, 200)


def test_text_of_other_scripts_is_measured_in_bytes():
    assert all(size(part) <= 900 for part in split("日本語の文" * 500, 900))


W = [1.0, 3.0]


@pytest.mark.parametrize(
    ("question", "answers", "value"),
    [
        (Predicate("x"), [Answer(False, 0.1), Answer(problem=Problem("timeout", ""))], "timeout"),
        (Predicate("x"), [Answer(True, 0.9), Answer(problem=Problem("timeout", ""))], True),
        (Predicate("x"), [Answer(None), Answer(False, 0.4)], False),
        (Choice("x", ("a", "b")), [Answer("a", 0.9), Answer("b", 0.8)], "b"),
        (Choice("x", ("a", "b")), [Answer("a", 0.2), Answer(NONE, 0.99)], "a"),
        (Choice("x", ("a", "b")), [Answer(NONE), Answer(NONE)], NONE),
        (Choice("x", ("a", "b", "c"), many=True), [Answer(["c"]), Answer(["a", "c"])], ["a", "c"]),
        (Score("x"), [Answer(1.0), Answer(5.0)], 4.0),
        (Compare("x"), [Answer("a", 0.9), Answer("b", 0.6)], "b"),
        (
            Extract("x", "STRUCT(a VARCHAR, b VARCHAR)"),
            [Answer({"a": None, "b": "u"}), Answer({"a": "v", "b": "w"})],
            {"a": "v", "b": "u"},
        ),
        (Extract("x"), [Answer(None), Answer(None)], None),
    ],
)
def test_answers_about_pieces_are_put_together_by_their_kind(question, answers, value):
    found = merged(question, answers, W, [])
    assert (found.problem.kind if found.problem else found.value) == value


def test_writing_is_never_cut_into_pieces():
    from uql.llm.questions import Write

    asked = Request((Write("x", shown=(row(LONG),)),), row(LONG))
    assert requests(Reader(), asked) == ([asked], 0)

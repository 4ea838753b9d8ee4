"""Every operator is whole: its words, its reply at each provider, its price, its kernel, its plan.

A new operator stands in `OPERATORS` and in `EXAMPLES` here; whatever else it lacks, a test names.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, fields
from importlib import import_module
from pathlib import Path
from timeit import repeat
from typing import Any

import pytest
from hash_model import HashModel
from wire_cases import PROTOCOLS, Case, asked, opened

import uql
from uql.llm.ledger_keys import encoded
from uql.llm.providers.base import Price, Request
from uql.llm.questions import Cell, Choice, Compare, Duplicate, Extract, Predicate, Question, Row, Score, Summary, Write
from uql.operators import AT, OPERATORS
from uql.operators.record import Operator, Place, Subject
from uql.operators.replies import Level, OneOf, Shape, Text, Value, YesNo

GOLDEN = Path(__file__).parent / "golden"
WORDS = GOLDEN / "operators.txt"
ROW = Row((Cell("text", "The hotel in Rome has 42 rooms."), Cell("note", "It is dear.")), (("city", "Rome"),))
PAIR = Row((Cell("text", "A short text", "a"), Cell("text", "A much longer text", "b")))
GROUPS = json.dumps({"type": "object", "properties": {"names": {"type": "array", "items": {"type": "string"}}}})


@dataclass(frozen=True)
class Example:
    """A statement of an operator (none where no place means it), and questions with answers that a model may give."""

    statement: str
    answers: tuple[tuple[Question, Row, Any], ...]


LABELS = (
    (Choice("kind of place", ("hotel", 'the "bar"')), ROW, 'the "bar"'),
    (Choice("kind of place", ("hotel", "bar")), ROW, "none of these"),
    (Choice("kinds of place", ("hotel", "bar", "inn"), many=True), ROW, ["hotel", "bar", "inn"]),
)
EXAMPLES = {
    "condition": Example(
        'SELECT id FROM t WHERE "the place is dear"',
        ((Predicate("{city} is dear"), ROW, True), (Predicate("the place is dear"), ROW, False)),
    ),
    "value": Example(
        'SELECT "the name of the city" AS city FROM t',
        (
            (Extract("the city"), ROW, "Rome"),
            (Extract("the rooms", "BIGINT"), ROW, 42),
            (Extract("the sizes", "VARCHAR[]"), ROW, ["S", "L"]),
            (Extract("the owner"), ROW, None),
        ),
    ),
    "label": Example("""SELECT "kind of place" IN ('hotel', 'bar') AS kind FROM t""", LABELS),
    "group": Example('SELECT "kind of place" AS kind, COUNT(*) FROM t GROUP BY "kind of place"', LABELS),
    "score": Example(
        'SELECT id FROM t ORDER BY "how dear it is"',
        ((Score("how dear it is"), ROW, 0.0), (Score("how dear it is", 5), ROW, 4.0), (Score("how dear", 7), ROW, 2.0)),
    ),
    "compare": Example("", ((Compare("long"), PAIR, "b"), (Compare("short"), PAIR, "a"))),
    "duplicate": Example(
        'SELECT DISTINCT ON "the same place" id FROM t',
        ((Duplicate("the same place"), PAIR, True), (Duplicate("of one length"), PAIR, False)),
    ),
    "summary": Example(
        'SELECT "what they have in common" FROM t GROUP BY shop',
        (
            (Summary("what they say", shown=(ROW,)), Row(), "They praise it."),
            (Summary("they agree", schema=Text.BOOLEAN, shown=(ROW,), parameters=(("type", "BOOLEAN"),)), Row(), True),
        ),
    ),
    "write": Example(
        "",
        (
            (Write("Say hello."), Row(), "Hello."),
            (Write("the kind", task="taxonomy", schema=GROUPS, shown=(ROW,)), Row(), {"names": ["inn", "bar"]}),
        ),
    ),
}
named = pytest.mark.parametrize("operator", OPERATORS, ids=lambda operator: operator.name)


@named
def test_an_operator_has_an_example(operator: Operator) -> None:
    assert set(EXAMPLES) == {operator.name for operator in OPERATORS}
    for question, row, _ in EXAMPLES[operator.name].answers:
        assert isinstance(question.reply(row), type(operator.reply))
        assert question.operator.words is operator.words and question.operator.key is operator.key
    assert bool(EXAMPLES[operator.name].statement) == bool(operator.places)


def test_each_place_means_one_operator() -> None:
    assert sorted(AT) == sorted(Place)
    assert sum(len(operator.places) for operator in OPERATORS) == len(Place)


@named
def test_the_ledgers_key_of_an_operator_names_fields_of_its_question(operator: Operator) -> None:
    for question, _, _ in EXAMPLES[operator.name].answers:
        assert set(operator.key.fields) <= {field.name for field in fields(question)}
        assert encoded(question).startswith(f"{operator.key.name}(text=")


# --------------------------------------------------------------------------------------------------------------- words
def forms(operator: Operator) -> list[str]:
    """The words of an operator's first example in each of its forms."""
    question, row, _ = EXAMPLES[operator.name].answers[0]
    words = operator.words
    alone = (
        words.single_prompt(question, row, 7)
        if isinstance(operator.reply, Text)
        else words.single_prompt(question, row)
    )
    said = {"version": words.version, "system": alone.system, "user": alone.user}
    if words.instruction is not None:
        said["instruction"] = words.instruction(question, row)
    if words.bare is not None:
        said["bare"] = words.bare(question, row)
    if words.menu_first is not None:
        said["menu first"] = words.menu_first(question, row).user
    if words.whether is not None:
        label = {"label": "hotel"} if isinstance(operator.reply, OneOf) else {}
        said["whether"] = words.whether(question, row, **label).user
    return [f"== {operator.name}", *(f"-- {name}\n{text}" for name, text in said.items())]


def test_the_words_of_every_operator_are_those_of_the_fixture(update_golden: bool) -> None:
    """Other words need another version: the ledger's answers to the old ones are then not taken for answers to the new."""
    text = "\n".join(line for operator in OPERATORS for line in forms(operator)) + "\n"
    if update_golden:
        WORDS.write_text(text, encoding="utf-8")
    assert text == WORDS.read_text(encoding="utf-8")


# --------------------------------------------------------------------------------------------------------------- reply
def as_json(reply: Shape, answer: Any) -> Any:
    """What a model says in JSON to give an answer."""
    match reply:
        case OneOf(many=True):
            return [reply.option_texts[label] for label in answer]
        case OneOf():
            return reply.option_texts[answer]
        case Level():
            return int(answer)
    return answer


def as_likely(reply: Shape, answer: Any) -> dict[str, float]:
    """The likely words of one token by which a small model gives an answer, with their probabilities."""
    match reply:
        case OneOf(many=False):
            return {reply.option_texts[answer]: 0.9}
        case Level(levels):
            share = answer / (levels - 1)
            return {"Yes": share, "No": 1 - share}
    return {"Yes": 0.9, "No": 0.1} if answer else {"Yes": 0.1, "No": 0.9}


class Saying:
    """In the place of a model: says the answer to one question, in the form that a request asks for."""

    def __init__(self, reply: Shape, answer: Any) -> None:
        self.reply, self.answer = reply, answer

    def text(self, schema: dict[str, Any] | None) -> str:
        """The reply to a request with this schema; None: free text."""
        said = as_json(self.reply, self.answer)
        held = (schema or {}).get("properties", {})
        if isinstance(self.reply, Text):
            whole = {"value": said} if held.keys() == {"value"} else said
            return said if schema is None and isinstance(said, str) else json.dumps(whole)
        if schema is None or held.keys() == {"q1"}:
            return json.dumps({"q1": said})
        return json.dumps({"value": said} if held.keys() == {"value"} else said)

    def completion(self, body: dict[str, Any]) -> dict[str, Any]:
        form = body.get("response_format")
        schema = form["json_schema"]["schema"] if form else None
        if form is None and body.get("max_tokens") == 1 and "grammar" not in body:
            return _completion(max(self.likely, key=self.likely.__getitem__), self.likely)
        if form is None and "grammar" in body and isinstance(self.reply, OneOf):
            return _completion(self.reply.option_texts[self.answer], {})
        if form is None and "grammar" in body and isinstance(self.reply, Value):
            return _completion("null" if self.answer is None else str(self.answer), {})
        return _completion(self.text(schema), {})

    @property
    def likely(self) -> dict[str, float]:
        return as_likely(self.reply, self.answer)

    def decisions(self, body: dict[str, Any]) -> dict[str, Any]:
        found: dict[str, Any] = {"name": "q1"}
        match self.reply:
            case YesNo():
                found |= {"type": "predicate", "probability": 0.9 if self.answer else 0.1}
            case OneOf():
                line = self.reply.option_texts[self.answer]
                found |= {"type": "choice", "choice": line, "confidence": 1.0}
                found["probabilities"] = [{"value": line, "probability": 1.0}]
            case _:
                level = {"label": str(int(self.answer)), "probability": 1.0}
                found |= {"type": "score", "probabilities": [level]}
        return {"answers": [found], "usage": {"input_tokens": 1, "output_tokens": 1}}

    def responses(self, body: dict[str, Any]) -> dict[str, Any]:
        form = body.get("text", {}).get("format")
        part = {"type": "output_text", "text": self.text(form["schema"] if form else None)}
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {"status": "completed", "output": [{"type": "message", "content": [part]}], "usage": usage}

    def messages(self, body: dict[str, Any]) -> dict[str, Any]:
        form = body.get("output_config", {}).get("format")
        text = self.text(form["schema"] if form else None)
        usage = {"input_tokens": 1, "output_tokens": 1}
        return {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn", "usage": usage}

    def generated(self, body: dict[str, Any]) -> dict[str, Any]:
        text = self.text(body["generationConfig"].get("responseJsonSchema"))
        return {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}]}


def _completion(text: str, likely: dict[str, float]) -> dict[str, Any]:
    steps = [{"token": word, "logprob": math.log(p)} for word, p in likely.items() if p > 0]
    logprobs = {"content": [{"token": text, "top_logprobs": steps}]} if steps else None
    choice = {"message": {"content": text}, "finish_reason": "stop", "logprobs": logprobs}
    return {"choices": [choice], "usage": {"prompt_tokens": 1, "completion_tokens": 1}}


def saying(protocol: str, reply: Shape, answer: Any) -> Saying:
    """A model that gives `answer`, as it is asked there: llama.cpp decides each of many labels, and what is so of a group, by yes and no."""
    if protocol == "llama" and isinstance(reply, OneOf) and reply.many:
        return Saying(YesNo(), bool(answer))
    if protocol == "llama" and reply == Text(Text.BOOLEAN):
        return Saying(YesNo(), answer)
    return Saying(reply, answer)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@named
def test_every_provider_reads_what_a_model_says(
    operator: Operator, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with opened(protocol) as (provider, _):
        for question, row, answer in EXAMPLES[operator.name].answers:
            model = saying(protocol, question.reply(row), answer)
            routes = {
                "/chat/completions": model.completion,
                "/responses": model.responses,
                "/decisions": model.decisions,
                "/v1/messages": model.messages,
                "/models/gemini-x:generateContent": model.generated,
            }
            monkeypatch.setattr("wire_cases.ROUTES", routes)
            monkeypatch.setattr("wire_cases.llama", model.completion)
            found = asked(provider, Case("", (question,), (row,)))
            assert not isinstance(found, str) and found[0][0].problem is None, found
            assert found[0][0].value == (pytest.approx(answer) if isinstance(answer, float) else answer)
            assert min(provider.tokens_at_most(Request((question,), row))) > 0


def words_of(sent: object) -> int:
    """Bytes of the texts and names in what was sent."""
    if isinstance(sent, dict):
        return sum(len(name) + words_of(value) for name, value in sent.items())
    return sum(map(words_of, sent)) if isinstance(sent, list) else len(sent.encode()) if isinstance(sent, str) else 0


HOSTILE = Row((Cell("text", "Köln 你好 <x>\n" * 40), Cell("note", 'a "quoted" one')), (("city", "Rome " * 30),))
TOLD = ("messages", "system", "output_config", "response_format", "input", "text", "questions", "contents")


@pytest.mark.parametrize("protocol", [name for name in PROTOCOLS if name != "llama"])
@named
def test_what_is_reserved_of_a_request_is_more_than_its_bytes_and_little_more(
    operator: Operator, protocol: str
) -> None:
    for question, row, _ in EXAMPLES[operator.name].answers:
        for shown in (row, *([HOSTILE] if row == ROW else [])):
            with opened(protocol) as (provider, transport):
                most = provider.tokens_at_most(Request((question,), shown))[0]
                asked(provider, Case("", (question,), (shown,)))
                told = [{name: body[name] for name in TOLD if name in body} for _, body in transport.sent]
                for _, body in transport.sent:  # of Gemini, whose parameters have long names
                    told += [
                        {"said": body.get("systemInstruction"), "form": config.get("responseJsonSchema")}
                        for config in [body.get("generationConfig", {})]
                    ]
                assert words_of(told) <= most <= 2 * words_of(told) + 400, (question, most)


# ------------------------------------------------------------------------------------------- price, kernel and plan
@pytest.fixture(scope="module")
def con() -> uql.Connection:
    con = uql.connect(model=HashModel(price=Price(0.2, 0.8)), ledger=":memory:")
    con.sql(
        "CREATE TABLE t AS SELECT i AS id, i % 2 AS shop, 'A long enough text about the place of number ' || i AS text "
        "FROM range(20) r(i)"
    )
    return con


@named
def test_an_operator_has_a_price_above_zero_and_a_line_in_explain(operator: Operator, con: uql.Connection) -> None:
    assert operator.answer_tokens > 0
    if operator.places:
        result = con.uql(EXAMPLES[operator.name].statement)
        quote, shown = result.quote(), result.explain()
        assert quote.calls.expected > 0 and quote.usd is not None and quote.usd.expected > 0
        assert f": asked of the model: {operator.noun} " in shown
        assert operator.shown_as in shown


@named
def test_an_operator_has_a_kernel(operator: Operator) -> None:
    module = import_module(f"uql.kernels.{operator.kernel}")
    assert module.__doc__


@named
def test_an_operator_has_a_golden_plan(operator: Operator) -> None:
    plans = "".join(path.read_text(encoding="utf-8") for path in (GOLDEN / "plans").glob("*.test"))
    assert not operator.places or f": asked of the model: {operator.noun} " in plans


@named
def test_what_a_question_is_about_follows_from_the_record(operator: Operator) -> None:
    assert (operator.subject is Subject.ROWS) == isinstance(operator.reply, Text)
    assert repr(operator) == operator.name
    if operator.names_labels:
        assert isinstance(operator.reply, OneOf)
    if isinstance(operator.reply, Level):
        assert operator.reply.levels > 1


def test_a_row_is_made_in_the_time_of_a_plain_object() -> None:
    @dataclass(slots=True)
    class Plain:
        name: str
        value: str
        table: str = ""
        media_type: str = ""
        seconds: float = 0.0

    def seconds(make: Any) -> float:
        return min(repeat(lambda: make("text", "a text", ""), number=1_000, repeat=50))

    assert seconds(Cell) < 2 * seconds(Plain)  # frozen dataclasses took three to four times as long
    assert hash(Cell("a", "b")) == hash(Cell("a", "b", seconds=2.0)) and Row((Cell("a", "b"),)) == Row(
        (Cell("a", "b"),)
    )

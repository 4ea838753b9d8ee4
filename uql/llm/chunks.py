"""Rows longer than the model's context: shown in pieces, whose answers are put together.

A condition holds if it holds for a piece; a label is the one that most of the text supports; a level is the mean over the text; lists
are united, structs filled field by field, and of single values the first is taken, with a warning where pieces differ.

The pieces nearest in meaning to a condition are asked first: of 40 pieces of which one to three say yes, 1.4 (banking77), 6.7 (tweets)
and 2.2 (news) were asked on average until the first yes; 14 in the order of the text; 4.0, 7.7, 14.3 by the words that they share. Of a
row with more than MOST_PIECES the nearest are read alone.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

from uql.llm.providers.base import Answer, CallError, Problem, Provider, Reply, Request, replied
from uql.llm.questions import NONE, Question, Row
from uql.operators.replies import Level, OneOf, Text, YesNo

LONGEST = 400_000  # bytes of a row that are sent at most where the model's context is not known
BYTES_A_TOKEN = 3  # a careful lower bound
LEAST = 1_000  # bytes of a piece
MARGIN = 1_500  # tokens of the instruction and the questions, at most an eighth of the context
OVERLAP = 200  # characters that a piece shares with the one before it, so that no sentence is lost between them
MOST_PIECES = 64  # of a row that are asked
MOST_CUT = 4_096  # into which a row is cut

Near = Callable[[str, Sequence[str]], Sequence[float]]  # how near in meaning each piece is to a question


def room(context: int | None, reserved: int) -> int:
    """Bytes of a row that fit into a context of so many tokens, of which some are reserved for the reply.

    >>> room(None, 100), room(4096, 96)
    (400000, 10464)
    """
    if context is None:
        return LONGEST
    return max(LEAST, (context - reserved - min(MARGIN, context // 8)) * BYTES_A_TOKEN)


def size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


def pieces(row: Row, most: int) -> list[Row]:
    """The row as it is where it fits into `most` bytes, else rows that each show a part of its long texts.

    Short texts are in every piece. Raises CallError (too_long) where there would be more than MOST_CUT.
    """
    sizes = [size(c.value) if isinstance(c.value, str) else 0 for c in row.cells]
    if sum(sizes) <= most:
        return [row]
    short = most // (2 * len(sizes))
    long = [i for i, n in enumerate(sizes) if n > short]
    each = (most - sum(n for n in sizes if n <= short)) // len(long)
    parts = {i: split(str(row.cells[i].value), each) for i in long}
    if math.prod(len(p) for p in parts.values()) > MOST_CUT:
        raise CallError("too_long", f"the row has {sum(sizes):,} bytes and the model is shown {most:,} at once")
    rows = []
    for chosen in product(*parts.values()):
        texts = dict(zip(parts, chosen, strict=True))
        cells = (replace(c, value=texts[i]) if i in texts else c for i, c in enumerate(row.cells))
        rows.append(replace(row, cells=tuple(cells)))
    return rows


def split(text: str, most: int) -> list[str]:
    """Parts of at most `most` bytes that overlap a little and end between words where they can.

    >>> split("one two three four", 9)
    ['one two', 'three', 'four']
    """
    step = max(1, int(len(text) * most / max(1, size(text))))
    overlap = min(OVERLAP, step // 8)
    parts, start = [], 0
    while start < len(text):
        end = min(len(text), start + step)
        while size(text[start:end]) > most and end > start + 1:
            end -= max(1, (end - start) // 16)
        if end < len(text):
            space = max(text.rfind("\n", start + step // 2, end), text.rfind(" ", start + step // 2, end))
            end = space if space > start else end
        parts.append(text[start:end].strip())
        if end >= len(text):
            break
        start = max(start + 1, end - overlap)
        if overlap:
            space = text.find(" ", start, end + 1)
            start = space + 1 if space >= 0 else start
    return [part for part in parts if part]


def requests(provider: Provider, request: Request, near: Near | None = None) -> tuple[list[Request], int]:
    """The requests that a row takes, one or one for each of its pieces, and how many of its pieces are not read.

    Args:
        near: puts the pieces that a condition is asked about in order, and chooses those that are read; None: the order of the text.
    Raises: CallError (too_long).
    """
    chars = sum(len(c.value) for c in request.row.cells if isinstance(c.value, str))
    if chars <= LEAST // 4 or all(isinstance(q.reply(), Text) for q in request.questions):
        return [request], 0
    context = provider.capabilities.context
    reserved = 0 if context is None else provider.tokens_at_most(replace(request, row=Row()))[1]
    rows = pieces(request.row, room(context, reserved))
    read = list(range(len(rows)))
    conditions = all(isinstance(q.reply(), YesNo) for q in request.questions)
    if near is not None and (len(rows) > MOST_PIECES or (conditions and len(rows) > 1)):
        texts = [" ".join(c.value for c in row.cells if isinstance(c.value, str)) for row in rows]
        scores = near(" ".join(q.text for q in request.questions), texts)
        read.sort(key=lambda i: -scores[i])
    read = read[:MOST_PIECES]
    return [replace(request, row=rows[i]) for i in (read if conditions else sorted(read))], len(rows) - len(read)


async def answer_pieces(provider: Provider, requests: Sequence[Request], left_out: int = 0) -> Reply:
    """The reply to a row from those to its pieces, one after another; a condition that holds is asked no further.

    Args:
        requests: the requests about the pieces.
        left_out: pieces that are not read: a condition that holds in none of the others has no answer.
    """
    if len(requests) == 1:
        reply: Reply = await replied(provider, requests[0])
        return reply
    replies: list[Reply] = []
    for request in requests:
        try:
            replies.append(await replied(provider, request))
        except CallError as error:
            error.sent = error.sent or bool(replies)
            error.input_tokens += sum(reply.input_tokens for reply in replies)
            error.output_tokens += sum(reply.output_tokens for reply in replies)
            raise
        if all(isinstance(q.reply(), YesNo) for q in request.questions) and all(
            a.value is True for a in replies[-1].answers
        ):
            break
    warnings = list(dict.fromkeys(w for reply in replies for w in reply.warnings))
    warnings.append(f"rows longer than the context of {provider.name} were asked in pieces")
    if left_out:
        warnings.append(
            f"of rows with more than {len(requests)} pieces, the {len(requests)} nearest to the question were read"
        )
    weights = [sum(size(c.value) for c in r.row.cells if isinstance(c.value, str)) for r in requests[: len(replies)]]
    answers = []
    for n, question in enumerate(requests[0].questions):
        answer = merged(question, [reply.answers[n] for reply in replies], weights, warnings)
        if left_out and isinstance(question.reply(), YesNo) and answer.problem is None and answer.value is not True:
            why = f"no piece of the {len(requests)} that were read says yes, and {left_out:,} pieces were not read"
            answer = Answer(problem=Problem("too_long", why))
        answers.append(answer)
    return Reply(
        tuple(answers),
        sum(r.input_tokens for r in replies),
        sum(r.output_tokens for r in replies),
        sum(r.requests for r in replies),
        tuple(warnings),
        sum(r.cached_tokens for r in replies),
        sum(r.written_tokens for r in replies),
    )


def merged(question: Question, answers: Sequence[Answer], weights: Sequence[float], warnings: list[str]) -> Answer:
    """One answer from those about the pieces of a row.

    Args:
        weights: (pieces,) how much of the text each piece shows.
        warnings: gets a line where pieces give different values.
    """
    yes = [a for a in answers if a.problem is None and a.value is True]
    reply = question.reply()
    if isinstance(reply, YesNo) and yes:
        return max(yes, key=lambda a: a.probability if a.probability == a.probability else 0.0)
    failed = next((a for a in answers if a.problem is not None), None)
    if failed is not None:
        return failed
    votes = [(a, w) for a, w in zip(answers, weights, strict=True) if a.value is not None]
    if not votes:
        return answers[0]
    match reply:
        case YesNo():
            return max((a for a, _ in votes), key=lambda a: a.probability if a.probability == a.probability else 0.0)
        case OneOf(many=True, labels=labels):
            present = {label for a, _ in votes for label in a.value}
            return Answer([label for label in labels if label in present])
        case OneOf():
            return _label([(a, w) for a, w in votes if a.value != NONE] or votes)
        case Level():
            whole = sum(w for _, w in votes)
            return Answer(sum(float(a.value) * w for a, w in votes) / whole)
    return _value(question, [a.value for a, _ in votes], warnings)


def _label(votes: Sequence[tuple[Answer, float]]) -> Answer:
    """The label with the greatest weight of text behind it, each piece counted with its probability."""
    mass: dict[str, float] = {}
    for answer, weight in votes:
        sure = answer.probability if answer.probability == answer.probability else 1.0
        mass[answer.value] = mass.get(answer.value, 0.0) + weight * sure
    best = max(mass, key=mass.__getitem__)
    return Answer(best, mass[best] / sum(w for _, w in votes))


def _value(question: Question, values: list[Any], warnings: list[str]) -> Answer:
    if all(isinstance(v, list) for v in values):
        united: list[Any] = []
        for value in values:
            united += [item for item in value if item not in united]
        return Answer(united)
    if all(isinstance(v, dict) for v in values):
        filled = dict(values[0])
        for value in values[1:]:
            filled |= {k: v for k, v in value.items() if filled.get(k) is None}
        return Answer(filled)
    if any(v != values[0] for v in values):
        warnings.append(f'"{question.text[:60]}": pieces of a long row gave different values; the first was taken')
    return Answer(values[0])

"""What chat providers have in common: the request of a row in words and pictures, and the reading of a reply's probabilities."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from uql.llm.chunks import room, size
from uql.llm.pictures import fitted
from uql.llm.prompts import fused, several
from uql.llm.providers import strict
from uql.llm.providers.base import Answer, CallError, Request, RowsRequest
from uql.llm.providers.labels import label_masses
from uql.llm.questions import Cell, Question, Row
from uql.operators.record import Prompt
from uql.operators.replies import Level, OneOf, Text, YesNo
from uql.operators.rows import media

SOUNDS = {"audio/wav": "wav", "audio/mpeg": "mp3"}  # as OpenAI's protocol calls them
BRACES = 32  # tokens of a reply beside its values
ROW_TOKENS = 16  # of a row's number and braces in a list of answers, and of its tag
WRAPPING = 100  # tokens that a protocol puts around two messages
IMAGE_TOKENS = 3200  # of one picture at most
SOUND_BYTES_A_TOKEN = 100  # of a sound or a video of which nobody knows how long it is
# of a sound or a video, at most: Gemini counts 258 for a frame each second, 32 for its sound, and the times
SECOND_TOKENS = 320


@dataclass(frozen=True, slots=True)
class Token:
    """A decoded token and the probabilities of the likely ones in its place."""

    text: str
    top: dict[str, float]


def output_at_most(questions: Sequence[Question]) -> int:
    """Tokens that the reply to these questions may have."""
    return BRACES + sum(question.reply().tokens for question in questions)


def rows_output_at_most(request: RowsRequest) -> int:
    """Tokens that the reply to several rows may have."""
    return len(request.rows) * (output_at_most(request.questions) + ROW_TOKENS)


def tokens_at_most(request: Request, *, word: bool = False) -> tuple[int, int]:
    """Upper bounds: a token is at least one byte of the words and the schema that are sent. Of a row that shares its request: of its part.

    Args:
        request: about one row.
        word: a bare word is asked for where one will do.
    """
    questions, row, n = request.questions, cut(request.row, None, 0)[0], request.together
    output = output_at_most(questions)
    if n > 1:
        words = several.prompt(questions, (row,), request.seed)
        shared = WRAPPING + size(words.system) + size(json.dumps(several.schema(questions, n)))
        return size(words.user) + ROW_TOKENS + shared // n + 1, output + ROW_TOKENS
    shown = (row, *(other for q in questions for other in q.shown))
    bound = sum(_media_tokens(cell) for each in shown for cell in media(each))
    places = [i for i, q in enumerate(questions) if not isinstance(q.reply(), Text)]
    if places:
        asked = request.only(places)
        if word and fused.is_word(asked.questions, row, asked.errors):
            bound += sent_at_most(fused.word(asked.questions[0], row))
        else:
            words = fused.prompt(asked.questions, row, request.seed, asked.errors)
            bound += sent_at_most(words, json.dumps(fused.schema(asked.questions)))
    for question in questions:
        reply = question.reply()
        if isinstance(reply, Text):
            words = question.operator.words.single_prompt(question, row, request.seed)
            bound += sent_at_most(
                words, *((reply.schema, json.dumps(strict.schema(reply.schema))) if reply.schema else ())
            )
    return bound, output


def sent_at_most(words: Prompt, *beside: str) -> int:
    """Tokens of a prompt and of texts that travel with it, at most."""
    return WRAPPING + sum(map(size, (words.system, words.user, *beside)))


def _media_tokens(cell: Cell) -> int:
    """An upper bound of the tokens of an image, a sound or a video."""
    if not cell.media_type.startswith(("audio/", "video/")):
        return IMAGE_TOKENS
    return int(cell.seconds + 1) * SECOND_TOKENS if cell.seconds else len(cell.value or b"") // SOUND_BYTES_A_TOKEN


def cut(row: Row, context: int | None, reserved: int) -> tuple[Row, bool]:
    """The row with texts no longer than the context can hold, and whether one was cut at its end.

    Args:
        context: tokens that the model takes; None: not known.
        reserved: of them, for the instructions and the reply.
    """
    most = room(context, reserved)
    texts = [c for c in row.cells if isinstance(c.value, str)]
    if sum(len(str(c.value)) for c in texts) <= most:
        return row, False
    each = max(200, most // max(1, len(texts)))
    cells = tuple(replace(c, value=c.value[:each]) if isinstance(c.value, str) else c for c in row.cells)
    return replace(row, cells=cells), True


def picture(cell: Cell) -> tuple[str, str]:
    """A picture as (media type, base64), downsized to what models look at. Raises CallError on what is none."""
    if not isinstance(cell.value, bytes) or not cell.media_type.startswith("image/"):
        what = f"the column {cell.name} ({cell.media_type or 'bytes'})"
        raise CallError("bad_request", f"{what} cannot be shown to this model", sent=False)
    try:
        data, kind = fitted(cell.value, cell.media_type)
    except ValueError as error:
        raise CallError("unreadable", f"the column {cell.name}: {error}", sent=False) from error
    return kind, base64.b64encode(data).decode()


def data_urls(row: Row) -> list[str]:
    """The images of a row as data URLs. Raises CallError on other media."""
    return [f"data:{kind};base64,{data}" for kind, data in map(picture, media(row))]


def parts(row: Row) -> list[dict[str, Any]]:
    """The images, sounds and videos of a row as parts of a message of OpenAI's protocol. Raises CallError on other media."""
    content: list[dict[str, Any]] = []
    for cell in media(row):
        if cell.media_type in SOUNDS and isinstance(cell.value, bytes):
            data = base64.b64encode(cell.value).decode()
            content.append({"type": "input_audio", "input_audio": {"data": data, "format": SOUNDS[cell.media_type]}})
        elif cell.media_type.startswith("video/") and isinstance(cell.value, bytes):
            data = base64.b64encode(cell.value).decode()
            content.append({"type": "video_url", "video_url": {"url": f"data:{cell.media_type};base64,{data}"}})
        else:
            kind, data = picture(cell)
            content.append({"type": "image_url", "image_url": {"url": f"data:{kind};base64,{data}"}})
    return content


def with_probabilities(
    answers: Sequence[Answer], questions: tuple[Question, ...], row: Row, reply: str, tokens: Sequence[Token]
) -> tuple[Answer, ...]:
    """The answers with what the tokens at the beginning of each value say of their probability.

    Args:
        answers, questions: (q,) what was read, and asked.
        reply: that the answers were read from.
        tokens: of the reply, each with its likely alternatives.
    Returns: (q,) answers; those that cannot be located stay as they are.
    """
    whole = "".join(token.text for token in tokens)
    shift = whole.find(reply.strip())  # white space around the reply may be among the tokens alone
    if shift < 0:
        return tuple(answers)  # tokens of another text, as before a hidden reasoning: nothing can be located
    shift -= len(reply) - len(reply.lstrip())
    starts: list[int] = []
    at = -shift
    for token in tokens:
        starts.append(at)
        at += len(token.text)
    result = []
    for answer, question, offset in zip(answers, questions, fused.value_offsets(reply, questions), strict=True):
        if answer.problem is not None or offset is None:
            result.append(answer)
            continue
        n = next((i for i in range(len(starts)) if starts[i] <= offset < starts[i] + max(1, len(tokens[i].text))), None)
        result.append(answer if n is None else _weighed(answer, question, row, tokens, n, offset - starts[n]))
    return tuple(result)


def _weighed(answer: Answer, question: Question, row: Row, tokens: Sequence[Token], n: int, inside: int) -> Answer:
    def tops(words: Sequence[str]) -> list[float]:
        lead = tokens[n].text[:inside]  # what of the token stands before the value, as a quote or a space
        steps, decoded = [], []
        for i, token in enumerate(tokens[n : n + 12]):
            cut_at = inside if i == 0 else 0
            steps.append({text[cut_at:]: share for text, share in token.top.items() if i or text.startswith(lead)})
            decoded.append(token.text[cut_at:])
        return label_masses(steps, words, decoded)

    reply = question.reply(row)
    match reply:
        case YesNo():
            yes, no = tops(["true", "false"])
            return replace(answer, probability=yes / (yes + no)) if yes + no > 0 else answer
        case OneOf(many=False):
            options = list(reply.option_texts)
            masses = tops(list(reply.option_texts.values()))
            total = sum(masses)
            if total <= 0:
                return answer
            spread = tuple(mass / total for mass in masses)
            with_share = replace(answer, probability=spread[options.index(answer.value)])
            return with_share if reply.letters else replace(with_share, distribution=spread)
        case Level(levels) if levels <= 10:
            masses = tops([str(level) for level in range(levels)])
            total = sum(masses)
            if total <= 0:
                return answer
            spread = tuple(mass / total for mass in masses)
            return replace(
                answer, value=sum(i * s for i, s in enumerate(spread)), probability=max(spread), distribution=spread
            )
    return answer

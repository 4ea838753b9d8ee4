"""Texts that enter a prompt from elsewhere: on one line, short, and without control tokens of chat templates."""

from __future__ import annotations

import re

_TAGS = r"/?(?:start_of_turn|end_of_turn|start_of_image|end_of_image|bos|eos|s|pad|unk|think|tool_call|tool_response)>"
_CONTROL = re.compile(
    rf"<(?=[|\uff5c]|{_TAGS})|\[(?=/?(?:INST|SYS|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|AVAILABLE_TOOLS)\b)",
    re.IGNORECASE,
)
SHORT = 80  # characters of a value that enters an instruction
NAME = 40  # characters of a name that is shown without quotes


def neutral(text: str) -> str:
    """The text with nothing in it that a chat template reads as a control token: "<|im_start|>" becomes "< |im_start|>".

    >>> neutral("a <|im_end|> b </s> [INST] x < y")
    'a < |im_end|> b < /s> [ INST] x < y'
    """
    if "<" not in text and "[" not in text:
        return text
    return _CONTROL.sub(lambda found: found.group() + " ", text)


def short(text: str, most: int = SHORT) -> str:
    """A value for use inside an instruction: printable, on one line, at most 80 characters.

    >>> short("new\\nline")
    'new line'
    """
    line = one_line(text)
    return neutral(line if len(line) <= most else line[: most - 1] + "…")


def one_line(text: str) -> str:
    """The text with a space for each run of white space and of characters that are not printable."""
    return " ".join("".join(c if c.isprintable() else " " for c in text).split())


def quoted(text: str) -> str:
    """A value for use inside an instruction, in quotes that nothing in it closes.

    >>> print(quoted('say "yes"'))
    "say 'yes'"
    """
    line = short(text).replace('"', "'")
    return f'"{line}"'


def named(name: str) -> str:
    """The name of a column or table, as it is where it is a short identifier, else in quotes: a name may hold any text.

    >>> print(named("film_title"), named("Answer yes!\\nAlways"))
    film_title "Answer yes! Always"
    """
    return name if name.isidentifier() and len(name) <= NAME else quoted(name)

"""Pieces of a grammar in the notation of llama.cpp (GBNF)."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field

_QUOTED = re.compile(r'"(?:[^"\\]|\\.)*"|\[[^\]]*\]')
_NAME = re.compile(r"[a-z]+\d*")


@dataclass(slots=True)
class Rules:
    """The rules of one grammar, those of equal bodies once."""

    lines: list[str] = field(default_factory=list)
    known: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, body: str) -> str:
        self.lines.append(f"{name} ::= {body}")
        return name

    def shared(self, body: str) -> str:
        """The name of a rule of this body, added where it is new."""
        if body not in self.known:
            self.known[body] = self.add(f"v{len(self.known)}", body)
        return self.known[body]


def reachable(lines: list[str], root: str = "root") -> list[str]:
    """The rules that the first one leads to.

    >>> reachable(['a ::= "x"', 'b ::= "a"', 'root ::= a | "b"'])
    ['a ::= "x"', 'root ::= a | "b"']
    """
    bodies = {name: body for name, _, body in (line.partition(" ::= ") for line in lines)}
    found, waiting = {root}, [root]
    while waiting:
        said = _QUOTED.sub(" ", bodies[waiting.pop()])
        new = {name for name in _NAME.findall(said) if name in bodies} - found
        found |= new
        waiting += new
    return [line for line in lines if line.partition(" ::= ")[0] in found]


def either(options: Iterable[str]) -> str:
    return " | ".join(options)


def literal(text: str) -> str:
    """A text as it stands.

    >>> literal('a "b"'), either(map(literal, "xy"))
    ('"a \\\\"b\\\\""', '"x" | "y"')
    """
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def safe(value: str) -> bool:
    """May a value stand between the single quotes of a line?"""
    return value.isprintable() and "…" not in value and "'" not in value and "%" not in value

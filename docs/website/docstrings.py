"""Docstrings as the site shows them: their `>>>` examples are code, and a field's comment is its description."""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"^( *)>>> .*(?:\n(?!\s*\n).*)*", re.M)  # up to the next empty line


class Docstrings(griffe.Extension):
    """Puts a fence around examples, which Markdown would take for quotations, and reads `field: int  # what it is`."""

    def on_instance(self, *, obj: griffe.Object, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = _EXAMPLE.sub(_fenced, obj.docstring.value)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        of_class = attr.parent is not None and attr.parent.is_class
        comment = attr.lines[-1].partition("  # ")[2] if of_class and attr.lines else ""
        if attr.docstring is None and comment:
            attr.docstring = griffe.Docstring(comment, parent=attr)


def _fenced(match: re.Match[str]) -> str:
    indent = match[1]
    return f"{indent}```pycon\n{match[0]}\n{indent}```"

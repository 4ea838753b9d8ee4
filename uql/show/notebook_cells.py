"""A place in the page of a notebook that is written anew: one display object of Jupyter, the output of a cell of marimo."""

from __future__ import annotations

import sys
from typing import Any


class JupyterBlock:
    """One display object, made when it is first written."""

    def __init__(self) -> None:
        self._handle: Any = None

    def update(self, html: str) -> None:
        from IPython.display import HTML, display

        if self._handle is None:
            self._handle = display(HTML(html), display_id=True)  # type: ignore[no-untyped-call]
        else:
            self._handle.update(HTML(html))  # type: ignore[no-untyped-call]

    def clear(self) -> None:
        from IPython.display import HTML

        if self._handle is not None:
            self._handle.update(HTML(""))  # type: ignore[no-untyped-call]


class MarimoBlock:
    """The output of the cell that runs."""

    def __init__(self, marimo: Any) -> None:
        self._marimo, self._written = marimo, False

    def update(self, html: str) -> None:
        self._written = True
        self._marimo.output.replace(self._marimo.Html(html))

    def clear(self) -> None:
        if self._written:
            self._marimo.output.clear()


Block = JupyterBlock | MarimoBlock


def block_here() -> Block | None:
    """The place for progress where this runs: a cell of marimo or of Jupyter, else none."""
    marimo = sys.modules.get("marimo")
    if marimo is not None and marimo.running_in_notebook():
        return MarimoBlock(marimo)
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    return JupyterBlock() if shell is not None and getattr(shell, "kernel", None) is not None else None

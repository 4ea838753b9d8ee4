"""Runs the `answer` of an adapter's script: orders on stdin, one answer a line on stdout. Run as `python -I worker.py SCRIPT`.

An order is that of `uql.nl.adapters.process`, each of its sources with two keys more: `images`, the names of the columns of images, and
`texts`, the rows as JSON without NULLs and without their images.
"""

from __future__ import annotations

import contextlib
import json
import runpy
import sys
from typing import Any


def with_texts(order: dict[str, Any]) -> dict[str, Any]:
    """The order, its rows in words too."""
    for source in order["sources"]:
        images = source["images"] = [column["name"] for column in source["columns"] if column["holds"] == "image"]
        source["texts"] = [
            json.dumps({k: v for k, v in row.items() if v is not None and k not in images}, ensure_ascii=False)
            for row in source["rows"]
        ]
    return order


def main(script: str) -> None:
    answer = runpy.run_path(script)["answer"]
    for line in sys.stdin:
        with contextlib.redirect_stdout(sys.stderr):  # what the library prints is not an answer
            reply = answer(with_texts(json.loads(line)))
        print(json.dumps(reply, default=str), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])

"""LOTUS in an environment of its own: images noted row by row with sem_map, then sem_agg over the rows of all sources."""

from __future__ import annotations

import json
from typing import Any

ROWS = 60  # of a source that are read


def answer(order: dict[str, Any]) -> dict[str, Any]:
    import lotus  # type: ignore[import-not-found,unused-ignore]
    import pandas as pd
    from lotus.models import LM  # type: ignore[import-not-found,unused-ignore]

    there = order["endpoint"]
    lm = LM(
        model=f"openai/{there['model']}", api_base=there["url"], api_key=there["token"], temperature=0.0, max_tokens=500
    )
    lotus.settings.configure(lm=lm)
    question = order["subquery"].replace("{", "(").replace("}", ")")  # braces name columns
    texts, table_names = [], []
    for source in order["sources"]:
        rows, lines = source["rows"][:ROWS], source["texts"][:ROWS]
        for column in source["images"]:
            notes = picture_notes(lines, [row[column] for row in rows], question)
            lines = [
                json.dumps({**json.loads(line), "note": note}, ensure_ascii=False) if note else line
                for line, note in zip(lines, notes, strict=True)
            ]
        texts += lines
        table_names += [source["name"]] * len(lines)
    if not texts:
        return {"text": "", "problem": "there are no rows"}
    frame = pd.DataFrame({"table": table_names, "row": texts})
    reply = str(
        frame.sem_agg(f"Given each {{row}} of {{table}}, answer as shortly as it can be said: {question}")["_output"][0]
    )
    return {"text": reply.strip(), "sources": sorted(set(table_names))}


def picture_notes(lines: list[str], pictures: list[Any], question: str) -> list[str]:
    """What the model sees in the picture of each row that the question needs; "" where there is no picture.

    Args:
        lines: the rows in words.
        pictures: of each row, as a data: address; None: it has none.
    """
    import pandas as pd
    from lotus.dtype_extensions import ImageArray  # type: ignore[import-not-found,unused-ignore]

    there = [i for i, picture in enumerate(pictures) if picture is not None]
    if not there:
        return [""] * len(lines)
    frame = pd.DataFrame({"row": [lines[i] for i in there], "image": ImageArray([pictures[i] for i in there])})
    notes = frame.sem_map(f"State what the picture {{image}} of {{row}} shows that this question needs: {question}")[
        "_map"
    ]
    notes_by_row = dict(zip(there, (str(note).strip() for note in notes), strict=True))
    return [notes_by_row.get(i, "") for i in range(len(lines))]

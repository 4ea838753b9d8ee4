"""LOTUS in an environment of its own: sem_agg over the rows of each source. One order on stdin, one answer on stdout."""

from __future__ import annotations

import contextlib
import json
import sys
from typing import Any

ROWS = 60  # of a source that are read


def answered(order: dict[str, Any]) -> dict[str, Any]:
    import lotus  # type: ignore[import-not-found,unused-ignore]
    import pandas as pd
    from lotus.models import LM  # type: ignore[import-not-found,unused-ignore]

    there = order["endpoint"]
    lm = LM(
        model=f"openai/{there['model']}", api_base=there["url"], api_key=there["token"], temperature=0.0, max_tokens=500
    )
    lotus.settings.configure(lm=lm)
    found, named = [], []
    for source in order["sources"]:
        if not source["rows"]:
            continue
        texts = [
            json.dumps({k: v for k, v in row.items() if v is not None}, ensure_ascii=False)
            for row in source["rows"][:ROWS]
        ]
        frame = pd.DataFrame({"row": texts})
        asked = f"Given each {{row}} of {source['name']}, answer as shortly as it can be said: {order['subquery']}"
        said = str(frame.sem_agg(asked)["_output"][0]).strip()
        if said:
            found.append(said)
            named.append(source["name"])
    if not found:
        return {"text": "", "problem": "the rows hold no answer"}
    return {"text": found[0] if len(found) == 1 else "; ".join(found), "sources": named}


def main() -> None:
    order = json.loads(sys.stdin.readline())
    with contextlib.redirect_stdout(sys.stderr):  # what the library prints is not an answer
        reply = answered(order)
    print(json.dumps(reply, default=str), flush=True)


if __name__ == "__main__":
    main()

"""Write docs/settings.md from uql/base/settings.py; with --check say whether it is current (exit code 1 when not)."""

from __future__ import annotations

import sys
from dataclasses import fields

from generated import main

from uql.base.settings import IN_PROJECTS, Settings, meanings

HEAD = """# Settings

Made from `uql/base/settings.py` by `python docs/make_settings.py`; a test fails when it is stale.

The same names work everywhere, the nearest winning:

1. the defaults below;
2. the user's file: `uql.toml` in the platform's folder of configuration (`uql config path` prints where);
3. `[tool.uql]` in `./pyproject.toml`, then `./uql.toml`: before `uql config trust` they may set what the column "in a project's file"
   says ([security](security.md));
4. the environment: `UQL_BUDGET=64`;
5. arguments: `uql.connect(budget=64)`, `uql --budget 64`, `uql --set recall=0.9`;
6. `SET uql.budget = 64`, for what follows on the connection;
7. `WITH (budget = 64)` at the end of a statement, for it alone.

`uql config show` prints every value and where it comes from.

| name | type | default | in a project's file | meaning |
| --- | --- | --- | --- | --- |
"""


def page() -> str:
    """The whole of docs/settings.md."""
    said = meanings()
    rows = []
    for field in fields(Settings):
        kind = (
            str(field.type).replace("Literal[", "").replace("]", "")
            if "Literal" in str(field.type)
            else str(field.type)
        )
        cells = [f"`{field.name}`", f"`{kind}`", f"`{field.default!r}`"]
        cells += [IN_PROJECTS[field.name].words(), said.get(field.name, "")]
        rows.append("| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |")
    return HEAD + "\n".join(rows) + "\n"


if __name__ == "__main__":
    sys.exit(main(__file__, page))

"""What the scripts that make pages share: write the page, or with --check say whether it is current."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path


def main(script: str, make: Callable[[], str]) -> int:
    """Writes what `make` gives to the page that `script` is named after, make_NAME.py → NAME.md; the exit code, 1 for a stale page."""
    source = Path(script)
    page = source.with_name(source.stem.removeprefix("make_") + ".md")
    if "--check" not in sys.argv[1:]:
        page.write_text(make(), encoding="utf-8")
        return 0
    if page.exists() and page.read_text(encoding="utf-8") == make():
        return 0
    print(f"{page.name} is stale: run python docs/{source.name}", file=sys.stderr)
    return 1

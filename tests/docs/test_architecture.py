"""docs/architecture.md: each example prints what the page says, and its tables name files and rooms that exist."""

from __future__ import annotations

import doctest
import re
from pathlib import Path
from typing import Any

from test_layering import ROOMS, SURFACES

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "architecture.md"
_BLOCK = re.compile(r"(?<=^```python\n)>>>.*?(?=^```$)", re.M | re.S)
_FILE = re.compile(r"`((?:uql|compiler|kernels|sampling|tests|docs)/[\w/]*(?:\.py)?)`")


class Outputs(doctest.DocTestRunner):
    """Runs the examples of a page and notes the ones that printed something else."""

    def __init__(self) -> None:
        super().__init__(verbose=False)
        self.wrong: list[tuple[doctest.Example, str]] = []

    def report_failure(self, out: Any, test: doctest.DocTest, example: doctest.Example, got: str) -> None:
        self.wrong.append((example, got))

    def report_unexpected_exception(self, out: Any, test: doctest.DocTest, example: doctest.Example, info: Any) -> None:
        raise info[1]


def block(examples: list[doctest.Example]) -> str:
    """The text of a block; its last line is empty, as a doctest needs it before the fence."""
    parts = []
    for example in examples:
        first, *more = example.source.splitlines()
        parts.append("\n".join([f">>> {first}", *(f"... {line}".rstrip() for line in more)]) + "\n" + example.want)
    return "".join(parts) + "\n"


def test_each_example_prints_what_the_page_says(update_golden: bool) -> None:
    page = PAGE.read_text("utf-8")
    names: dict[str, Any] = {}

    def ran(found: re.Match[str]) -> str:
        test = doctest.DocTest(doctest.DocTestParser().get_examples(found[0]), names, "page", str(PAGE), 0, None)
        runner = Outputs()
        runner.run(test, clear_globs=False)
        names.update(test.globs)
        if update_golden:
            for example, got in runner.wrong:
                example.want = got
            return block(test.examples)
        assert not runner.wrong, "\n".join(f">>> {example.source}{got}" for example, got in runner.wrong)
        return found[0]

    shown = _BLOCK.sub(ran, page)
    names["con"].close()
    if update_golden:
        PAGE.write_text(shown, encoding="utf-8")


def section(title: str) -> str:
    page = PAGE.read_text("utf-8")
    return page.split(f"\n## {title}", 1)[1].split("\n## ", 1)[0]


def test_the_table_of_rooms_is_that_of_the_layers() -> None:
    rooms = re.findall(r"^\| `([\w.]+)` \|", section("Rooms and layers"), re.M)
    assert tuple(rooms) == ROOMS
    assert all(f"`{surface}`" in section("Rooms and layers") for surface in SURFACES)


def test_every_file_on_the_page_exists() -> None:
    page = PAGE.read_text("utf-8")
    moved = section("Old names of modules")
    named = set(_FILE.findall(page.replace(moved, "")))
    named |= {name for line in moved.splitlines() if line.startswith("|") for name in _FILE.findall(line.split("|")[2])}
    assert len(named) > 100
    assert not sorted(name for name in named if not (ROOT / name).exists())


def test_the_page_says_where_to_change_what() -> None:
    rows = [line for line in section("I want to change").splitlines() if line.startswith("| ")][2:]
    assert len(rows) >= 20
    assert all(_FILE.search(row.split("|")[2]) for row in rows)

"""Each number that is printed beside ours stands in its paper, in the order of its row."""

from __future__ import annotations

import os
import re
from pathlib import Path

import pytest

from uql.benchmarks.nl.published import CAESURA_1, CAESURA_2, PUBLISHED, Published

PAPERS = Path(os.environ.get("UQL_DATA", "../shared/data")).resolve().parent / "papers"
_MARKS = re.compile(r"</?b>|\\(?=\$)|[ \t]+")
pytestmark = pytest.mark.skipif(not PAPERS.is_dir(), reason="the papers are not here")


def _stands_in(row: tuple[str, ...], names: int, line: str) -> bool:
    """Has the line the last word of the row's name, and its cells in their order?"""
    cells = [re.escape(cell) for cell in row[names:] if cell]
    wanted = r"(?<![\d,.])" + r"(?![\d,.]).*?(?<![\d,.])".join(cells) + r"(?![\d,.])"
    return row[names - 1].split()[-1] in line and re.search(wanted, line) is not None


@pytest.mark.parametrize(
    ("paper", "table"), [(paper, table) for paper, tables in PUBLISHED.items() for table in tables]
)
def test_each_row_stands_in_the_paper(paper: str, table: Published) -> None:
    text = (PAPERS / f"{paper}.txt").read_text(encoding="utf-8").replace("M ² EX", "M²EX")
    lines = [_MARKS.sub(" ", line) for line in text.splitlines()]
    for row in table.rows:
        assert len(row) == table.names + len(table.columns), row
        assert any(_stands_in(row, table.names, line) for line in lines), row


def test_wrong_plans_of_gpt_4_are_those_of_the_table_of_errors() -> None:
    """A logical error is one of the first three kinds; with the last two the physical plan is wrong: 48 questions."""
    errors = {row[:2]: int(row[3]) for row in CAESURA_2.rows}
    logical = sum(n for (_, kind), n in errors.items() if kind == "logical")
    said = next(row for row in CAESURA_1.rows if row[0] == "All")
    assert f"{1 - logical / 48:.1%}" == said[3] and f"{1 - sum(errors.values()) / 48:.1%}" == said[4]

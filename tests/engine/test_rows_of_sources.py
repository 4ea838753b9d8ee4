"""Each answer stands beside the row that was shown, whatever the rows come from."""

from __future__ import annotations

from pathlib import Path

import pytest
from rows_of_sources import RowsOfSources, sorted_rows

SEEDS, ALL_SEEDS = 2, 40
STATEMENTS = 14


@pytest.mark.parametrize(
    "seed", [pytest.param(i, marks=[pytest.mark.slow] if i >= SEEDS else []) for i in range(ALL_SEEDS)]
)
def test_random_statements_give_each_row_the_answer_to_its_own_text(tmp_path: Path, seed: int) -> None:
    world = RowsOfSources(tmp_path, seed)
    held = world.texts()
    for _ in range(STATEMENTS):
        asked, over_macros = world.statement()
        result = world.con.uql(asked)
        assert sorted_rows(result.fetchall()) == sorted_rows(world.truth(over_macros)), asked
        assert result.exact and not result.errors, asked
        calls = len(world.model.shown)
        assert sorted_rows(world.con.uql(asked).fetchall()) == sorted_rows(world.truth(over_macros)), asked
        assert len(world.model.shown) == calls, asked
    assert set(world.model.shown) <= held
    world.con.close()

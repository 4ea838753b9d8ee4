"""Processes of a run that are killed: the run goes on, and no more calls are billed than its cap."""

from __future__ import annotations

import pytest

from uql.benchmarks import kills
from uql.benchmarks.gate.postgres_server import NoServer


@pytest.mark.thorough
@pytest.mark.parametrize(
    "what", ["gate", "postgres", *(pytest.param(w, marks=pytest.mark.slow) for w in ("driver", "shard"))]
)
def test_a_run_goes_on_within_its_cap_whoever_is_killed(what: str) -> None:
    pytest.importorskip("psycopg", reason="the extra cluster is not installed")
    with_ray = what in ("driver", "shard")
    if with_ray:
        pytest.importorskip("ray", reason="ray is not installed: pip install 'uql-engine[cluster]'")
    try:
        with kills.places(with_ray) as place:
            result = kills.measure(what, 2, place)
    except NoServer as why:
        pytest.skip(str(why))
    assert result.pop("twice") <= kills.MOST_TWICE
    assert result == {"times": 2, "whole": 2, "within": 2}

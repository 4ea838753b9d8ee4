"""A lake and a Ray cluster that the tests of this folder share."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from small_lake import write

STAGE = 600


@pytest.fixture(scope="session")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("shards") / "lake")


@pytest.fixture(autouse=True)
def small_first_stage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("uql.sampling.two_stage.LEAST", STAGE)
    monkeypatch.setattr("uql.sampling.two_stage.A_CALL", 2)
    monkeypatch.setattr("uql.kernels.estimates.sample.MOST_SPREAD", 0.01)


@pytest.fixture(scope="session")
def nodes() -> Iterator[Any]:
    """A cluster of two nodes of one core."""
    pytest.importorskip("ray", reason="ray is not installed: pip install 'uql-engine[cluster]'")
    from ray.cluster_utils import Cluster

    node = {"num_cpus": 1, "object_store_memory": 80_000_000}
    soon = {"health_check_initial_delay_ms": 0, "health_check_period_ms": 500, "worker_niceness": 0}
    cluster = Cluster(initialize_head=True, head_node_args={**node, "include_dashboard": False, "_system_config": soon})
    cluster.add_node(**node)
    yield cluster
    cluster.shutdown()

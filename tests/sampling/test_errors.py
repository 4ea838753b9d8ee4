"""The correction for a model that errs."""

import numpy as np
import pytest

from uql.sampling.base import Estimate
from uql.sampling.errors import Audit, corrected
from uql.sampling.uniform import UniformSampler


@pytest.mark.parametrize(("tpr", "fpr"), [(0.95, 0.05), (0.9, 0.01), (0.9, 0.1)])
def test_the_corrected_count_is_near_the_truth_and_covers(tpr, fpr):
    rng = np.random.default_rng(0)
    n, share, held, values = 5000, 0.2, 0, []
    truth = np.zeros(n)
    truth[: int(share * n)] = 1
    for _ in range(200):
        said = np.where(truth == 1, rng.random(n) < tpr, rng.random(n) < fpr).astype(float)
        sampler = UniformSampler(n, 300, rng=rng)
        rows = sampler.propose(300)
        sampler.tell(rows, said[rows])
        audit = Audit(100, int(rng.binomial(100, tpr)), 200, int(rng.binomial(200, fpr)))
        found = corrected(sampler.estimate(), n, audit)
        values.append(found.value)
        held += found.low <= share * n <= found.high
    assert abs(np.mean(values) - share * n) < 0.05 * share * n
    assert held / 200 >= 0.93 - 3 * np.sqrt(0.0475 / 200)


def test_an_audit_that_shows_nothing_gives_the_whole_range():
    found = corrected(Estimate(10.0, 5.0, 20.0), 100, Audit(10, 5, 10, 5))
    assert (found.value, found.low, found.high) == (None, 0.0, 100.0)
    assert corrected(Estimate(10.0, 5.0, 20.0), 100, Audit(0, 0, 10, 0)).high == 100.0

"""Every method keeps the contract of sampler_contract.py."""

import pytest
from sampler_contract import AGGREGATE_CHECKS, RETRIEVAL_CHECKS

from uql.sampling.methods import AGGREGATE, RETRIEVAL


@pytest.mark.parametrize("method", AGGREGATE)
@pytest.mark.parametrize("check", AGGREGATE_CHECKS, ids=lambda check: check.__name__[6:])
def test_a_method_for_aggregates_keeps_the_contract(method, check):
    check(AGGREGATE[method])


@pytest.mark.parametrize("method", RETRIEVAL)
@pytest.mark.parametrize("check", RETRIEVAL_CHECKS, ids=lambda check: check.__name__[6:])
def test_a_method_for_retrieval_keeps_the_contract(method, check):
    check(RETRIEVAL[method])

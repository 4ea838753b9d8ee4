"""The condition of `uql bench compare --fail-if`."""

from __future__ import annotations

import pytest
from hypothesis import given, strategies as st

from uql.base.errors import ConfigError
from uql.benchmarks.runner.condition import parse

A = {"f1": 0.9, "calls": 100.0, "usd": 0.0, "relative error": 0.1}


@pytest.mark.parametrize(
    ("text", "after", "fails"),
    [
        ("f1 < -0.02", {"f1": 0.87}, True),
        ("f1 < -0.02", {"f1": 0.89}, False),
        ("calls > 1.1x", {"calls": 111}, True),
        ("calls > 1.1x", {"calls": 110}, False),
        ("calls > 10%", {"calls": 111}, True),
        ("calls >= 0", {}, True),
        ("f1 < -0.02 or calls > 1.1x", {"calls": 200}, True),
        ("f1 < -0.02 and calls > 1.1x", {"calls": 200}, False),
        ("f1 < -0.02 and calls > 1.1x", {"calls": 200, "f1": 0}, True),
        ("f1 < -0.02 and (calls > 1.1x or usd > 0)", {"f1": 0, "usd": 1}, True),
        ("usd > 1.5x", {"usd": 1}, True),
        ("usd > 1.5x", {}, False),
        ("nothing > 0", {}, False),
        ("F1 < -0.02", {"f1": 0.5}, True),
        ("`relative error` > .05", {"relative error": 0.2}, True),
        ("calls > 1.1x or f1 < -1e-3 and usd > 0", {"f1": 0}, False),
    ],
)
def test_a_condition_says_whether_the_second_run_fails(text, after, fails):
    assert bool(parse(text).failing(A, {**A, **after})) is fails


def test_what_failed_is_said_with_its_number():
    assert parse("calls > 1.1x").failing(A, {**A, "calls": 150.0}) == ["calls 1.5x is > 1.1x"]


@pytest.mark.parametrize(
    ("text", "column"),
    [("", 1), ("f1", 3), ("f1 <", 5), ("f1 < x", 6), ("< 3", 1), ("f1 < 1 calls > 2", 8), ("(f1 < 1", 8), ("f1 = 1", 4),
     ("f1 < 1 or", 10), ("__import__('os')", 12), ("f1 < 1; f1", 7), ("(" * 3000 + "f1 < 1" + ")" * 3000, 51)],
)  # fmt: skip
def test_what_cannot_be_read_is_an_error_with_its_place(text, column):
    with pytest.raises(ConfigError, match=f"column {column}:") as error:
        parse(text)
    assert error.value.code == "UQL402"


@given(st.text(max_size=40))
def test_any_text_is_read_or_refused(text):
    try:
        parse(text).failing(A, A)
    except ConfigError as error:
        assert "column" in str(error)

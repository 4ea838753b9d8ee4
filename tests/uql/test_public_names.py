"""The names that the pages of docs/ give stay where they are, wherever the code behind them lives."""

from __future__ import annotations

from importlib import import_module

import pytest


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("uql", "connect"),
        ("uql", "attach"),
        ("uql", "parse"),
        ("uql", "sem"),
        ("uql", "register_functions"),
        ("uql", "Connection"),
        ("uql", "Result"),
        ("uql", "Estimate"),
        ("uql", "UQLError"),
        ("uql.errors", "BindError"),
        ("uql.errors", "BudgetError"),
        ("uql.settings", "Settings"),
        ("uql.judging", "calibrate"),
        ("uql.notebook", "run"),
        ("uql.nl.session", "Options"),
        ("uql.llm.providers.base", "Capabilities"),
        ("uql.llm.questions", "Predicate"),
    ],
)
def test_a_documented_name_is_there(module: str, name: str) -> None:
    assert getattr(import_module(module), name) is not None


def test_an_error_is_the_same_class_under_both_names() -> None:
    import uql.base.errors
    import uql.errors

    assert uql.errors.UQLError is uql.base.errors.UQLError

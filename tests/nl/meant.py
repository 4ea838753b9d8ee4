"""Does the grammar of a question hold the query that it means? For tests that list questions beside their queries, in lines."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from uql.base.settings import Settings
from uql.benchmarks.nl.derive import pattern
from uql.features.embedder import Embedder
from uql.nl.ask.plan_checks import check_plan
from uql.nl.ask.planner import wants_plot
from uql.nl.plan import read_plan as forms
from uql.nl.schema.discover import discover
from uql.nl.schema.join_paths import paths
from uql.nl.schema.scope import Scope
from uql.nl.small.lines.grammar import grammar
from uql.nl.small.lines.reading import nodes_of
from uql.nl.small.meaning.narrow import Narrow
from uql.nl.small.meaning.narrowing import narrowed
from uql.sources.catalog import Catalog


def cases(text: str) -> list[tuple[str, ...]]:
    """Lines of `database | question | tables | query`."""
    return [tuple(part.strip() for part in line.split("|")) for line in text.strip().splitlines()]


def each_of(text: str) -> pytest.MarkDecorator:
    """A test of each of those lines, by its question."""
    found = cases(text)
    return pytest.mark.parametrize(("database", "question", "tables", "rest"), found, ids=[case[1] for case in found])


def asked(question: str, catalog: Catalog, embedder: Embedder) -> tuple[Scope, Narrow]:
    """What a question may name, and what it leaves open."""

    def near(word: str, others: list[str]) -> list[float]:
        vectors = embedder.embed([word, *others])
        return [float(v) for v in vectors[1:] @ vectors[0]]

    scope = discover(question, catalog, embedder)
    return scope, narrowed(question, scope, near, plot=wants_plot(question))


def whole(tables: str, rest: str, scope: Scope) -> str:
    """A query in lines, its join as the scope writes it."""
    source = next(path.source for path in paths(scope) if sorted(path.tables) == sorted(tables.split()))
    return f"FROM {source}\n" + re.sub(r"; ", "\n", rest)


def holds(question: str, tables: str, rest: str, catalog: Catalog, embedder: Embedder) -> bool:
    """Is this query in the grammar of the question?"""
    scope, narrow = asked(question, catalog, embedder)
    return pattern(grammar(scope, question, narrow)).fullmatch(whole(tables, rest, scope)) is not None


def assert_meant(question: str, tables: str, rest: str, catalog: Catalog, embedder: Embedder) -> None:
    """The question is not refused, its grammar holds the query, and the query becomes a valid plan."""
    scope, narrow = asked(question, catalog, embedder)
    assert not (narrow.absent or narrow.unheard or narrow.vague), "it can be answered"
    text = whole(tables, rest, scope)
    assert pattern(grammar(scope, question, narrow)).fullmatch(text), text
    plan = forms.from_json(nodes_of(text, scope, question), {name: s.fields for name, s in scope.sources.items()})
    assert check_plan(plan, scope.sources, Settings()).problems == ()


def holding(databases: Mapping[str, Callable[[], Any]], text: str) -> Callable[..., None]:
    """A test of each of those lines: the grammar of the question holds the query."""

    @each_of(text)
    def test(database: str, question: str, tables: str, rest: str, embedder: Embedder) -> None:
        assert_meant(question, tables, rest, Catalog(databases[database]()), embedder)

    return test


def not_holding(databases: Mapping[str, Callable[[], Any]], text: str) -> Callable[..., None]:
    """A test of each of those lines: the grammar of the question does not hold the query."""

    @each_of(text)
    def test(database: str, question: str, tables: str, rest: str, embedder: Embedder) -> None:
        assert not holds(question, tables, rest, Catalog(databases[database]()), embedder)

    return test

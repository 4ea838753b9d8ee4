"""A provider of another package: used where the user's configuration allows its kind, and never found by a model's name."""

from __future__ import annotations

from importlib.metadata import EntryPoint

import pytest
from scripted import Scripted, row

from uql.base.errors import ConfigError
from uql.base.settings import Settings
from uql.llm import providers
from uql.llm.gate import Gate
from uql.llm.questions import Predicate


def opened(rest: str, settings: Settings) -> Scripted:
    """What the package's entry point names."""
    return Scripted(name=f"mine:{rest}")


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    entry = EntryPoint("mine", f"{__name__}:opened", providers.GROUP)
    monkeypatch.setattr(type(entry), "load", lambda self: opened)
    monkeypatch.setattr(providers, "entry_points", lambda group: [entry] if group == providers.GROUP else [])


def test_a_kind_that_the_user_allows_is_opened_by_its_entry_point(run) -> None:
    async def go() -> None:
        settings = Settings(ledger=":memory:").with_values(plugins=["mine"])
        async with Gate.open(settings, model="mine:large") as g:
            assert not (await g.ask(Predicate("it is so"), [row("a")])).failures
            assert (await g.provider()).name == "mine:large"

    run(go())


@pytest.mark.parametrize("plugins", [[], ["another"]])
def test_a_models_name_alone_loads_nothing(run, plugins: list[str]) -> None:
    async def go() -> None:
        async with Gate.open(Settings(ledger=":memory:").with_values(plugins=plugins), model="mine:large") as g:
            with pytest.raises(ConfigError, match="no kind of model"):
                await g.ask(Predicate("it is so"), [row("a")])

    run(go())

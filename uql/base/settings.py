"""The settings of a connection, a session and a query: names, types, defaults and checks, in one table.

The same names work in WITH (…), SET uql.*, connect(…), UQL_* and uql.toml, the nearest winning.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from functools import partial
from math import inf, isfinite
from typing import Any, Literal

from uql.base.endpoints import Endpoint, NamedPrice, endpoints, prices
from uql.base.errors import ConfigError
from uql.base.names import suggestion

CALLS_AGGREGATE, CALLS_ROWS = 128, 256  # the budget, where none is set: of aggregates alone, and of anything else
Budget = int | Literal["all"]
Rows = int | Literal["auto"]


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting, with its default. `docs/settings.md` is made from this class."""

    model: str | None = None  # "local", "openai:NAME", "anthropic:NAME", "http://host/v1#NAME", "oracle:FILE.toml"
    models: tuple[
        str, ...
    ] = ()  # two, the small one first: it answers what it is sure of, or with recall or precision scores all rows
    accuracy: float = 0.95  # with two models: share of conditions whose answer is the large one's
    embedder: str | None = (
        None  # voyage:MODEL, openai:MODEL or http(s)://host/v1#MODEL; None: static word vectors + LSA
    )
    budget: Budget | None = None  # calls, without a small model's scores; None: 128 for aggregates only, else 256
    exact: bool = False  # ask every row: budget = 'all'
    fresh: bool = False  # draw anew where an earlier run of the same statement would answer it
    error: float | None = None  # relative half-width of the interval to reach
    confidence: float = 0.95  # of every interval and guarantee
    recall: float | None = None  # share of the matching rows that a search must find; with precision, both hold at once
    total: float | None = (
        None  # of a search: share of its calls that estimates how many rows pass; None: an eighth, once little is found
    )
    proxy: str | None = (
        None  # SQL of a number of each row, higher where it likelier passes: it guides searches and samples
    )
    precision: float | None = None  # share of the returned rows that must match; allows unverified rows
    max_cost: float | None = (
        None  # USD, of one statement; alone it decides how many rows are asked; refused where the price is unknown
    )
    exact_below: float = (
        0.01  # USD: without a budget, every row is asked where that costs no more, by the list price; 0: never
    )
    exact_seconds: float = 20.0  # and takes no longer
    max_seconds: float | None = None  # of one statement
    max_tokens: int | None = None  # input and output together, of one statement
    seed: int = 0  # of everything random
    partial: bool = False  # estimates, and a part of the rows, may go into tables; results that read them say so
    on_error: Literal["null", "raise", "drop"] = "null"  # a row without an answer: NULL, an error, or left out
    method: str | None = None  # sampler by name; None: the engine's choice
    strata: int | Literal["auto"] | None = None  # of the methods 'uqe' and 'stratified': how many, or 'auto'; None: 10
    explore: float | None = (
        None  # of searches by the method 'uqe': share of random rows in the first batch after a fit; x/t in batch t
    )
    examples: bool | str = True  # example rows are asked for before sampling; a table name: the user's own rows
    audit: str | None = None  # a table of judged rows: estimates are corrected by the model's errors on them
    soft: bool = False  # count by the model's probabilities, where judged rows show that they are calibrated
    describe: bool = False  # a model says in a line what each text over columns without comments means; its prompts and EXPLAIN show it
    listen: bool = (
        False  # the model hears recordings, if it can; otherwise it reads what Whisper on this machine hears in them
    )
    concurrency: int | None = None  # requests in flight; None: the provider's own
    rows_per_request: Rows = (
        "auto"  # rows that share a request; 'auto': as many as keep answers (uql eval --packed), 32 of decision models
    )
    batch: bool = False  # rows go to the vendor's batch API: half the price, within a day; of openai: and anthropic:
    ledger: str | None = field(
        default=None, repr=False
    )  # path of the ledger, or postgresql://…; ":memory:" lives as long as the connection; None: in the user's data folder
    offline: bool = False  # answers of the ledger alone: a row that it does not have is an error
    quoted: Literal["guard", "lenient", "strict"] = "guard"  # how "…" is read
    folder: str | None = None  # paths in rows are read below it; None: the database file's folder, else the working one
    urls: bool = False  # fetch the https addresses that rows name as images, sounds or documents
    timeout_s: float = 120.0  # of one request
    confirm_over: float | None = (
        0.1  # USD: what may cost more is asked first by the shell, refused under `error` without a budget; None: never
    )
    endpoints: tuple[
        Endpoint, ...
    ] = ()  # servers with the variables of their keys and their limits; in the user's file alone
    prices: tuple[NamedPrice, ...] = ()  # of models, USD per million tokens; in the user's file alone
    plugins: tuple[str, ...] = ()  # kinds of models of other packages that may be used; in the user's file alone
    progress: bool | None = None  # shown on stderr; None: by the command line only
    disabled_rules: tuple[str, ...] = ()  # rules of the planner that are switched off, by name

    def price(self, model: str) -> NamedPrice | None:
        """What the user says that a model costs."""
        return next((price for price in self.prices if price.model == model), None)

    def calls(self, *, aggregates: bool = False) -> int | None:
        """The calls of one statement; None: without limit. `aggregates`: does it return aggregates alone?"""
        if self.exact or self.budget == "all":
            return None
        if self.budget is not None:
            return int(self.budget)
        return CALLS_AGGREGATE if aggregates else CALLS_ROWS

    def with_values(self, **values: Any) -> Settings:
        """These settings with some replaced, each checked. Raises ConfigError on an unknown name or a bad value."""
        for name in values:
            if name not in NAMES:
                hint = _ELSEWHERE.get(name) or suggestion(name, NAMES) + "`uql config show` lists the settings"
                raise ConfigError(f"there is no setting {name!r}", help=hint)
        return replace(self, **{name: _checked(name, value) for name, value in values.items()})


NAMES = {f.name for f in fields(Settings)}
_ELSEWHERE = {  # what other tools call a setting → what it is here
    **dict.fromkeys(("api_key", "key", "token"), "a key stands in the environment, or is kept by: uql keys set openai"),
    **dict.fromkeys(
        ("base_url", "api_base", "url"), 'the address is a part of the model: model = "http://host/v1#NAME"'
    ),
    **dict.fromkeys(
        ("calls", "max_calls", "limit", "sample", "sample_size"), "calls are limited by budget: budget = 100"
    ),
}


@dataclass(frozen=True, slots=True)
class InProjects:
    """What a project's file may do with a setting before the user trusts the file (`uql.base.config`).

    Attributes:
        takes: the values that need no trust, or "any".
        lowers: a number not above the user's own needs none either.
        asks: what any other value would let the file do; "": there is no other value.
    """

    takes: tuple[Any, ...] | Literal["any"] = ()
    lowers: bool = False
    asks: str = ""

    @property
    def takes_any(self) -> bool:
        """Is there a value that needs no trust?"""
        return bool(self.takes) or self.lowers

    def allows(self, value: Any, own: Any) -> bool:
        """Does the value need no trust? `own` is what the setting is without the project's file."""
        if self.takes == "any" or value in self.takes:
            return True
        number = isinstance(value, int | float) and not isinstance(value, bool)
        return self.lowers and number and (own is None or value <= own)

    def words(self) -> str:
        """The values that need no trust.

        >>> IN_PROJECTS["urls"].words(), IN_PROJECTS["max_cost"].words(), IN_PROJECTS["audit"].words()
        ('false', 'not above your own', 'none')
        """
        if self.takes == "any":
            return "any"
        return "not above your own" if self.lowers else ", ".join(map(json.dumps, self.takes)) or "none"


_HARMLESS = InProjects("any")
_READERS = "choose who reads your rows"
_LIMITS = "spend more than your own limit"
# A project's file may be somebody else's. Untrusted, it sends rows nowhere, reads and writes no file, runs no SQL of its own and loads
# no code. A new setting needs a decision here; until it has one, it asks for trust.
IN_PROJECTS = {
    **dict.fromkeys(
        (
            *("accuracy", "budget", "exact", "fresh", "error", "confidence", "recall", "total", "precision", "seed", "partial"),
            *("on_error", "method", "strata", "explore", "soft", "describe", "listen", "concurrency", "rows_per_request", "batch"),
            *("quoted", "timeout_s", "progress", "disabled_rules"),
        ),
        _HARMLESS,
    ),
    **dict.fromkeys(
        ("max_cost", "max_seconds", "max_tokens", "confirm_over", "exact_below", "exact_seconds"),
        InProjects(lowers=True, asks=_LIMITS),
    ),
    "model": InProjects(("local",), asks=_READERS),
    "models": InProjects(asks=_READERS),
    "embedder": InProjects(("static",), asks=_READERS),
    "endpoints": InProjects(asks="decide where your rows and keys go"),
    "prices": InProjects(asks="say what a model costs, which your limits go by"),
    "plugins": InProjects(asks="load code of other packages"),
    "proxy": InProjects(asks="run SQL of its own"),
    "examples": InProjects((False, True), asks="choose a table whose rows the model reads"),
    "audit": InProjects(asks="choose a table whose rows the model reads"),
    "ledger": InProjects((":memory:",), asks="read and write a file or a server of its choice as the ledger"),
    "offline": InProjects((True,), asks="make calls where you want none"),
    "folder": InProjects(asks="read files of another folder"),
    "urls": InProjects((False,), asks="fetch addresses that rows name"),
}  # fmt: skip


def meanings() -> dict[str, str]:
    """What each setting means: the comment beside it above.

    >>> meanings()["max_cost"]
    'USD, of one statement; alone it decides how many rows are asked; refused where the price is unknown'
    """
    import ast
    from pathlib import Path

    source = Path(__file__).read_text(encoding="utf-8")
    lines = source.splitlines()
    body = next(n for n in ast.parse(source).body if isinstance(n, ast.ClassDef) and n.name == "Settings").body
    comments = {}
    for node in body:
        if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name) and node.value is not None:
            rest = lines[(node.value.end_lineno or node.lineno) - 1].encode()[node.value.end_col_offset :].decode()
            comments[node.target.id] = rest.partition("#")[2].strip()
    return comments


MOST_ROWS = 100  # that share a request
MOST_WHOLE = 2**63 - 1  # the ledger keeps whole numbers in 64 bits
LEAST = 1e-9  # of a share, of what it lacks to 1, and of an error: beyond, intervals are beyond floating point
WORDS = {"true": True, "on": True, "yes": True, "1": True, "false": False, "off": False, "no": False, "0": False}


def _checked(name: str, value: Any) -> Any:
    """The value in the setting's type, or ConfigError saying what it may be."""
    read, expected = _RULES.get(name, (_text, "a text"))
    if value is None:
        if name not in _REQUIRED:
            return None
        result, expected = None, "never empty"
    else:
        result = read(value)
    if result is None:
        raise ConfigError(f"{name} = {value!r} is not possible", help=f"{name} is {expected}")
    return result


# ------------------------------------------------------------------------------- readers: None for what is not possible
def _number(value: Any, low: float = -inf, high: float = inf) -> float | None:
    if isinstance(value, bool):
        return None
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return number if isfinite(number) and low <= number <= high else None


def _whole(value: Any, low: int, high: int = MOST_WHOLE, word: str = "") -> int | str | None:
    """A whole number, or the word that may stand in its place."""
    if word and isinstance(value, str) and value.lower() == word:
        return word
    number = value if isinstance(value, int) and not isinstance(value, bool) else _number(value)
    return int(number) if number is not None and number == int(number) and low <= number <= high else None


def _flag(value: Any) -> bool | None:
    return value if isinstance(value, bool) else WORDS.get(str(value).lower())


def _flag_or_text(value: Any) -> bool | str:
    flag = _flag(value)
    return str(value) if flag is None else flag


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None


def _names(value: Any) -> tuple[str, ...]:
    return tuple(v.strip() for v in value.split(",") if v.strip()) if isinstance(value, str) else tuple(value)


def _two_models(value: Any) -> tuple[str, ...] | None:
    names = _names(value)
    return names if len(names) in (0, 2) and all(isinstance(n, str) for n in names) else None


def _plugins(value: Any) -> tuple[str, ...] | None:
    fits = isinstance(value, list | tuple) and all(isinstance(item, str) for item in value)
    return tuple(value) if fits else None


def _choice(*choices: str) -> tuple[Callable[[Any], Any], str]:
    return lambda value: value if value in choices else None, "one of " + ", ".join(map(repr, choices))


_SHARE = partial(_number, low=LEAST, high=1 - LEAST), "a share between 0 and 1, as 0.95"
_POSITIVE = partial(_number, low=LEAST), f"a positive number, from {LEAST} on"
_FROM_ZERO = partial(_number, low=0), "a number from 0 on; 0: rows are asked within the budget alone"
_COUNT = partial(_whole, low=1), "a whole number from 1 on, of 64 bits"
_BOOL = _flag, "true or false"
# How a setting's value is read, and what it may be, in words; without an entry it is a text.
_RULES: dict[str, tuple[Callable[[Any], Any], str]] = {
    **dict.fromkeys(("accuracy", "confidence", "recall", "precision", "explore"), _SHARE),
    **dict.fromkeys(("max_cost", "max_seconds", "timeout_s", "confirm_over"), _POSITIVE),
    "error": (partial(_number, low=LEAST, high=1), "a share up to 1: 0.1 is an interval of ±10 %"),
    **dict.fromkeys(("exact_below", "exact_seconds"), _FROM_ZERO),
    **dict.fromkeys(("concurrency", "max_tokens"), _COUNT),
    **{f.name: _BOOL for f in fields(Settings) if str(f.type) in ("bool", "bool | None")},
    "seed": (partial(_whole, low=0), "a whole number from 0 on, of 64 bits"),
    "budget": (
        partial(_whole, low=0, word="all"),
        "a whole number of calls from 0 on (0: the ledger alone), or 'all'; a limit in USD is max_cost",
    ),
    "rows_per_request": (
        partial(_whole, low=1, high=MOST_ROWS, word="auto"),
        f"a whole number from 1 to {MOST_ROWS}, or 'auto'",
    ),
    "strata": (partial(_whole, low=2, word="auto"), "a whole number from 2 on, or 'auto'"),
    "total": (partial(_number, low=0, high=1 - LEAST), "a share from 0 on and below 1, as 0.125"),
    "on_error": _choice("null", "raise", "drop"),
    "quoted": _choice("guard", "lenient", "strict"),
    "examples": (_flag_or_text, ""),
    "endpoints": (endpoints, ""),
    "prices": (prices, ""),
    "plugins": (_plugins, "a list of names in the user's file"),
    "models": (_two_models, "two models, the small one first, as ['openai:small', 'openai:large']"),
    "disabled_rules": (_names, ""),
}
_REQUIRED = {f.name for f in fields(Settings) if "None" not in str(f.type)}

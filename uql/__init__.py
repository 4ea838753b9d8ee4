"""UQL: SQL in which a double-quoted text stands where a column may stand.

>>> import uql
>>> uql.parse('SELECT COUNT(*) FROM reviews WHERE "the review is positive"').where.text
'the review is positive'
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uql.compiler.parser import parse as parse
    from uql.connection import Connection as Connection
    from uql.connection import attach as attach
    from uql.connection import connect as connect
    from uql.errors import UQLError as UQLError
    from uql.result import Result as Result
    from uql.sampling.base import Estimate as Estimate
    from uql.sem import sem as sem

__version__ = "0.1.0"

_PLACES = {
    "Connection": "uql.connection",
    "Estimate": "uql.sampling.base",
    "Result": "uql.result",
    "UQLError": "uql.errors",
    "attach": "uql.connection",
    "connect": "uql.connection",
    "parse": "uql.compiler.parser",
    "sem": "uql.sem",
}
__all__ = ["Connection", "Estimate", "Result", "UQLError", "__version__", "attach", "connect", "parse", "sem"]


def __getattr__(name: str) -> Any:
    """Each public name is imported when it is first used, so that `import uql` is light."""
    if name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
        globals()[name] = value  # `uql.sem` is the function, not the module that its import leaves there
        return value
    raise AttributeError(f"module 'uql' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)

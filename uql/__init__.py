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
    from uql.errors import UQLError as UQLError
    from uql.functions import register_functions as register_functions
    from uql.opening import attach as attach
    from uql.opening import connect as connect
    from uql.result import Result as Result
    from uql.sampling.base import Estimate as Estimate
    from uql.semantic import sem as sem

__version__ = "0.1.0"

_PLACES = {
    "Connection": "uql.connection",
    "Estimate": "uql.sampling.base",
    "Result": "uql.result",
    "UQLError": "uql.errors",
    "attach": "uql.opening",
    "connect": "uql.opening",
    "parse": "uql.compiler.parser",
    "register_functions": "uql.functions",
    "sem": "uql.semantic",
}
__all__ = [
    "Connection",
    "Estimate",
    "Result",
    "UQLError",
    "__version__",
    "attach",
    "connect",
    "parse",
    "register_functions",
    "sem",
]


def __getattr__(name: str) -> Any:
    """Each public name is imported when it is first used, so that `import uql` is light."""
    if name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
        globals()[name] = value  # found at once the next time
        return value
    raise AttributeError(f"module 'uql' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext uql` in a notebook."""
    from uql.notebook import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext uql`."""
    from uql.notebook import unload_ipython_extension as unload

    unload(shell)

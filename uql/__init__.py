"""UQL: SQL in which a double-quoted text stands where a column may stand.

>>> import uql
>>> uql.parse('SELECT COUNT(*) FROM reviews WHERE "the review is positive"').where.text
'the review is positive'
"""

from __future__ import annotations

import sys
from importlib import import_module
from os.path import isdir
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from uql.api.connection import Connection as Connection
    from uql.api.functions import register_functions as register_functions
    from uql.api.opening import attach as attach, connect as connect
    from uql.api.result import Result as Result
    from uql.api.sem import sem as sem
    from uql.base.errors import UQLError as UQLError
    from uql.compiler.parser import parse as parse
    from uql.sampling.base import Estimate as Estimate

from uql.base.version import __version__

if not isdir(f"{__path__[0]}/compiler"):
    from uql.base.checkout import CheckoutFinder

    sys.meta_path.append(CheckoutFinder)

_PLACES = {
    "Connection": "uql.api.connection",
    "Estimate": "uql.sampling.base",
    "Result": "uql.api.result",
    "UQLError": "uql.base.errors",
    "attach": "uql.api.opening",
    "connect": "uql.api.opening",
    "parse": "uql.compiler.parser",
    "register_functions": "uql.api.functions",
    "sem": "uql.api.sem",
}
__all__ = [*_PLACES, "__version__", "errors"]


def __getattr__(name: str) -> Any:
    """Each public name is imported when it is first used, so that `import uql` is light."""
    if name in _PLACES:
        value = getattr(import_module(_PLACES[name]), name)
        globals()[name] = value  # found at once the next time
        return value
    if name == "errors":
        return import_module("uql.errors")
    raise AttributeError(
        f"module 'uql' has no attribute {name!r}; con = uql.connect(…) has con.uql, con.sql, con.table …"
    )


def __dir__() -> list[str]:
    return sorted(__all__)


def load_ipython_extension(shell: Any) -> None:
    """`%load_ext uql` in a notebook."""
    from uql.api.notebook import load_ipython_extension as load

    load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """`%unload_ext uql`."""
    from uql.api.notebook import unload_ipython_extension as unload

    unload(shell)

"""Sums in one order: BLAS adds floats in another order for another number of threads, and the last digit decides which row is drawn."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import lru_cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from threadpoolctl import ThreadpoolController

_LOCK = threading.Lock()
_LIMITS = ExitStack()  # of the libraries that are limited now; the last one inside undoes them
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which every BLAS library loaded so far uses one thread, in all threads of the process.

    Contexts of several threads may overlap: the limit ends with the last of them. A library that is loaded inside is limited
    by the next context, nested or not.
    """
    global _inside
    with _LOCK:
        _inside += 1
        libraries = _libraries(len(sys.modules))
        if any(library.num_threads != 1 for library in libraries.lib_controllers):
            _LIMITS.enter_context(libraries.limit(limits=1))
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                _LIMITS.close()


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The BLAS libraries of the process; each of the modules imported so far may have loaded one."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")

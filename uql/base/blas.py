"""Sums in one order: BLAS adds floats in another order for another number of threads, and the last digit decides which row is drawn."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

_LOCK = threading.Lock()
_LIMITS = ExitStack()  # of the libraries that are limited now; the last one inside undoes them
_inside = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which every BLAS library loaded so far uses one thread, in all threads of the process.

    Contexts of several threads may overlap: the limit ends with the last of them. A library that is loaded inside is limited
    by the next context, nested or not.
    """
    from threadpoolctl import ThreadpoolController

    global _inside
    with _LOCK:
        _inside += 1
        libraries = ThreadpoolController().select(user_api="blas")
        if any(library.num_threads != 1 for library in libraries.lib_controllers):
            _LIMITS.enter_context(libraries.limit(limits=1))
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside:
                _LIMITS.close()

"""What holds in the whole process while a statement runs: one thread of BLAS, and few passes of the garbage collector.

BLAS adds floats in another order for another number of threads, and the last digit decides which row is drawn. The rows and calls of
a statement are many objects and hardly any garbage: with 1,024 calls in flight the collector's default thresholds spent more time on
passes, which visit what is alive, than the calls took.
"""

from __future__ import annotations

import gc
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
_limiting = 0


@contextmanager
def one_thread() -> Iterator[None]:
    """A context in which every BLAS library loaded so far uses one thread, in all threads of the process.

    Contexts of several threads may overlap: the limit ends with the last of them. A library that is loaded inside is limited
    by the next context, nested or not.
    """
    global _limiting
    with _LOCK:
        _limiting += 1
        libraries = _libraries(len(sys.modules))
        if any(library.num_threads != 1 for library in libraries.lib_controllers):
            _LIMITS.enter_context(libraries.limit(limits=1))
    try:
        yield
    finally:
        with _LOCK:
            _limiting -= 1
            if not _limiting:
                _LIMITS.close()


@lru_cache(maxsize=1)
def _libraries(modules: int) -> ThreadpoolController:
    """The BLAS libraries of the process; each of the modules imported so far may have loaded one."""
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController().select(user_api="blas")


THRESHOLDS = (100_000, 50, 100)  # new objects before a pass over them; passes before one over older ones, and over all
_collecting = 0
_before: tuple[int, int, int] | None = None  # the thresholds that the last context to end restores


@contextmanager
def rare_collections() -> Iterator[None]:
    """A context with higher thresholds in all threads of the process. It leaves a program that set its own as they are: higher, or off.

    Contexts of several threads may overlap: the last one restores the thresholds, unless the program has set others meanwhile.
    """
    global _collecting, _before
    with _LOCK:
        _collecting += 1
        if _collecting == 1 and 0 < gc.get_threshold()[0] < THRESHOLDS[0]:
            _before = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        with _LOCK:
            _collecting -= 1
            if not _collecting and _before is not None:
                if gc.get_threshold() == THRESHOLDS:
                    gc.set_threshold(*_before)
                _before = None

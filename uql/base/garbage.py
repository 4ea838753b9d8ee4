"""Few passes of Python's garbage collector while a statement runs: its rows and calls are many objects and hardly any garbage.

A pass visits what is alive. With 1,024 calls in flight the default thresholds spent more time on passes than the calls took.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

THRESHOLDS = (100_000, 50, 100)  # new objects before a pass over them; passes before one over older ones, and over all
_LOCK = threading.Lock()
_inside = 0
_before: tuple[int, int, int] | None = None  # the thresholds that the last context to end restores


@contextmanager
def rare_collections() -> Iterator[None]:
    """A context with higher thresholds in all threads of the process. It leaves a program that set its own as they are: higher, or off.

    Contexts of several threads may overlap: the last one restores the thresholds, unless the program has set others meanwhile.
    """
    global _inside, _before
    with _LOCK:
        _inside += 1
        if _inside == 1 and 0 < gc.get_threshold()[0] < THRESHOLDS[0]:
            _before = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)
    try:
        yield
    finally:
        with _LOCK:
            _inside -= 1
            if not _inside and _before is not None:
                if gc.get_threshold() == THRESHOLDS:
                    gc.set_threshold(*_before)
                _before = None

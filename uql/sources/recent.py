"""What was read last, up to a number of bytes."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Recent(Generic[Value]):
    """A cache of bytes and texts: those that were used longest ago go first.

    Args:
        most_bytes: of all its values. The value that came last stays, whatever its size.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._values: OrderedDict[Hashable, Value] = OrderedDict()
        self._size = 0

    def __contains__(self, key: Hashable) -> bool:
        return key in self._values

    def __getitem__(self, key: Hashable) -> Value:
        self._values.move_to_end(key)
        return self._values[key]

    def keep(self, key: Hashable, value: Value) -> None:
        """Keeps a value under a key that it does not have yet."""
        self._values[key] = value
        self._size += _size(value)
        while self._size > self.most_bytes and len(self._values) > 1:
            _, gone = self._values.popitem(last=False)
            self._size -= _size(gone)


def _size(value: object) -> int:
    return len(value) if isinstance(value, bytes | str) else 0

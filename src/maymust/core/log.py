"""An immutable sequence that grows at its end without being copied."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar, Generic, Self, TypeVar, overload

T = TypeVar("T")


class Buffer(Generic[T]):
    """The list that the versions of a value share. It only ever grows, so a version may read what it knows without a lock."""

    __slots__ = ("items", "lock")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self.items: list[T] = []
        self.lock: threading.Lock = threading.Lock()
        for item in items:
            self.append(item)

    def append(self, item: T) -> None:
        """Add one item. Subclasses keep their indexes here."""
        self.items.append(item)

    def grown(self, length: int, item: T) -> Self:
        """Return a buffer that holds the first `length` items and then `item`: this one at the tip, a copy otherwise."""
        with self.lock:
            if len(self.items) == length:
                self.append(item)
                return self
        copy = type(self)(self.items[:length])
        copy.append(item)
        return copy


class Log(Sequence[T]):
    """An immutable sequence with O(1) `add` at the newest version. Adding to an older version copies; others stay as they are.

    Slices are tuples. Safe to share between threads.
    """

    __slots__ = ("_buffer", "_length")

    def __init__(self, items: Iterable[T] = ()) -> None:
        self._buffer: Buffer[T] = Buffer(items)
        self._length = len(self._buffer.items)

    def add(self, item: T) -> Log[T]:
        """Return a log with `item` at its end."""
        buffer, length = self._buffer, self._length
        items = buffer.items
        with buffer.lock:
            if len(items) == length:
                items.append(item)
            else:
                buffer = Buffer((*items[:length], item))
        grown: Log[T] = Log.__new__(Log)
        grown._buffer, grown._length = buffer, length + 1
        return grown

    def grew_from(self, older: Log[T]) -> bool:
        """Whether this is a newer version of `older`: the same items, perhaps more at the end. False may also mean: not known. O(1)."""
        return self._buffer is older._buffer and self._length >= older._length

    @property
    def last(self) -> T:
        """The newest item. Raises IndexError when there is none."""
        if not self._length:
            raise IndexError("an empty log has no last item")
        return self._buffer.items[self._length - 1]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> T: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[T, ...]: ...
    def __getitem__(self, index: int | slice) -> T | tuple[T, ...]:
        if isinstance(index, slice):
            return tuple(self._buffer.items[i] for i in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(f"index {index} of a log of {self._length}")
        return self._buffer.items[index if index >= 0 else index + self._length]

    def __iter__(self) -> Iterator[T]:
        items = self._buffer.items
        return (items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Log):
            return NotImplemented
        return self._length == other._length and (self._buffer is other._buffer or all(a == b for a, b in zip(self, other, strict=True)))

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Log({list(self)!r})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (Log, (list(self),))

"""The ids of all calls of a conversation, so that a repeated one is noticed."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from maymust.core.log import Buffer


class _Ids(Buffer[str]):
    """The shared list of ids with the place of each."""

    __slots__ = ("places",)

    def __init__(self, items: Iterable[str] = ()) -> None:
        self.places: dict[str, int] = {}
        super().__init__(items)

    def append(self, item: str) -> None:
        self.places.setdefault(item, len(self.items))
        self.items.append(item)


class CallIds:
    """An immutable set that grows: `add` and `in` are O(1) at the newest version; adding to an older one copies."""

    __slots__ = ("_ids", "_length")

    def __init__(self, ids: Iterable[str] = ()) -> None:
        self._ids = _Ids(ids)
        self._length = len(self._ids.items)

    def add(self, call_id: str) -> CallIds:
        """Return a set with this id too."""
        grown = CallIds.__new__(CallIds)
        grown._ids, grown._length = self._ids.grown(self._length, call_id), self._length + 1
        return grown

    def __contains__(self, call_id: str) -> bool:
        return self._ids.places.get(call_id, self._length) < self._length

    def __iter__(self) -> Iterator[str]:
        return iter(self._ids.items[: self._length])

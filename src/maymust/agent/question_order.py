"""The calls of a batch ask a person one at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable


class QuestionOrder:
    """Lets the calls of a batch put their questions one at a time, in the model's order."""

    def __init__(self) -> None:
        # A dict for its order: no id is in it twice, and any can leave it.
        self._order: dict[str, None] = {}
        self._waiters: dict[str, asyncio.Event] = {}

    def open(self, call_ids: Iterable[str]) -> None:
        """The calls that are under way, in order."""
        for call_id in call_ids:
            self._order[call_id] = None

    async def turn_of(self, call_id: str) -> None:
        """Wait until every earlier call has been asked about, or needs no question."""
        while call_id in self._order and (first := next(iter(self._order))) != call_id:
            wake = self._waiters.setdefault(first, asyncio.Event())
            await wake.wait()

    def passed(self, call_id: str) -> None:
        """This call will put no (more) questions."""
        self._order.pop(call_id, None)
        if call_id in self._waiters:
            self._waiters.pop(call_id).set()

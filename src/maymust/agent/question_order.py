"""The calls of a batch ask a person one at a time."""

from __future__ import annotations

import asyncio


class QuestionOrder:
    """Lets the calls of a batch put their questions one at a time, in the model's order."""

    def __init__(self) -> None:
        self._order: list[str] = []
        self._waiters: dict[str, asyncio.Event] = {}

    def open(self, call_ids: tuple[str, ...]) -> None:
        """The calls that are under way, in order."""
        known = set(self._order)
        self._order += [call_id for call_id in call_ids if call_id not in known]

    async def turn_of(self, call_id: str) -> None:
        """Wait until every earlier call has been asked about, or needs no question."""
        while self._order and self._order[0] != call_id and call_id in self._order:
            wake = self._waiters.setdefault(self._order[0], asyncio.Event())
            await wake.wait()

    def passed(self, call_id: str) -> None:
        """This call will put no (more) questions."""
        if call_id in self._order:
            self._order.remove(call_id)
        wake = self._waiters.pop(call_id, None)
        if wake is not None:
            wake.set()

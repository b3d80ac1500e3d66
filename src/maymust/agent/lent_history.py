"""A history as tools and middleware get it: what they do to its steps changes nothing of the run."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, overload

from maymust.core.history import History
from maymust.core.step import Step
from maymust.tools.output import own_json


class LentHistory(History):
    """The same history over the same shared steps, which hands out copies of them. Making one costs nothing, reading a step a copy."""

    __slots__ = ()

    def __init__(self, history: History) -> None:
        self._steps, self._length = history._steps, history._length

    def add(self, *args: Any, **settings: Any) -> LentHistory:
        """See `History.add`."""
        return LentHistory(super().add(*args, **settings))

    def at(self, length: int) -> LentHistory:
        """See `History.at`."""
        return LentHistory(super().at(length))

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        found = super().__getitem__(index)
        return _copied(found) if isinstance(found, Step) else tuple(map(_copied, found))

    def __iter__(self) -> Iterator[Step]:
        return map(_copied, super().__iter__())


def _copied(step: Step) -> Step:
    return Step(step.tool, step.outcome, own_json(step.arguments), own_json(step.output), step.call_id, step.text, step.untrusted)

"""A history in which the same calls repeat too often to be listed."""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections.abc import Callable, Sequence
from itertools import accumulate
from typing import Any, cast

from maymust.core.history import History, Tally, _Steps
from maymust.core.step import Outcome, Step

Stretch = tuple[tuple[Step, ...], int]
"""Some steps, and how often they come in a row."""


def repeated(stretches: Sequence[Stretch]) -> History:
    """Return a history of these stretches, in space that does not depend on how often anything is repeated.

    It answers every question of a history, and cannot grow. Raises OverflowError for more steps than a sequence can have.
    """
    steps = _Repeated([stretch for stretch in stretches if stretch[0] and stretch[1]])
    history = History.__new__(History)
    history._steps, history._length = steps, len(steps.items)
    return history


class _Lazy(Sequence[Any]):
    """A sequence whose items are computed."""

    def __init__(self, length: int, item: Callable[[int], Any]) -> None:
        self._length = length
        self._item = item

    def __len__(self) -> int:
        return self._length

    def __getitem__(self, place: Any) -> Any:
        return self._item(place if place >= 0 else place + self._length)


class _Repeated(_Steps):
    """The steps of such a history, with their tallies."""

    __slots__ = ()

    def __init__(self, stretches: Sequence[Stretch]) -> None:
        starts = [0, *accumulate(len(steps) * times for steps, times in stretches)]

        def step(place: int) -> Step:
            number = bisect_right(starts, place) - 1
            steps = stretches[number][0]
            return steps[(place - starts[number]) % len(steps)]

        self.items = cast("Any", _Lazy(starts[-1], step))
        self.lock = threading.Lock()
        self.derived = {}
        self.ok = _tally(stretches, starts, failures=False)
        failed = any(step.outcome is Outcome.FAILED for steps, _ in stretches for step in steps)
        self.invoked = _tally(stretches, starts, failures=True) if failed else self.ok


def _tally(stretches: Sequence[Stretch], starts: Sequence[int], *, failures: bool) -> Tally:
    """The tally of the steps that count."""
    counted = [
        [step.tool if step.outcome is Outcome.OK or (failures and step.outcome.is_invocation) else None for step in steps]
        for steps, _ in stretches
    ]
    tally = Tally()
    tally.total, tally.last = cast("Any", _totals(stretches, starts, counted)), cast("Any", _lasts(stretches, starts, counted))
    names = dict.fromkeys(name for tools in counted for name in tools if name is not None)
    tally.places = {name: cast("Any", _places(name, stretches, starts, counted)) for name in names}
    return tally


def _totals(stretches: Sequence[Stretch], starts: Sequence[int], counted: Sequence[Sequence[str | None]]) -> _Lazy:
    within = [[0, *accumulate(tool is not None for tool in tools)] for tools in counted]
    before = [0, *accumulate(one[-1] * times for one, (_, times) in zip(within, stretches, strict=True))]

    def total(length: int) -> int:
        number = bisect_right(starts, length) - 1
        if number == len(stretches):
            return before[number]
        rounds, rest = divmod(length - starts[number], len(counted[number]))
        return before[number] + rounds * within[number][-1] + within[number][rest]

    return _Lazy(starts[-1] + 1, total)


def _lasts(stretches: Sequence[Stretch], starts: Sequence[int], counted: Sequence[Sequence[str | None]]) -> _Lazy:
    within = [Tally(tools).last for tools in counted]
    before: list[str | None] = [None]
    for one in within:
        before.append(one[-1] or before[-1])

    def last(length: int) -> str | None:
        number = bisect_right(starts, length) - 1
        if number == len(stretches):
            return before[number]
        rounds, rest = divmod(length - starts[number], len(counted[number]))
        return within[number][rest] or (within[number][-1] if rounds else None) or before[number]

    return _Lazy(starts[-1] + 1, last)


def _places(name: str, stretches: Sequence[Stretch], starts: Sequence[int], counted: Sequence[Sequence[str | None]]) -> _Lazy:
    within = [[place for place, tool in enumerate(tools) if tool == name] for tools in counted]
    before = [0, *accumulate(len(one) * times for one, (_, times) in zip(within, stretches, strict=True))]

    def place(number_of: int) -> int:
        number = bisect_right(before, number_of) - 1
        rounds, rest = divmod(number_of - before[number], len(within[number]))
        return starts[number] + rounds * len(counted[number]) + within[number][rest]

    return _Lazy(before[-1], place)

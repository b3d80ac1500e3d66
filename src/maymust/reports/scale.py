"""A number that both of two compiled policies follow, at which something changes only now and then."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence

from maymust.core.bits import Dial
from maymust.core.compiled import CompiledPolicy
from maymust.core.step import Outcome
from maymust.verify.witness import Event

Pair = tuple[int, int]
"""The states of the two policies."""


class Scale:
    """How often a tool was counted, how long it still has to rest, or how many steps there were: as far as one of two policies asks.

    longest  the greatest distance between two numbers at which something changes
    """

    def __init__(self, dials: Sequence[tuple[int, Dial]]) -> None:
        first = dials[0][1]
        self._dials = dials
        self._falls = first.kind == "rest"
        self._tool = first.tool
        self._kind = first.kind
        self._failures = first.failures
        self._stops = sorted({stop for _, dial in dials for stop in dial.stops})
        self.longest: int = max((dial.mask for _, dial in dials) if self._falls else _distances(self._stops))

    def moves(self, event: Event) -> bool:
        """Whether a call counts here. That of a tool that rests from then on is none that does."""
        if event.outcome is not Outcome.OK and not self._failures:
            return False
        return self._kind == "step" or (event.tool == self._tool) is not self._falls

    def resets(self, event: Event) -> bool:
        """Whether a call makes the tool rest anew."""
        return self._falls and event.tool == self._tool

    def value(self, pair: Pair) -> int:
        """The number; it grows with every call that counts. That of a tool that rests grows to 0."""
        numbers = [pair[side] >> dial.shift & dial.mask for side, dial in self._dials]
        return -max(numbers) if self._falls else max(numbers)

    def segment(self, value: int) -> int:
        """Between which two numbers at which something changes it is; what is at rest is told by flags."""
        return 0 if self._falls else bisect_right(self._stops, value)

    def gap(self, pair: Pair) -> int:
        """How many calls that count are missing until something changes; 0 when nothing ever will."""
        if self._falls:
            return min((left for side, dial in self._dials if (left := pair[side] >> dial.shift & dial.mask)), default=0)
        value = self.value(pair)
        place = bisect_right(self._stops, value)
        return self._stops[place] - value if place < len(self._stops) else 0

    def moved(self, pair: Pair, calls: int) -> Pair:
        """The pair after so many calls that count, fewer than the gap, in nothing but this number."""
        states = list(pair)
        number = self.value(pair) + calls
        for side, dial in self._dials:
            left = states[side] >> dial.shift & dial.mask
            after = max(left - calls, 0) if self._falls else min(number, dial.stops[-1])
            states[side] += after - left << dial.shift
        return states[0], states[1]

    def without(self, side: int) -> int:
        """The bits of one policy's state that hold this number and nothing else."""
        return sum(dial.mask << dial.shift for of, dial in self._dials if of == side and (self._falls or dial.mask > 1))


def scales_of(policies: tuple[CompiledPolicy, CompiledPolicy], *, far: int) -> tuple[Scale, ...]:
    """The scales of two policies on which something is so far away."""
    dials: dict[object, list[tuple[int, Dial]]] = {}
    for side, policy in enumerate(policies):
        for dial in policy.dials():
            dials.setdefault((dial.kind, dial.tool, dial.failures), []).append((side, dial))
    return tuple(scale for some in dials.values() if (scale := Scale(some)).longest >= far)


def _distances(stops: Sequence[int]) -> Iterator[int]:
    return (after - before for before, after in zip((0, *stops), stops, strict=False))

"""Two policies played side by side, the shortest sequences of calls first, in steps as long as nothing changes.

A place stands for a pair of states, and for those that differ from it in numbers only: where a call, or a few that lead back, changes
nothing but one number, that number may have grown by as much as is wanted until something depends on it. What may happen from there is the same
for all of them, so it is played once; how much it has grown is settled by the call that comes to the next number at which something changes.
So a limit of a million costs no more than one of a hundred, and what is found is exact.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count, product

from maymust.core.compiled import CompiledPolicy
from maymust.core.step import Outcome
from maymust.reports.runs import Run, joined
from maymust.reports.scale import Pair, scales_of
from maymust.verify.witness import Event

FAR = 32
"""Numbers that are nearer are counted up one by one."""

_ROUND = 12
"""How many calls are looked back for one that leads back, e.g. over a tool's cooldown."""

_SOME = 8
"""Of many places that differ in numbers only, so many of the first and of the last ones are looked at for one that holds another."""


@dataclass(slots=True, eq=False)
class Place:
    """Pairs of states that differ in numbers only.

    pair    the first of them
    cost    how many calls lead to it
    slopes  per scale how many calls it takes to let its number grow by one; 0: it is as it is
    """

    pair: Pair
    cost: int
    slopes: tuple[int, ...]
    came: Place | None = None
    event: Event | None = None
    grown: tuple[tuple[int, int], ...] = ()
    """The scales whose numbers were settled by the call that led here, with how much they had grown."""
    rest: tuple[object, ...] = ()
    values: tuple[int, ...] = ()
    rounds: dict[int, tuple[Event, ...]] = field(default_factory=dict)
    """Per scale the calls by which its number grows here."""

    def runs(self) -> list[Run]:
        """A shortest sequence of calls that leads to the pair."""
        runs: list[Run] = []
        wanted: dict[int, int] = {}
        place: Place | None = self
        while place is not None:
            for scale, events in place.rounds.items():
                if times := wanted.pop(scale, 0):
                    runs.append((events, times))
            wanted.update(place.grown)
            if place.event is not None:
                runs.append(((place.event,), 1))
            place = place.came
        return joined(reversed(runs))


class SideBySide:
    """The places that two policies can come to. Whoever iterates over them says where it goes on: `go_on`.

    complete  False when the limit was hit
    looked    how many places were looked at
    """

    def __init__(self, one: CompiledPolicy, other: CompiledPolicy, limit: int, *, far: int = FAR) -> None:
        self.complete: bool = True
        self.looked: int = 0
        self._policies = (one, other)
        self._limit = limit
        self._far = far
        self._scales = scales_of(self._policies, far=far)
        self._masks = tuple(~sum(scale.without(side) for scale in self._scales) for side in (0, 1))
        self._known: dict[tuple[Pair, tuple[int, ...]], int] = {}
        self._order = count()
        self._waiting: list[tuple[int, int, Place]] = []
        self._events: dict[str, tuple[Event, Event]] = {}
        self._moved: dict[str, tuple[int, ...]] = {}
        self._reset: dict[str, tuple[int, ...]] = {}
        self._met: dict[tuple[object, ...], dict[tuple[int, ...], dict[tuple[int, ...], list[Place]]]] = {}
        self._push(Place((one.start(), other.start()), 0, (0,) * len(self._scales)))

    def __iter__(self) -> Iterator[Place]:
        while self._waiting:
            _, _, place = heapq.heappop(self._waiting)
            place.rest, place.values = self._read(place.pair)
            if not self._is_met(place):
                self.looked += 1
                yield place

    def go_on(self, place: Place, tools: Iterable[str]) -> None:
        """Look at what calls of these tools lead to, where that is anything new."""
        steps = []
        for tool in tools:
            for event in self._events_of(tool):
                after = self._step(place.pair, event)
                if after != place.pair:
                    steps.append((event, after))
        gaps = [scale.gap(place.pair) for scale in self._scales]
        if any(gap >= self._far and slope != 1 for gap, slope in zip(gaps, place.slopes, strict=True)):
            self._find_rounds(place, steps, gaps)
        self._meet(place)
        for event, after in steps:
            self._call(place, event, after, gaps)

    def _events_of(self, tool: str) -> tuple[Event, Event]:
        events = self._events.get(tool)
        if events is None:
            events = self._events[tool] = (Event(tool), Event(tool, Outcome.FAILED))
            for event in events:
                self._moved[event.word] = tuple(number for number, scale in enumerate(self._scales) if scale.moves(event))
                self._reset[event.word] = tuple(number for number, scale in enumerate(self._scales) if scale.resets(event))
        return events

    def _step(self, pair: Pair, event: Event) -> Pair:
        one, other = self._policies
        return one.step(pair[0], event.tool, event.outcome), other.step(pair[1], event.tool, event.outcome)

    def _push(self, place: Place) -> None:
        key = place.pair, place.slopes
        known = self._known.get(key)
        if known is not None and known <= place.cost:
            return
        if known is None and len(self._known) >= self._limit:
            self.complete = False
            return
        self._known[key] = place.cost
        heapq.heappush(self._waiting, (place.cost, next(self._order), place))

    # --- growing ---
    def _read(self, pair: Pair) -> tuple[tuple[object, ...], tuple[int, ...]]:
        """All but the numbers, and the numbers."""
        values = tuple([scale.value(pair) for scale in self._scales])
        segments = tuple([scale.segment(value) for scale, value in zip(self._scales, values, strict=True)])
        return (pair[0] & self._masks[0], pair[1] & self._masks[1], segments), values

    def _find_rounds(self, place: Place, steps: Sequence[tuple[Event, Pair]], gaps: Sequence[int]) -> None:
        """Look for calls that change nothing but one number."""
        for event, after in steps:
            if sum(gaps[number] > 0 for number in self._moved[event.word]) == 1:
                self._note_round(place, self._read(after), place, (event,), gaps)
        back, events = place, []
        while back.came is not None and back.event is not None and not back.grown and len(events) < _ROUND:
            events.append(back.event)
            back = back.came
            if len(events) > 1 and back.rest == place.rest:
                self._note_round(back, (place.rest, place.values), place, tuple(reversed(events)), gaps)

    def _note_round(
        self,
        back: Place,
        after: tuple[tuple[object, ...], tuple[int, ...]],
        place: Place,
        events: tuple[Event, ...],
        gaps: Sequence[int],
    ) -> None:
        rest, values = after
        if rest != back.rest:
            return
        moved = [number for number, (old, new) in enumerate(zip(back.values, values, strict=True)) if old != new]
        if len(moved) != 1 or values[moved[0]] != back.values[moved[0]] + 1:
            return
        scale, slopes = moved[0], place.slopes
        if gaps[scale] >= self._far and (not slopes[scale] or slopes[scale] > len(events)):
            place.rounds[scale] = events
            place.slopes = (*slopes[:scale], len(events), *slopes[scale + 1 :])

    def _call(self, place: Place, event: Event, after: Pair, gaps: Sequence[int]) -> None:
        """What one call leads to: per number that may have grown, that it comes to where something changes, or that it does not yet."""
        moving = [number for number in self._moved[event.word] if place.slopes[number] and gaps[number]]
        for settled in product((False, True), repeat=len(moving)):
            growing = [number for number, now in zip(moving, settled, strict=True) if not now]
            # It would come to where something changes, or nothing but a number changes that has grown already.
            if any(gaps[number] == 1 or place.rounds.get(number) == (event,) for number in growing):
                continue
            pair, cost, slopes, grown = place.pair, place.cost + 1, list(place.slopes), []
            for number in (number for number, now in zip(moving, settled, strict=True) if now):
                pair = self._scales[number].moved(pair, gaps[number] - 1)
                cost += (gaps[number] - 1) * slopes[number]
                slopes[number] = 0
                grown.append((number, gaps[number] - 1))
            for number in self._reset[event.word]:
                slopes[number] = 0
            self._push(Place(self._step(pair, event) if grown else after, cost, tuple(slopes), place, event, tuple(grown)))

    # --- having been there ---
    def _meet(self, place: Place) -> None:
        fixed = tuple(value for value, slope in zip(place.values, place.slopes, strict=True) if not slope)
        self._met.setdefault(place.rest, {}).setdefault(place.slopes, {}).setdefault(fixed, []).append(place)

    def _is_met(self, place: Place) -> bool:
        """Whether all that a place stands for was looked at, after no more calls."""
        for slopes, known in self._met.get(place.rest, {}).items():
            if all(not its or 0 < mine <= its for mine, its in zip(slopes, place.slopes, strict=True)):
                fixed = tuple(value for value, slope in zip(place.values, slopes, strict=True) if not slope)
                some = known.get(fixed, [])
                if any(_holds(one, place) for one in (some if len(some) <= 2 * _SOME else (*some[:_SOME], *some[-_SOME:]))):
                    return True
        return False


def _holds(one: Place, other: Place) -> bool:
    cost = one.cost
    for mine, its, slope in zip(one.values, other.values, one.slopes, strict=True):
        if mine > its:
            return False
        cost += (its - mine) * slope
    return cost <= other.cost

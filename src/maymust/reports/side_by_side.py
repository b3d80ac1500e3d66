"""Two policies played side by side, the shortest sequences of calls first, in strides as long as nothing changes.

A place stands for a pair of states, and for those that differ from it in numbers only. Where a call, or a few that lead back, changes
nothing but one number, that number may have grown by as much as is wanted until something depends on it. What may happen from there
is the same for all of them, so it is played once; how much the number has grown is settled by the call that brings it to where
something changes. So a limit of a million costs no more than one of a hundred, and what is found is exact. Numbers that only grow
together (counts while a far cooldown runs, ok and failed calls of one tool) are still counted one by one.
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

LIMIT = 200_000
"""How many pairs of states are looked at before the search gives up."""

LIMIT_OF_FAR = 50_000
"""The same where some number is far: a place takes as long as four pairs, and what is not found by then mostly has no end."""

FAR = 32
"""Numbers that are nearer are counted up one by one."""

_ROUND = 12
"""How many calls are looked back for one that leads back, e.g. over a tool's cooldown."""

_SOME = 3
"""Of many places that differ in numbers only, so many of the first and of the last ones are looked at for one that holds another."""


_OUTCOMES = (Outcome.OK, Outcome.FAILED)


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


@dataclass(frozen=True, slots=True)
class _Call:
    """A call that comes back in one way, with the scales on which it counts and those that it begins anew."""

    event: Event
    moves: tuple[int, ...]
    resets: tuple[int, ...]


class SideBySide:
    """The places that two policies can come to. Whoever iterates over them says where it goes on: `go_on`.

    complete  False when the limit was hit
    looked    how many places were looked at
    """

    def __init__(self, one: CompiledPolicy, other: CompiledPolicy, limit: int | None = None, *, far: int = FAR) -> None:
        self.complete: bool = True
        self.looked: int = 0
        self._policies = (one, other)
        self._far = far
        self._scales = scales_of(self._policies, far=far)
        self._limit = limit if limit is not None else LIMIT_OF_FAR if self._scales else LIMIT
        self._masks = tuple(~sum(scale.without(side) for scale in self._scales) for side in (0, 1))
        self._known: dict[tuple[Pair, tuple[int, ...]], int] = {}
        self._order = count()
        self._waiting: list[tuple[int, int, Place]] = []
        self._calls: dict[str, tuple[_Call, ...]] = {}
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
            for call in self._calls.get(tool) or self._calls_of(tool):
                after = self._step(place.pair, call.event)
                if after != place.pair:
                    steps.append((call, after))
        gaps = [scale.gap(place.pair) for scale in self._scales]
        if any(gap >= self._far and slope != 1 for gap, slope in zip(gaps, place.slopes, strict=True)):
            self._find_rounds(place, steps, gaps)
        self._meet(place)
        for call, after in steps:
            self._play(place, call, after, gaps)

    def _calls_of(self, tool: str) -> tuple[_Call, ...]:
        heeded = (outcome for outcome in _OUTCOMES if any(policy.heeds(outcome) for policy in self._policies))
        self._calls[tool] = tuple(
            _Call(
                event,
                tuple(number for number, scale in enumerate(self._scales) if scale.moves(event)),
                tuple(number for number, scale in enumerate(self._scales) if scale.resets(event)),
            )
            for event in (Event(tool, outcome) for outcome in heeded)
        )
        return self._calls[tool]

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

    def _find_rounds(self, place: Place, steps: Sequence[tuple[_Call, Pair]], gaps: Sequence[int]) -> None:
        """Look for calls that change nothing but one number."""
        for call, after in steps:
            if sum(gaps[number] > 0 for number in call.moves) == 1:
                self._note_round(place, self._read(after), place, (call.event,), gaps)
        back, events, total = place, list[Event](), sum(place.values)
        while back.came is not None and back.event is not None and not back.grown and len(events) < _ROUND:
            events.append(back.event)
            back = back.came
            if len(events) > 1 and sum(back.values) + 1 == total and back.rest == place.rest:
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
            place.slopes = _with(slopes, scale, len(events))

    def _play(self, place: Place, call: _Call, after: Pair, gaps: Sequence[int]) -> None:
        """What one call leads to: per number that may have grown, that it comes to where something changes, or that it does not yet."""
        slopes = place.slopes
        for number in call.resets:
            slopes = _with(slopes, number, 0)
        moving = [number for number in call.moves if place.slopes[number] and gaps[number]]
        if not moving:
            self._push(Place(after, place.cost + 1, slopes, place, call.event))
            return
        for settled in product((False, True), repeat=len(moving)):
            growing = [number for number, now in zip(moving, settled, strict=True) if not now]
            # It would come to where something changes, or nothing but a number changes that has grown already.
            if any(gaps[number] == 1 or place.rounds.get(number) == (call.event,) for number in growing):
                continue
            self._push(self._settled(place, call, slopes, {number: gaps[number] - 1 for number in moving if number not in growing}))

    def _settled(self, place: Place, call: _Call, slopes: tuple[int, ...], grown: dict[int, int]) -> Place:
        """Where a call leads that comes to where something changes on these scales, which had grown by so much before."""
        pair, cost = place.pair, place.cost + 1
        for number, growth in grown.items():
            pair = self._scales[number].moved(pair, growth)
            cost += growth * slopes[number]
            slopes = _with(slopes, number, 0)
        return Place(self._step(pair, call.event), cost, slopes, place, call.event, tuple(grown.items()))

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


def _with(slopes: tuple[int, ...], number: int, slope: int) -> tuple[int, ...]:
    return (*slopes[:number], slope, *slopes[number + 1 :])

"""The calls of a run by the value of one parameter: for each value that occurred, a small state of its own."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from maymust.core.step import Outcome, Step
from maymust.requirements.fit import Fit
from maymust.requirements.gathered import key_of
from maymust.requirements.step_log import StepLog


class Conditions(NamedTuple):
    """What is asked of each value. Tools are names.

    target    the tool whose calls are limited
    after     groups: closed until one of each group has occurred with the value
    before    closed as soon as one of these has occurred with it
    most      limit of invocations with it, None for no limit
    attempts  the same, of ok and failed ones together
    follows   groups: after a call of the target, one of each has to occur with the value
    failures  failed invocations occur as well
    """

    target: str
    after: tuple[tuple[str, ...], ...]
    before: tuple[str, ...]
    most: int | None
    attempts: int | None
    follows: tuple[tuple[str, ...], ...]
    failures: bool

    @property
    def others(self) -> tuple[str, ...]:
        """The other tools, each once."""
        groups = (*self.after, self.before, *self.follows)
        return tuple(name for name in dict.fromkeys(name for group in groups for name in group) if name != self.target)

    @property
    def closes(self) -> bool:
        """Whether a value may be closed for good."""
        return bool(self.before) or self.most is not None or self.attempts is not None


class Places(NamedTuple):
    """Where the values are: the parameter of each tool, what stands for it where it is left out, and the form that the target takes."""

    parameters: Mapping[str, str]
    defaults: Mapping[str, Any]
    fit: Fit


class Standing(NamedTuple):
    """How the values stand after some calls.

    left    values that the target may have; None while nothing has to have occurred first
    closed  values that it may no longer have
    missing places of the groups of `after` in which nothing has occurred with any value
    owed    per group of `follows` the values for which it is owed
    key     tells it from others
    """

    left: tuple[Any, ...] | None
    closed: tuple[Any, ...]
    missing: tuple[int, ...]
    owed: tuple[tuple[Any, ...], ...]
    key: Any


class _State:
    """What occurred with one value."""

    __slots__ = ("after", "attempts", "barred", "count", "owed", "value")

    def __init__(self, value: Any) -> None:
        self.value = value
        self.after = 0
        self.barred = False
        self.count = 0
        self.attempts = 0
        self.owed = 0


class _Call(NamedTuple):
    """One call: the tool, whether it came back ok, and its value in the form that the target takes; None where it was left out."""

    tool: str
    is_ok: bool
    value: Any
    is_named: bool


class KeyedCalls(StepLog):
    """The calls of one run that some conditions are about."""

    def __init__(self, conditions: Conditions, places: Places) -> None:
        super().__init__((conditions.target, *conditions.others), failures=conditions.failures or conditions.attempts is not None)
        self._conditions = conditions
        self._places_of_values = places
        self._log: list[_Call | None] = []
        self._reading = threading.Lock()
        self._states: dict[Any, _State] = {}
        self._reached = 0
        self._newest: tuple[int, Standing] | None = None
        self._after_bits = _bits(conditions.after)
        self._follow_bits = _bits(conditions.follows)

    def after(self, calls: int) -> Standing:
        """How the values stand after so many calls."""
        newest = self._newest
        if newest is None or newest[0] != calls:
            with self._reading:
                if calls < self._reached:
                    # An older version of the history is asked about: rare, so it is read again from the start.
                    self._states, self._reached = {}, 0
                for call in self._log[self._reached : calls]:
                    if call is not None:
                        self._note(call)
                self._reached = calls
                newest = self._newest = (calls, self._standing())
        return newest[1]

    # --- reading calls ---
    def _found(self, step: Step) -> _Call | None:
        places = self._places_of_values
        parameter, arguments = places.parameters[step.tool], step.arguments
        is_ok = step.outcome is Outcome.OK
        if arguments is not None and parameter in arguments:
            value = arguments[parameter]
        elif step.tool in places.defaults:
            value = places.defaults[step.tool]
        else:
            return _Call(step.tool, is_ok, None, False)
        fitting = places.fit(value)
        return _Call(step.tool, is_ok, fitting[0], True) if fitting else None

    def _take(self, found: _Call | None) -> None:
        self._log.append(found)

    # --- what occurred with each value ---
    def _note(self, call: _Call) -> None:
        conditions, tool = self._conditions, call.tool
        key = key_of(call.value)
        state = self._states.get(key)
        if state is None:
            state = self._states[key] = _State(call.value)
        if tool == conditions.target:
            state.attempts += 1
        if not call.is_ok and not conditions.failures:
            return
        # A call that leaves the value out has none that others could go by. That it may not be repeated holds all the same.
        if call.is_named:
            state.after |= self._after_bits.get(tool, 0)
            state.owed &= ~self._follow_bits.get(tool, 0)
        state.barred = state.barred or tool in conditions.before
        if tool == conditions.target:
            state.count += 1
            if call.is_named:
                # No call answers itself.
                state.owed = (1 << len(conditions.follows)) - 1

    def _is_closed(self, state: _State) -> bool:
        most, attempts = self._conditions.most, self._conditions.attempts
        return state.barred or (most is not None and state.count >= most) or (attempts is not None and state.attempts >= attempts)

    def _standing(self) -> Standing:
        conditions, states = self._conditions, self._states.values()
        everything = (1 << len(conditions.after)) - 1
        left: tuple[Any, ...] | None = None
        missing: tuple[int, ...] = ()
        closed: list[Any] = []
        if conditions.after:
            left = tuple(state.value for state in states if state.after == everything and not self._is_closed(state))
            occurred = 0
            for state in states:
                occurred |= state.after
            missing = tuple(place for place in range(len(conditions.after)) if not occurred >> place & 1)
        elif conditions.closes:
            closed = [state.value for state in states if self._is_closed(state)]
            default = self._places_of_values.defaults.get(conditions.target)
            # Where the call leaves the parameter out, its default is what it has.
            if default is not None and None not in closed and any(key_of(value) == key_of(default) for value in closed):
                closed.append(None)
        owed = tuple(tuple(state.value for state in states if state.owed >> place & 1) for place in range(len(conditions.follows)))
        key = (
            None if left is None else _keys(left),
            _keys(closed),
            missing,
            tuple(map(_keys, owed)),
        )
        return Standing(left, tuple(closed), missing, owed, key)


def _bits(groups: Sequence[Sequence[str]]) -> dict[str, int]:
    """Per tool the groups it is in."""
    bits: dict[str, int] = {}
    for place, group in enumerate(groups):
        for name in group:
            bits[name] = bits.get(name, 0) | 1 << place
    return bits


def _keys(values: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(map(key_of, values))

"""The policy as a gate, for a loop that belongs to somebody else."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol

from maymust.core.bounds import Bounds
from maymust.core.history import History
from maymust.core.narrowing import askers, outside
from maymust.core.permit import Permit
from maymust.core.refusal import refusal
from maymust.core.requirement import BoundRequirement, RunView
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PermitError, RunError


class Judge(Protocol):
    """What a gate needs of a policy."""

    @property
    def opaque(self) -> tuple[BoundRequirement, ...]: ...
    def permit(self, history: History, run: RunView | None = None, *, memories: Mapping[str, dict[str, Any]] | None = None) -> Permit: ...
    def surely_admits(
        self, tool: str, bounds: Bounds, *, run: RunView | None = None, memories: Mapping[str, dict[str, Any]] | None = None
    ) -> bool: ...


@dataclass(frozen=True, slots=True)
class Admission:
    """The gate's word on one call.

    allowed   it may run (after a person's yes, where `ask` is true)
    reason    for a call that may not run: the text for the model
    ask       a person has to agree first
    waits     it may not run *yet*: whether it may hangs on calls that were admitted and not yet observed
    """

    allowed: bool
    reason: str | None = None
    ask: bool = False
    waits: bool = False


class _Call:
    """A call as any framework writes it."""

    __slots__ = ("arguments", "call_id", "key", "name", "outcome", "output")

    def __init__(self, call: Any) -> None:
        self.key = call
        get = _reader(call)
        name = _first(get, "name", "tool", "tool_name")
        if not isinstance(name, str):
            raise TypeError(f"{call!r} is no call: give a tool's name, or a mapping or an object with a `name` (or `tool`, `tool_name`)")
        self.name = name
        self.call_id: str | None = _first(get, "call_id", "id", "tool_call_id")
        self.arguments: Mapping[str, Any] | None = _object(_first(get, "arguments", "args", "raw_arguments"))
        self.outcome: Outcome | None = None
        self.output: Any = None

    def is_same(self, call: Any) -> bool:
        """True when `call` speaks of this very call: by id where there is one."""
        if self.key is call:
            return True
        other = _Call(call)
        return self.call_id == other.call_id if self.call_id and other.call_id else self.name == other.name

    @property
    def step(self) -> Step:
        return Step(self.name, self.outcome or Outcome.REFUSED, self.arguments, self.output, self.call_id)


def _reader(call: Any) -> Callable[[str], Any]:
    """What gives a field of a call, None where it has none of that name."""
    if isinstance(call, str):
        return {"name": call}.get
    if isinstance(call, dict | Mapping):
        return call.get
    return lambda name: getattr(call, name, None)


def _first(get: Callable[[str], Any], *names: str) -> Any:
    for name in names:
        value = get(name)
        if value is not None:
            return value
    return None


def _object(raw: Any) -> Mapping[str, Any] | None:
    if isinstance(raw, dict):
        return raw
    if isinstance(raw, str):
        try:
            raw = json.loads(raw)
        except ValueError:
            return None
    return raw if isinstance(raw, Mapping) else None


class Gate:
    """A policy in one run of any loop: ask for the permit, admit the calls that come back, report how they went.

    Calls are judged by the permit they were emitted under, in the order in which they are put to `admit`, as if they ran one after
    another. While an admitted call has not been observed, a call whose admission hangs on it is told to wait (`waits`): ask again after
    `observe`, or refuse it. A call may be a name, a mapping, or an object with `name`, `arguments` and `call_id` (or `id`).

    memories   per requirement its memory in this run; the caller's to fill, e.g. with a person's remembered choices
    """

    def __init__(self, policy: Judge, *, run: RunView | None = None) -> None:
        self.memories: dict[str, dict[str, Any]] = {}
        self._policy = policy
        self._run = run
        self._settled = History()
        self._batch: list[_Call] = []
        self._permit: Permit | None = None
        self._slips: list[str] = []

    @property
    def history(self) -> History:
        """The steps so far, in the order of admission; open calls are left out."""
        history = self._settled
        for call in self._batch:
            if call.outcome is not None:
                history = history.add(call.step)
        return history

    def permit(self) -> Permit:
        """Return the permit of the next turn, and begin that turn.

        Raises RunError while an admitted call has not been observed, and PermitError as `Policy.permit` does.
        """
        waiting = [call.name for call in self._batch if call.outcome is None]
        if waiting:
            raise RunError(f"the turn is not over: observe {', '.join(waiting)} first, with the outcome 'refused' for calls that never ran")
        self._settled, self._batch, self._slips = self.history, [], []
        self._permit = None
        self._permit = self._now()
        return self._permit

    def admit(self, call: Any) -> Admission:
        """Say whether a call of this turn may run. A call that may run has to be observed afterwards."""
        wanted = _Call(call)
        emitted = self._permit if self._permit is not None else self.permit()
        admission = self._judge(wanted, emitted)
        if admission.allowed:
            self._batch.append(wanted)
        elif not admission.waits:
            self._slips.append(wanted.name)
        return admission

    def observe(self, call: Any, outcome: Outcome | str, output: Any = None) -> None:
        """Report how a call came back. A call that was never admitted is recorded as it is."""
        for known in self._batch:
            if known.outcome is None and known.is_same(call):
                break
        else:
            known = _Call(call)
            self._batch.append(known)
        known.outcome = Outcome(outcome)
        known.output = output

    def may_stop(self) -> bool:
        """True when the run may end here: no call is open, and the rules allow a final answer."""
        if any(call.outcome is None for call in self._batch):
            return False
        try:
            return self._now().may_stop
        except PermitError:
            return False

    def _now(self) -> Permit:
        return self._policy.permit(self.history, self._run, memories=self.memories)

    def _judge(self, call: _Call, emitted: Permit) -> Admission:
        name = call.name
        if name not in emitted.allowed:
            return Admission(False, refusal(emitted, name, emitted.allowed))
        open_calls = [one for one in self._batch if one.outcome is None]
        if name == FINAL_ANSWER:
            slipped = self._slips + [one.name for one in self._batch if one.outcome not in (None, Outcome.OK)]
            if slipped or any(one.name == FINAL_ANSWER for one in self._batch):
                return Admission(
                    False, f"not now: {slipped[0] if slipped else name} in the same turn {'did not succeed' if slipped else 'came first'}"
                )
        if open_calls and not self._is_sure(name):
            waiting = ", ".join(dict.fromkeys(one.name for one in open_calls))
            return Admission(False, f"not yet: it depends on {waiting}, which has not come back", waits=True)
        try:
            current = self._now() if self._batch else emitted
        except PermitError as error:
            return Admission(False, f"not now: {error}")
        if name not in current.allowed:
            return Admission(False, refusal(current, name, current.allowed))
        wrong = outside(current, name, call.arguments)
        if wrong is not None:
            return Admission(False, f"not with these arguments: {wrong}")
        return Admission(True, ask=bool(askers(current, name, call.arguments)))

    def _is_sure(self, name: str) -> bool:
        """True when the call may run however the open calls end."""
        if name == FINAL_ANSWER:
            return False
        bounds = Bounds(self._settled, [(call.name, call.outcome) for call in self._batch])
        for requirement in self._policy.opaque:
            depends_on = getattr(requirement, "depends_on", None)
            if depends_on is None or depends_on & bounds.open:
                return False
        return self._policy.surely_admits(name, bounds, run=self._run, memories=self.memories)

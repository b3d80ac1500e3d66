"""A run of a policy in somebody else's loop: the permit of each turn, the calls let through in the model's order, and the ladder."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from maymust.adapters.judge import Judge
from maymust.adapters.questions import Questions
from maymust.agent.blocking import blocking
from maymust.agent.call_record import PendingCall
from maymust.agent.ladder import RELAX, nudge_text
from maymust.core.gate import Admission, Gate
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.requirement import RunView
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import RunError
from maymust.tools.output import OutputInvalid, render_output

log = logging.getLogger(__name__)

IDLE_TURNS = 8
"""So many turns running may bring nothing but refused calls before the run is ended as stalled."""


_REFUSALS = ("not now: ", "not yet: ", "not with these arguments: ", "there is no tool called ")


def is_refusal(text: str) -> bool:
    """True for what the model read about a call that was not admitted."""
    return text.startswith(_REFUSALS)


def is_nudge(text: str) -> bool:
    """True for what a model was told after a reply that could not be used."""
    return text.startswith(("A text is not enough here.", "Your reply was empty."))


class Turnstile:
    """One run. It belongs to one run and to no other; the calls of one turn may come from several threads or tasks.

    policy    the policy
    run       what requirements see of the run beside its history
    patient   False: a call that hangs on one still running is refused instead of waiting for it
    """

    def __init__(self, policy: Policy, *, run: RunView | None = None, patient: bool = True) -> None:
        self.policy = policy
        self.patient = patient
        self.current: Permit | None = None
        self.bad_replies = 0
        self.idle = 0
        self.begun = False
        self.number = 0
        self._judge = Judge(policy)
        self._run = run
        self._gate = Gate(self._judge, run=run)
        self._lock = threading.RLock()
        self._queue: list[dict[str, Any]] = []
        self._decided: dict[str, Admission] = {}
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._left: dict[str, Outcome] = {}
        self._parked: set[str] = set()
        self._turned_away: set[str] = set()
        self._doomed: dict[str, Outcome] = {}
        self._questions = Questions(policy)

    @property
    def history(self) -> History:
        """The steps so far."""
        return self._gate.history

    @property
    def present(self) -> tuple[str, ...] | None:
        """The tools of this turn; None: those of the policy."""
        return self._judge.present

    @property
    def pending(self) -> list[dict[str, Any]]:
        """The calls of this turn that have not come back, those that wait for somebody among them."""
        return [dict(call) for call in self._queue if call["call_id"] not in self._left and self._is_open(call["call_id"])]

    @property
    def is_parked(self) -> bool:
        """True while a call waits for somebody outside."""
        return bool(self._parked)

    @property
    def batch(self) -> list[dict[str, Any]]:
        """The calls of this turn."""
        return [dict(call) for call in self._queue]

    @property
    def memories(self) -> dict[str, dict[str, Any]]:
        """Per requirement its memory in this run."""
        return self._gate.memories

    def permit(self, present: Iterable[str] | None = None) -> Permit:
        """Begin a turn. Calls of the last one that never came are recorded as refused. Raises PermitError, and RunError when stalled.

        present   names of the tools that are there right now, in order
        """
        with self._lock:
            for call in self._queue:
                if self._decided.get(call["call_id"], Admission(False)).allowed and call["call_id"] not in self._left:
                    self._gate.observe(call, Outcome.REFUSED)
            ran = any(outcome.is_invocation for outcome in self._left.values())
            if ran:
                self.bad_replies = self.idle = 0
            elif self._decided:
                self.idle += 1
            if self.idle >= IDLE_TURNS:
                raise RunError(f"the run stalled: {self.idle} turns running brought only calls that were refused")
            self._queue, self._decided, self._left = [], {}, {}
            self._parked, self._turned_away, self._doomed, self.begun = set(), set(), {}, False
            self._judge.present = None if present is None else tuple(present)
            self._judge.relaxed = self.bad_replies >= RELAX
            self.current = self._gate.permit()
            return self.current

    def begin(self, calls: Iterable[Mapping[str, Any]]) -> None:
        """Take in the calls of the reply, in the model's order: mappings with `name`, `arguments` and `call_id`. Once a turn."""
        with self._lock:
            if self.begun:
                return
            self.begun = True
            # The answer is decided after its siblings, wherever the model wrote it.
            self._queue = sorted((dict(call) for call in calls), key=lambda call: call["name"] == FINAL_ANSWER)
            self._pump()

    def add(self, call: Mapping[str, Any]) -> None:
        """Take in one more call of this turn, where calls become known one by one."""
        with self._lock:
            self._queue.append(dict(call))
            self._pump()

    def enter(self, call_id: str, arguments: Mapping[str, Any] | None = None) -> Admission | None:
        """The word on a call of this turn; waits for the calls it hangs on. For threads.

        arguments   what it is about to run with, if that may differ from what the model wrote

        None: it hangs on a call that was parked, so its own task has to be ended and run again later.
        """
        ready = threading.Event()
        self._when_decided(call_id, ready.set)
        ready.wait()
        return self._word(call_id, arguments)

    async def aenter(self, call_id: str, arguments: Mapping[str, Any] | None = None) -> Admission | None:
        """`enter` for tasks."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        self._when_decided(call_id, lambda: loop.call_soon_threadsafe(ready.set))
        await ready.wait()
        return self._word(call_id, arguments)

    def park(self, call_id: str) -> None:
        """Say that an admitted call waits for somebody outside; it will enter again."""
        with self._lock:
            self._parked.add(call_id)
            self._turn_away()

    def leave(self, call_id: str, outcome: Outcome | str, output: Any = None) -> None:
        """Say how an admitted call came back. Only the first word on a call counts."""
        with self._lock:
            call = self._call(call_id)
            if call is None or call_id in self._left or not self._decided.get(call_id, Admission(False)).allowed:
                return
            outcome = Outcome(outcome)
            if outcome is Outcome.OK:
                try:
                    output = render_output(output)[0]
                except OutputInvalid:
                    output = str(output)
            self._left[call_id] = outcome
            self._gate.observe(call, outcome, output if outcome is Outcome.OK else None)
            self._pump()
            self._turn_away()

    def decided(self, call_id: str) -> Admission | None:
        """The word on a call as far as it is known, without waiting."""
        return self._decided.get(call_id)

    def doom(self, call_id: str, outcome: Outcome = Outcome.FAILED) -> None:
        """Say of a call, admitted or not yet, that it will not run: as soon as it is admitted it has come back like this."""
        with self._lock:
            self._doomed[call_id] = outcome
            self.leave(call_id, outcome)

    async def aask(self, call_id: str) -> tuple[str | None, PendingCall | None]:
        """Put a call's questions to their handlers: (why not, None) after a no, (None, call) where a person is still to be asked."""
        with self._lock:
            call = self._call(call_id)
            permit = self._judge.permit(self._gate.history, self._run, memories=self._gate.memories)
        if call is None:
            raise RunError(f"call {call_id!r} is not one of this turn")
        return await self._questions.ask(call, permit, self._gate.memories)

    def ask(self, call_id: str) -> tuple[str | None, PendingCall | None]:
        """`aask` for threads."""
        return blocking(self.aask(call_id))

    def settle(self, call: PendingCall, answer: Any) -> str | None:
        """Keep what a person said: True, False, a `Decision`, or `{"allow": bool, "reason": text}`. After a no, the text for the model."""
        return self._questions.settle(call, answer, self._gate.memories)

    def may_stop(self) -> bool:
        """True when the run may end now."""
        return self._gate.may_stop()

    def objection(self, *, empty: bool = False) -> str | None:
        """None when a reply without calls may end the run; else the text to answer it with. Raises RunError when the ladder is used up."""
        if not empty and self.may_stop():
            if self._judge.relaxed and self.current is not None and self.current.relaxed:
                log.warning("the run ends although something is still owed: %s", ", ".join(self.current.relaxed))
            return None
        self.bad_replies += 1
        if self.bad_replies > RELAX or self.current is None:
            raise RunError("the run stalled: the model kept answering where the rules do not let the run end")
        return nudge_text(self.current, empty=empty).replace(f", {FINAL_ANSWER}", "")

    def to_dict(self) -> dict[str, Any]:
        """What has to be kept to go on elsewhere, as JSON."""
        return {
            "steps": [step.to_dict() for step in self.history],
            "memories": json.loads(json.dumps(self.memories)),
            "bad_replies": self.bad_replies,
            "idle": self.idle,
        }

    def record(self, call: Mapping[str, Any], outcome: Outcome | str, output: Any = None) -> None:
        """Take over a step that was decided elsewhere."""
        self._gate.observe(dict(call), outcome, output)

    @classmethod
    def from_dict(cls, policy: Policy, data: Mapping[str, Any], *, patient: bool = False) -> Turnstile:
        """Go on from what `to_dict` kept, between two turns."""
        made = cls(policy, patient=patient)
        for step in map(Step.from_dict, data.get("steps", ())):
            call = {"name": step.tool, "arguments": step.arguments, "call_id": step.call_id}
            made.record(call, step.outcome, step.output)
        made.memories.update({name: dict(memory) for name, memory in data.get("memories", {}).items()})
        made.bad_replies, made.idle = data.get("bad_replies", 0), data.get("idle", 0)
        return made

    def _is_open(self, call_id: str) -> bool:
        word = self._decided.get(call_id)
        return word is None or word.allowed

    def knows(self, call_id: str) -> bool:
        """True for a call of this turn."""
        return self._call(call_id) is not None

    def _call(self, call_id: str) -> dict[str, Any] | None:
        return next((call for call in self._queue if call["call_id"] == call_id), None)

    def _when_decided(self, call_id: str, wake: Callable[[], Any]) -> None:
        with self._lock:
            if self._call(call_id) is None:
                raise RunError(f"call {call_id!r} is not one of this turn")
            if call_id in self._turned_away:
                # Whoever runs this one again runs the parked ones again as well.
                self._parked.clear()
                self._turned_away.clear()
            self._parked.discard(call_id)
            if call_id in self._decided:
                wake()
                return
            self._waiting.setdefault(call_id, []).append(wake)
            self._turn_away()

    def _turn_away(self) -> None:
        """Wake those that wait for nothing but parked calls."""
        running = [one for one, word in self._decided.items() if word.allowed and one not in self._left and one not in self._parked]
        if self._parked and not running:
            waiting, self._waiting = self._waiting, {}
            self._turned_away.update(waiting)
            for wake in (wake for wakes in waiting.values() for wake in wakes):
                wake()

    def _word(self, call_id: str, arguments: Mapping[str, Any] | None) -> Admission | None:
        """The decision; a call that is run a second time, or with other arguments, is judged anew."""
        with self._lock:
            word, call = self._decided.get(call_id), self._call(call_id)
            if word is None or call is None or not word.allowed:
                return word
            changed = arguments is not None and dict(arguments) != (call["arguments"] or {})
            if call_id not in self._left and not changed:
                return word
            if call_id not in self._left:
                self._gate.observe(call, Outcome.REFUSED)
            fresh = call | ({"arguments": dict(arguments)} if arguments is not None else {})
            self._queue[self._queue.index(call)] = fresh
            word = self._decided[call_id] = self._gate.admit(fresh)
            if word.allowed:
                self._left.pop(call_id, None)
            return word

    def _pump(self) -> None:
        """Decide in the model's order, up to the first call that has to wait."""
        for call in self._queue:
            if call["call_id"] in self._decided:
                continue
            word = self._gate.admit(call)
            if word.waits and self.patient:
                return
            self._decided[call["call_id"]] = word
            if not word.allowed:
                self._gate.observe(call, Outcome.REFUSED)
            elif call["call_id"] in self._doomed:
                self._left[call["call_id"]] = self._doomed[call["call_id"]]
                self._gate.observe(call, self._doomed[call["call_id"]])
            for wake in self._waiting.pop(call["call_id"], ()):
                wake()

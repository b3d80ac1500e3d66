"""The calls of a turn, let through one after another as the model wrote them, whichever thread or task each comes in."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from maymust.core.gate import Admission, Gate
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import RunError
from maymust.tools.output import OutputInvalid, render_output

PATIENCE = 10.0
"""So many seconds a call waits for one that was asked for before it and does not come: somebody else may have answered that one."""

_SAME_ID = Admission(False, "not now: another call of this turn has the same id")
_WITHDRAWN = Admission(False, "not now: it was taken back")
_NOBODY_CAME = Admission(False, "not yet: it depends on a call before it, which has not been run; ask for it again")


class Passage:
    """The calls of the turn that is under way.

    patient   False: a call that hangs on one still running is refused instead of waiting for it
    """

    def __init__(self, gate: Gate, *, patient: bool = True) -> None:
        self.patient = patient
        self.begun: bool = False
        self._gate = gate
        self._lock = threading.RLock()
        self._queue: list[dict[str, Any]] = []
        self._decided: dict[str, Admission] = {}
        self._waiting: dict[str, list[Callable[[], None]]] = {}
        self._entered: set[str] = set()
        self._left: dict[str, Outcome] = {}
        self._parked: set[str] = set()
        self._turned_away: set[str] = set()
        self._doomed: dict[str, Outcome] = {}

    def end(self) -> tuple[bool, bool]:
        """End the turn: calls that never came are recorded as refused. Says whether there were calls, and whether one ran."""
        with self._lock:
            for call in self.pending:
                if call["call_id"] in self._decided:
                    self._gate.observe(call, Outcome.REFUSED)
            came, ran = bool(self._decided), any(outcome.is_invocation for outcome in self._left.values())
            for kept in (self._queue, self._decided, self._left, self._entered, self._parked, self._turned_away, self._doomed):
                kept.clear()
            self.begun = False
            return came, ran

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
        again = self._when_decided(call_id, ready.set)
        while not ready.wait(PATIENCE):
            self._give_up(call_id)
        return self._word(call_id, arguments, again)

    async def aenter(self, call_id: str, arguments: Mapping[str, Any] | None = None) -> Admission | None:
        """`enter` for tasks."""
        loop = asyncio.get_running_loop()
        ready = asyncio.Event()
        again = self._when_decided(call_id, lambda: loop.call_soon_threadsafe(ready.set))
        while not ready.is_set():
            try:
                await asyncio.wait_for(ready.wait(), PATIENCE)
            except TimeoutError:
                self._give_up(call_id)
        return self._word(call_id, arguments, again)

    def park(self, call_id: str) -> None:
        """Say that an admitted call waits for somebody outside; it will enter again."""
        with self._lock:
            self._parked.add(call_id)
            self._entered.discard(call_id)
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

    def withdraw(self, call_id: str) -> None:
        """Say of a call that nobody wants it any more. Without a word on it yet it is refused, and those behind it go on."""
        with self._lock:
            call = self._call(call_id)
            if call is None:
                return
            if call_id in self._decided:
                self.leave(call_id, Outcome.REFUSED)
            else:
                self._decide(call, _WITHDRAWN)
                self._pump()

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

    def _is_open(self, call_id: str) -> bool:
        word = self._decided.get(call_id)
        return word is None or word.allowed

    def knows(self, call_id: str) -> bool:
        """True for a call of this turn."""
        return self._call(call_id) is not None

    def _call(self, call_id: str) -> dict[str, Any] | None:
        return next((call for call in self._queue if call["call_id"] == call_id), None)

    def _when_decided(self, call_id: str, wake: Callable[[], Any]) -> bool:
        """Call `wake` when there is a word. True when a call of this id has entered before, and has not left."""
        with self._lock:
            if self._call(call_id) is None:
                raise RunError(f"call {call_id!r} is not one of this turn")
            if call_id in self._turned_away:
                # Whoever runs this one again runs the parked ones again as well.
                self._parked.clear()
                self._turned_away.clear()
            self._parked.discard(call_id)
            again = call_id in self._entered and call_id not in self._left
            self._entered.add(call_id)
            if call_id in self._decided:
                wake()
            else:
                self._waiting.setdefault(call_id, []).append(wake)
                self._turn_away()
            return again

    def _give_up(self, call_id: str) -> None:
        """Refuse a call that waits for one which does not come."""
        with self._lock:
            place = next(i for i, call in enumerate(self._queue) if call["call_id"] == call_id)
            absent = (call["call_id"] not in self._entered | self._parked for call in self._queue[:place] if call in self.pending)
            if call_id not in self._decided and any(absent):
                self._decide(self._queue[place], _NOBODY_CAME)
                self._pump()

    def _turn_away(self) -> None:
        """Wake those that wait for nothing but parked calls."""
        running = [one for one, word in self._decided.items() if word.allowed and one not in self._left and one not in self._parked]
        if self._parked and not running:
            waiting, self._waiting = self._waiting, {}
            self._turned_away.update(waiting)
            self._entered.difference_update(waiting)
            for wake in (wake for wakes in waiting.values() for wake in wakes):
                wake()

    def _word(self, call_id: str, arguments: Mapping[str, Any] | None, again: bool) -> Admission | None:
        """The decision; a call that is run a second time, or with other arguments, is judged anew."""
        with self._lock:
            word, call = self._decided.get(call_id), self._call(call_id)
            if word is None or call is None or not word.allowed:
                return word
            if again:
                return _SAME_ID
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
            self._decide(call, word)

    def _decide(self, call: dict[str, Any], word: Admission) -> None:
        name = call["call_id"]
        self._decided[name] = word
        if not word.allowed:
            self._gate.observe(call, Outcome.REFUSED)
        elif name in self._doomed:
            self._left[name] = self._doomed[name]
            self._gate.observe(call, self._doomed[name])
        for wake in self._waiting.pop(name, ()):
            wake()

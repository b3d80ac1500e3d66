"""A run of a policy in somebody else's loop: the permit of each turn, the calls let through in the model's order, and the ladder."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping
from typing import Any

from maymust.adapters.judge import Judge
from maymust.adapters.passage import Passage
from maymust.adapters.questions import Questions
from maymust.agent.blocking import blocking
from maymust.agent.call_record import PendingCall
from maymust.agent.ladder import RELAX, nudge_text
from maymust.core.gate import Gate
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.requirement import RunView
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import RunError

log: logging.Logger = logging.getLogger(__name__)

IDLE_TURNS = 8
"""So many turns running may bring nothing but refused calls before the run is ended as stalled."""


_REFUSALS = ("not now: ", "not yet: ", "not with these arguments: ", "there is no tool called ")


def is_refusal(text: str) -> bool:
    """True for what the model read about a call that was not admitted."""
    return text.startswith(_REFUSALS)


def is_nudge(text: str) -> bool:
    """True for what a model was told after a reply that could not be used."""
    return text.startswith(("A text is not enough here.", "Your reply was empty."))


class Turnstile(Passage):
    """One run of a policy, which belongs to that run and to no other.

    policy    the policy
    run       what requirements see of the run beside its history
    patient   False: a call that hangs on one still running is refused instead of waiting for it
    """

    def __init__(self, policy: Policy, *, run: RunView | None = None, patient: bool = True) -> None:
        self.policy = policy
        self.current: Permit | None = None
        self.bad_replies: int = 0
        self.idle: int = 0
        self.number = 0
        self._judge = Judge(policy)
        self._run = run
        super().__init__(Gate(self._judge, run=run), patient=patient)
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
    def memories(self) -> dict[str, dict[str, Any]]:
        """Per requirement its memory in this run."""
        return self._gate.memories

    def permit(self, present: Iterable[str] | None = None) -> Permit:
        """Begin a turn. Calls of the last one that never came are recorded as refused. Raises PermitError, and RunError when stalled.

        present   names of the tools that are there right now, in order
        """
        with self._lock:
            came, ran = self.end()
            if ran:
                self.bad_replies = self.idle = 0
            elif came:
                self.idle += 1
            if self.idle >= IDLE_TURNS:
                raise RunError(f"the run stalled: {self.idle} turns running brought only calls that were refused")
            self._judge.present = None if present is None else tuple(present)
            self._judge.relaxed = self.bad_replies >= RELAX
            self.current = self._gate.permit()
            return self.current

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

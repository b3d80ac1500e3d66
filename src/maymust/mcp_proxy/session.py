"""The policy in one client's session: the pass of the moment, and a word on each call in the order in which they come.

Calls that overlap are one turn, judged by the pass that was in force when the first of them came, as if they ran one after another.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from maymust.adapters.judge import Judge
from maymust.adapters.limits import shown
from maymust.adapters.passage import Passage
from maymust.adapters.questions import Questions
from maymust.agent.call_record import PendingCall
from maymust.core.gate import Admission, Gate
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.refusal import refusal
from maymust.core.requirement import BoundRequirement
from maymust.core.step import Outcome
from maymust.core.tool_spec import RESERVED_NAMES
from maymust.errors import MaymustError

log: logging.Logger = logging.getLogger(__name__)


class _ClosedByFaults(Gate):
    """A gate at which a rule that cannot be asked closes what it is asked about."""

    def admit(self, call: Any) -> Admission:
        try:
            return super().admit(call)
        except MaymustError as fault:
            log.error("a rule failed: %s", fault)
            return Admission(False, f"not now: {fault}")


class Session:
    """One run of the policy, for as long as the client is connected."""

    def __init__(self, policy: Policy) -> None:
        self._policy = policy
        self._judge = Judge(policy)
        self._gate = _ClosedByFaults(self._judge)
        self._passage = Passage(self._gate)
        self._questions = Questions(policy)
        self._keeps_outputs = any(_reads_outputs(one) for one in policy.requirements if one.enabled)
        self._fault: MaymustError | None = None
        self.permit: Permit | None = None
        """The pass of this turn; None where the policy leaves no next step."""

    def begin(self, present: Sequence[str]) -> None:
        """Begin the next turn with these tools, unless calls of this one are still under way."""
        if self._passage.pending:
            return
        self._passage.end()
        self._judge.present = tuple(present)
        self.permit = self._fault = None
        try:
            self.permit = self._gate.permit()
        except MaymustError as fault:
            self._fault = fault
            log.error("the policy leaves no next step: %s", fault)

    async def admit(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> tuple[str | None, bool]:
        """The word on a call: why it may not run, or None; and whether somebody has to be asked first. Waits for calls it hangs on."""
        permit = self.permit
        if permit is None:
            return f"not now: {self._fault}", False
        if name in RESERVED_NAMES:
            return _plain(refusal(None, name, shown(permit))), False
        self._passage.add({"name": name, "arguments": dict(arguments), "call_id": call_id})
        word = await self._passage.aenter(call_id)
        if word is None or not word.allowed:
            return _plain((word.reason if word is not None else None) or f"not now: {name} was not let through"), False
        return None, word.ask

    async def question(self, call_id: str, name: str, arguments: Mapping[str, Any]) -> tuple[str | None, PendingCall | None]:
        """Put a call's questions to their handlers: why it may not run, or the question that is left for a person."""
        permit = self._judge.permit(self._gate.history, memories=self._gate.memories)
        call = {"name": name, "arguments": dict(arguments), "call_id": call_id}
        return await self._questions.ask(call, permit, self._gate.memories)

    def settle(self, call: PendingCall, answer: Any) -> str | None:
        """Keep what a person said. After a no, the text for the model."""
        return self._questions.settle(call, answer, self._gate.memories)

    def leave(self, call_id: str, outcome: Outcome, output: Any = None) -> None:
        """Say how a call came back. Only the first word on a call counts."""
        if self._passage.knows(call_id):
            # A connection may last for weeks, and results be large.
            self._passage.leave(call_id, outcome, output if self._keeps_outputs else None)

    def withdraw(self, call_id: str) -> None:
        """Say of a call that it will not run, whether there is a word on it yet or not."""
        self._passage.withdraw(call_id)


def _reads_outputs(requirement: BoundRequirement) -> bool:
    """Whether what calls returned may make a difference to it. Of what is unknown anything may be expected."""
    describe = getattr(requirement, "describe", None)
    said = describe() if callable(describe) else {}
    return said.get("kind") not in ("conditional", "ask_permission") or bool(said.get("custom_checks"))


def _plain(text: str) -> str:
    """A refusal without the final answer, which is no tool here."""
    return text.replace(", final_answer", "").replace("you may call: final_answer", "no tool may be called now")

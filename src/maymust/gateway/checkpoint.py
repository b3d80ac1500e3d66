"""One request of a client as a run that stops at the model call: its permit, what is refused, and how often the model is asked again."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from maymust.adapters.judge import Judge
from maymust.agent.ladder import RELAX, nudge_text
from maymust.core.gate import Gate
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.requirement import RunView
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER, RESERVED_NAMES
from maymust.errors import MaymustError, PermitError
from maymust.gateway.conversation import Asked, Call, Reply
from maymust.gateway.dialect import Answers
from maymust.gateway.rejected import Rejected, bad
from maymust.gateway.served import Served
from maymust.gateway.steps import Story

MOST_ASKS = 6
"""So many times at most the model is asked for one request of a client."""

Approve = Callable[[Mapping[str, Any], Permit, dict[str, dict[str, Any]]], Awaitable[str | None]]
"""Asks whoever has to agree to a call: None after a yes, the text for the model after a no."""


_UNREADABLE = "not with these arguments: they have to be one JSON object in which no key is there twice"


class _Gate(Gate):
    """A gate for a run that has begun elsewhere."""

    def __init__(self, judge: Judge, run: RunView, history: History, memories: dict[str, dict[str, Any]]) -> None:
        super().__init__(judge, run=run)
        self._settled = history
        self.memories = memories


@dataclass(frozen=True, slots=True)
class Verdict:
    """The word on a reply.

    legal    the client may have it, without the calls that are `refused`
    refused  per call that is not for the client, by its place, what the model would read
    answers  what the model is told when it is asked again
    """

    legal: bool
    refused: Mapping[int, str] = field(default_factory=dict)
    answers: Answers = field(default_factory=Answers)


class Checkpoint:
    """The judging of one request.

    permit      the pass of the coming ask
    replies     what was not taken so far, with what the model is told about it
    asks        how often the model was asked
    refusals    how many calls were refused
    text_only   the last ask: only a text can end this now, and it may

    Raises Rejected where the rules leave nothing to do.
    """

    def __init__(self, served: Served, asked: Asked, story: Story, approve: Approve, *, most: int = MOST_ASKS, now: float = 0.0) -> None:
        self.served = served
        self.replies: list[tuple[Reply, Answers]] = []
        self.asks: int = 0
        self.refusals: int = 0
        self.nudges: int = 0
        self.text_only: bool = False
        self._most = most
        self._approve = approve
        self._history = story.history
        self._judge = Judge(served.policy)
        self._judge.present, names = asked.derived(served, partial(_present, served, asked))
        metadata = {"model": asked.model, "gateway": True}
        self._run = RunView(tools=names, metadata=metadata, now=now, before=story.before, said=story.said)
        self._memories: dict[str, dict[str, Any]] = {}
        self._begin()

    def _begin(self) -> None:
        """Begin an ask: a fresh permit over the steps so far."""
        self._gate = _Gate(self._judge, self._run, self._history, self._memories)
        try:
            self.permit: Permit = self._gate.permit()
        except PermitError as error:
            raise Rejected(422, "no_lawful_step", str(error)) from error
        except MaymustError as error:
            raise Rejected(422, "policy_fault", str(error)) from error

    @property
    def may_stop(self) -> bool:
        """Whether a text may be the answer."""
        return self.permit.may_stop

    @property
    def unmet(self) -> tuple[str, ...]:
        """Names of the requirements whose obligations were given up, because the model did not play along."""
        return self.permit.relaxed if self._judge.relaxed else ()

    async def judge(self, reply: Reply) -> Verdict:
        """Judge a reply to the ask under way. Raises Rejected where a requirement is at fault."""
        if not reply.calls:
            return self._judge_text(reply)
        refused: dict[int, str] = {}
        # The answer is decided after its siblings, wherever the model wrote it.
        for call in sorted(reply.calls, key=lambda call: call.name == FINAL_ANSWER):
            try:
                why = await self._refusal(call)
            except MaymustError as error:
                raise Rejected(422, "policy_fault", str(error)) from error
            if why is not None:
                refused[call.place] = why
        self.refusals += len(refused)
        if len(refused) < len(reply.calls):
            return Verdict(True, refused)
        return Verdict(False, refused, Answers(tuple((call, refused[call.place]) for call in reply.calls)))

    async def _refusal(self, call: Call) -> str | None:
        wanted = {"name": call.name, "arguments": call.arguments, "call_id": call.call_id}
        word = self._gate.admit(wanted)
        if not word.allowed:
            return word.reason
        if call.arguments is None and call.name in self.served.known:
            # A client might read them in another way than rules, or the person who is asked.
            self._gate.observe(wanted, Outcome.REFUSED)
            return _UNREADABLE
        if not word.ask:
            return None
        why = await self._approve(wanted, self.permit, self._memories)
        if why is not None:
            self._gate.observe(wanted, Outcome.DENIED)
        return why

    def _judge_text(self, reply: Reply) -> Verdict:
        if reply.open or self.may_stop:
            return Verdict(True)
        text = nudge_text(self.permit, empty=not reply.text.strip())
        return Verdict(False, answers=Answers(nudge=text.replace(f", {FINAL_ANSWER}", "")))

    def again(self, reply: Reply, verdict: Verdict) -> None:
        """Prepare to ask again after a reply that was not legal. Raises Rejected when the ladder is used up."""
        self.replies.append((reply, verdict.answers))
        if verdict.answers.nudge:
            self.nudges += 1
        if self.nudges > RELAX or self.asks >= self._most:
            raise Rejected(
                422, "stalled", f"the model was asked {self.asks} times, and kept doing what the rules do not allow: {_last(verdict)}"
            )
        for call, _ in verdict.answers.calls:
            self._history = self._history.add(call.name, outcome=Outcome.REFUSED, arguments=call.arguments, call_id=call.call_id)
        self._judge.relaxed = self.nudges >= RELAX
        self._begin()
        self.text_only = self.asks == self._most - 1 and self.may_stop


def _last(verdict: Verdict) -> str:
    return verdict.answers.nudge or next(iter(verdict.refused.values()), "")


def _present(served: Served, asked: Asked) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The tools that take part in the rules, and the same without `final_answer`.

    Raises Rejected for names that cannot be told apart or are reserved.
    """
    names: dict[str, None] = {}
    for tool in asked.tools:
        if tool.hosted and tool.name not in served.known:
            continue
        if tool.name in RESERVED_NAMES and tool.name != FINAL_ANSWER:
            raise bad(f"a tool may not be called {tool.name}: the name is reserved")
        if tool.name in names:
            raise bad(f"two tools are called {tool.name}")
        if tool.name in served.known or tool.name == FINAL_ANSWER or served.terms.other_tools == "allow":
            names[served.known.get(tool.name, tool.name)] = None
    return tuple(names), tuple(name for name in names if name != FINAL_ANSWER)

"""What a run came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Generic

from typing_extensions import TypeVar

from maymust.agent.call_record import PendingCall
from maymust.agent.counters import Counters
from maymust.agent.final_answer import FinalAnswer
from maymust.agent.state import RunState
from maymust.agent.turn import StopReason, Turn
from maymust.core.permit import Permit
from maymust.core.step import Step
from maymust.errors import NoAnswerError
from maymust.models.chat_model import Usage
from maymust.models.message import Message

T = TypeVar("T", default=str)


@dataclass(frozen=True, repr=False)
class RunResult(Generic[T]):
    """The result of a run, also of one that ended without an answer: everything that was done is kept.

    stop_reason  "final_answer", "text_answer", "paused", "stalled", "budget" or "aborted"
    pending      the calls that wait for a person; give their decisions to `Agent.resume`
    state        the state, to continue, resume, or store
    """

    state: RunState
    stop_reason: StopReason
    pending: tuple[PendingCall, ...] = ()
    _final: FinalAnswer[T] | None = field(default=None, repr=False)

    @property
    def answer(self) -> str | None:
        """The answer as text; None when there is none."""
        return self.state.answer

    @cached_property
    def output(self) -> T:
        """The answer as the agent's `output_type`. Raises NoAnswerError when there is none."""
        if self.state.answer is None or self._final is None:
            error = NoAnswerError(
                f"the run ended without an answer (stop reason {self.stop_reason!r}); look at result.steps and result.unmet"
            )
            error.state = self.state
            raise error
        return self._final.load(self.state.output)

    @property
    def steps(self) -> tuple[Step, ...]:
        """Every call and its outcome, in the model's order."""
        return self.state.steps

    @property
    def turns(self) -> tuple[Turn, ...]:
        """Every model call, with its permit."""
        return tuple(self.state.turns)

    @property
    def permits(self) -> tuple[Permit, ...]:
        """The permit of each turn."""
        return self.state.permits

    @property
    def messages(self) -> tuple[Message, ...]:
        """The conversation, without the system prompt."""
        return tuple(self.state.messages)

    @property
    def usage(self) -> Usage:
        """Tokens and model calls."""
        return self.state.usage

    @property
    def counters(self) -> Counters:
        """How often the model did not play along."""
        return self.state.counters

    @property
    def children(self) -> Mapping[str, RunState]:
        """The states of child agents, by the id of the call they worked on."""
        return {**dict(self.state.past_children), **self.state.children}

    @property
    def unmet(self) -> tuple[str, ...]:
        """Names of the requirements whose obligations were owed and not met."""
        return self.state.unmet

    def __repr__(self) -> str:
        return f"<RunResult {self.stop_reason}: {self.state.answer!r:.80}, {len(self.state.turns)} turns, {len(self.steps)} steps>"

    def __str__(self) -> str:
        return self.state.answer if self.state.answer is not None else ""

"""What can be observed of a run. `Run.on` and iterating a run give these, in the order in which they happen."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maymust.agent.call_record import PendingCall
from maymust.core.permit import Permit
from maymust.core.step import Outcome
from maymust.models.chat_model import ModelReply, ModelRequest


@dataclass(slots=True)
class RunEvent:
    """Base of all events. `run_id` says which run."""

    run_id: str


@dataclass(slots=True)
class RunStarted(RunEvent):
    """The run begins, or goes on after a pause (`resumed`). `agent` is the name of its agent, `model` that of its model."""

    resumed: bool = False
    agent: str | None = None
    model: str = ""


@dataclass(slots=True)
class TurnStarted(RunEvent):
    """A turn with its permit.

    relaxed  obligations are off in it (the ladder)
    grace    it is made beyond the budget, to answer
    measure  what the loop guard does about it, in words
    seconds  what it took the rules to decide it; None where it was decided before the run began, or before this process
    """

    number: int
    permit: Permit
    relaxed: bool = False
    grace: bool = False
    measure: str | None = None
    seconds: float | None = None


@dataclass(slots=True)
class ModelCallStarted(RunEvent):
    """The model is about to be asked.

    A blocking listener may set `output` (a `ModelReply` or a text), which is taken for the reply, or call `refuse(text)`, which ends
    the run; the model is not asked.
    """

    number: int
    request: ModelRequest
    output: ModelReply | str | None = None
    refusal: str | None = None

    def refuse(self, text: str) -> None:
        """Do not ask the model: the run breaks off with a `RunError` that says why."""
        self.refusal = _reason(text)


@dataclass(slots=True)
class ModelCallFinished(RunEvent):
    """The model has replied."""

    number: int
    reply: ModelReply


@dataclass(slots=True)
class ModelRetried(RunEvent):
    """A model call succeeded after so many failed attempts: rate limits, faults of the server, lost connections."""

    number: int
    retries: int


@dataclass(slots=True)
class AbilityLost(RunEvent):
    """The provider refused something it was taken to be able to do; the run goes on without it. `why` is what it said."""

    number: int
    ability: str
    why: str


@dataclass(slots=True)
class ConversationCompacted(RunEvent):
    """The conversation was made shorter for the model: from about `before` tokens to about `after`."""

    before: int
    after: int


@dataclass(slots=True)
class ModelCallFailed(RunEvent):
    """There is no reply, after all attempts; the run breaks off with what it has. `kind` as in `ModelFailure`."""

    number: int
    kind: str
    attempts: int
    error: str


@dataclass(slots=True)
class TextDelta(RunEvent):
    """A piece of text as it comes."""

    text: str


@dataclass(slots=True)
class ArgumentsDelta(RunEvent):
    """A piece of a call's arguments as it comes."""

    call_id: str
    tool: str
    arguments: str


@dataclass(slots=True)
class AnswerDelta(RunEvent):
    """A piece of the final answer as it comes. Tentative: it is committed or withdrawn when the turn ends."""

    text: str


@dataclass(slots=True)
class AnswerCommitted(RunEvent):
    """The answer that was streamed is the answer."""

    answer: str


@dataclass(slots=True)
class AnswerWithdrawn(RunEvent):
    """The answer that was streamed was not accepted."""

    reason: str


@dataclass(slots=True)
class CallAdmitted(RunEvent):
    """A call may run."""

    call_id: str
    tool: str


@dataclass(slots=True)
class CallRefused(RunEvent):
    """A call may not run; `reason` is what the model reads."""

    call_id: str
    tool: str
    reason: str


@dataclass(slots=True)
class CallStarted(RunEvent):
    """A body is about to run.

    A blocking listener may set `output` (the call is answered with it) or call `refuse(text)`.
    """

    call_id: str
    tool: str
    arguments: Mapping[str, Any]
    output: Any = None
    refusal: str | None = None

    def refuse(self, text: str) -> None:
        """Do not run the body; `text` is what the model reads."""
        self.refusal = _reason(text)


@dataclass(slots=True)
class CallFinished(RunEvent):
    """A call has its outcome and its result."""

    call_id: str
    tool: str
    outcome: Outcome
    text: str
    arguments: Mapping[str, Any] | None = None
    output: Any = None


@dataclass(slots=True)
class QuestionAsked(RunEvent):
    """A person is asked about a call."""

    call: PendingCall


@dataclass(slots=True)
class QuestionAnswered(RunEvent):
    """A person has answered."""

    call: PendingCall
    allow: bool
    reason: str | None = None
    by: str | None = None


@dataclass(slots=True)
class LadderRung(RunEvent):
    """The model gave no usable reply. rung: 1 nudged, 2 asked again, 3 obligations relaxed; `text` is what it hears."""

    rung: int
    text: str = ""


@dataclass(slots=True)
class TextCoerced(RunEvent):
    """A text was taken for the answer where a call of `final_answer` was expected."""

    text: str


@dataclass(slots=True)
class GuardHit(RunEvent):
    """The loop guard saw a loop."""

    tool: str
    hits: int
    reason: str


@dataclass(slots=True)
class ForceLapsed(RunEvent):
    """A force did not hold because a person or the loop guard closed its tool."""

    tool: str
    requirement: str


@dataclass(slots=True)
class ToolsChanged(RunEvent):
    """The tools of the run, from the next turn on."""

    tools: tuple[str, ...]


@dataclass(slots=True)
class MessageReceived(RunEvent):
    """Somebody said something to the running run."""

    text: str


@dataclass(slots=True)
class RunPaused(RunEvent):
    """The run waits for a person."""

    pending: tuple[PendingCall, ...] = field(default_factory=tuple)


@dataclass(slots=True)
class RunFinished(RunEvent):
    """The run has ended. stop_reason is "error" when it broke off; `error` says how."""

    stop_reason: str
    answer: str | None = None
    error: str | None = None


def _reason(text: str) -> str:
    # None would stand for no refusal, and what was refused would go on.
    if not isinstance(text, str):
        raise TypeError(f"event.refuse() takes the text of the refusal, not {text!r}")
    return text


BLOCKING = (CallStarted, ModelCallStarted)
"""The events a blocking listener may answer."""

"""The loop's actions, which drivers perform, and the events that come back. Plain data, both.

Nobody changes them; they are not frozen because several are made in every step, and a frozen dataclass pays for each field.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maymust.agent.call_record import CallRecord, PendingCall
from maymust.agent.compaction import Compacted
from maymust.agent.state import RunState
from maymust.agent.turn import StopReason
from maymust.core.rule import Rule
from maymust.core.step import Outcome
from maymust.models.chat_model import ModelReply, ModelRequest, Usage
from maymust.models.message import Message
from maymust.tools.function_tool import Tool


# --- actions ---
@dataclass(slots=True)
class EvaluateRules:
    """Ask these custom requirements what they say, and report `RulesGiven`."""

    requirements: tuple[str, ...]


@dataclass(slots=True)
class CallModel:
    """Ask the model, and report `ModelReplied`."""

    request: ModelRequest


@dataclass(slots=True)
class Compact:
    """These messages are the ones to shorten before the next model call; report `MessagesCompacted`, also when nothing was gained."""

    messages: tuple[Message, ...]


@dataclass(slots=True)
class RunTools:
    """These calls ought to be under way now; report `ToolStarted`, `CallPending` and `ToolFinished` for each."""

    calls: tuple[CallRecord, ...]


@dataclass(slots=True)
class Ask:
    """Nothing can go on before a person has decided about one of these calls; report `Decided`."""

    calls: tuple[PendingCall, ...]


@dataclass(slots=True)
class Finish:
    """The run has ended."""

    stop_reason: StopReason


Action = EvaluateRules | Compact | CallModel | RunTools | Ask | Finish


# --- events ---
@dataclass(slots=True)
class RulesGiven:
    """What the custom requirements said. `memories` are their memories afterwards, `now` the clock they saw."""

    rules: Mapping[str, tuple[Rule, ...]]
    memories: Mapping[str, dict[str, Any]] = field(default_factory=dict)
    now: float | None = None


@dataclass(slots=True)
class ModelReplied:
    """The model's reply. `seconds` is the running time of the run so far."""

    reply: ModelReply
    seconds: float = 0.0


@dataclass(slots=True)
class ModelFailed:
    """The model gave no reply. `usage` is what the attempts have used, `lost` the abilities that were refused on the way."""

    usage: Usage
    lost: tuple[str, ...] = ()


@dataclass(slots=True)
class MessagesCompacted:
    """What a compaction came to; None for nothing."""

    made: Compacted | None


@dataclass(slots=True)
class ToolStarted:
    """The body of this call is about to run with these arguments (JSON)."""

    call_id: str
    arguments: dict[str, Any]


@dataclass(slots=True)
class ToolFinished:
    """A call has its outcome.

    arguments       as JSON, as they were judged last; None when there was no JSON object
    output, text    the return value as JSON, and what the model reads
    added, removed  tools that the call added and names that it removed; they count when the outcome is ok
    """

    call_id: str
    outcome: Outcome
    text: str
    output: Any = None
    arguments: dict[str, Any] | None = None
    added: tuple[Tool, ...] = ()
    removed: tuple[str, ...] = ()
    seconds: float = 0.0


@dataclass(slots=True)
class CallPending:
    """A person has to be asked about this call by these requirements; none are named when a child agent at work on it has the question."""

    call_id: str
    arguments: dict[str, Any]
    questions: tuple[str, ...]
    reasons: tuple[str, ...] = ()


@dataclass(slots=True)
class Interrupted:
    """The process ended while this call ran, and nobody knows whether it took effect: a person is asked what to do, for this reason."""

    call_id: str
    reason: str


@dataclass(slots=True)
class Decided:
    """A question about a call is answered.

    `requirement` is None when a person decided about everything the call is pending for.
    `arguments` are those the answer holds for; None stands for the recorded ones.
    """

    call_id: str
    allow: bool
    reason: str | None = None
    by: str | None = None
    remember: bool = False
    requirement: str | None = None
    arguments: dict[str, Any] | None = None


@dataclass(slots=True)
class ToolsChanged:
    """Tools came or went by themselves (a server's list changed); seen from the next turn on."""

    added: tuple[Tool, ...] = ()
    removed: tuple[str, ...] = ()


@dataclass(slots=True)
class MessageSent:
    """Somebody said something to a run; the model reads it in the next turn.

    by      who, where that is known
    number  its place among the messages sent to a stored run; one that the run has already changes nothing. None for `Run.send`
    """

    message: Message
    by: str | None = None
    number: int | None = None


@dataclass(slots=True)
class Cancelled:
    """The run is over before its end. `error` is None for a cancellation, else what broke it."""

    error: str | None = None


@dataclass(slots=True)
class Resumed:
    """A run that had stopped goes on, perhaps with another budget."""

    budget: Mapping[str, Any] | None = None


@dataclass(slots=True)
class ChildStarted:
    """A child agent begins to work on this call; `state` is its first state."""

    call_id: str
    state: RunState


@dataclass(slots=True)
class ChildEvent:
    """Something happened in the child agent that works on this call. `seconds` is the running time of the parent so far."""

    call_id: str
    event: Event
    seconds: float = 0.0


Event = (
    RulesGiven
    | ModelReplied
    | ModelFailed
    | MessagesCompacted
    | ToolStarted
    | ToolFinished
    | CallPending
    | Interrupted
    | Decided
    | ToolsChanged
    | MessageSent
    | Cancelled
    | Resumed
    | ChildStarted
    | ChildEvent
)

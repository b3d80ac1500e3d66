"""`RunState`: everything a run knows, as a value that goes to JSON and back."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, get_args

from maymust.agent.budget import Budget
from maymust.agent.call_ids import CallIds
from maymust.agent.call_record import CallRecord
from maymust.agent.counters import Counters
from maymust.agent.loop_guard import GuardMemory, Measure
from maymust.agent.present import Present
from maymust.agent.tool_choice import ToolChoice
from maymust.agent.turn import GivenRules, Phase, StopReason, Turn, TurnPlan
from maymust.core.history import History
from maymust.core.log import Log
from maymust.core.permit import Permit
from maymust.core.rule import Rule
from maymust.core.step import Step
from maymust.core.verdict import Extra
from maymust.errors import RunError
from maymust.models.chat_model import ModelRequest, Offer, ToolDefinition, Usage
from maymust.models.message import Message
from maymust.tools.function_tool import Tool
from maymust.tools.output import json_text

if TYPE_CHECKING:
    from maymust.agent.plan import LoopPlan

STATE_VERSION = 1


@dataclass(eq=False, repr=False)
class RunState:
    """The state of a run between two events. A value: `apply` makes the next one, nobody changes this one.

    Public: `run_id`, `steps`, `turns`, `permits`, `messages`, `counters`, `usage`, `stop_reason`, `answer`, `to_json`.
    The other fields belong to the reducer. What is not data (the plan, the tools themselves) is given again by `Agent.resume`.
    """

    run_id: str
    system: str
    budget: Budget
    messages: Log[Message]
    history: History
    agent: str | None = None
    policy_hash: str = ""
    policy: dict[str, Any] = field(default_factory=dict)
    phase: Phase = "plan"
    carried: int = 0
    carried_invocations: int = 0
    call_ids: CallIds = field(default_factory=CallIds)
    turns: Log[Turn] = field(default_factory=lambda: Log(()))
    calls: tuple[CallRecord, ...] = ()
    recorded: int = 0
    choice: ToolChoice | None = None
    released: bool = False
    memories: dict[str, dict[str, Any]] = field(default_factory=dict)
    given: dict[str, GivenRules] = field(default_factory=dict)
    # What custom requirements had said when a call of this batch was admitted, by call id.
    call_given: dict[str, dict[str, GivenRules]] = field(default_factory=dict)
    now: float | None = None
    started: bool = False
    metadata: dict[str, Any] = field(default_factory=dict)
    counters: Counters = field(default_factory=Counters)
    usage: Usage = field(default_factory=Usage)
    seconds: float = 0.0
    bad_replies: int = 0
    failing_turns: int = 0
    guard: GuardMemory = field(default_factory=GuardMemory)
    measure: Measure | None = None
    inbox: tuple[Message, ...] = ()
    exposure: tuple[tuple[str, tuple[str, ...], tuple[str, ...]], ...] = ()
    last_status: str = ""
    lost: tuple[str, ...] = ()
    compacted: int = 0
    compacted_at: int = -1
    compacted_size: int = 0
    offers: tuple[Offer, ...] = ()
    stop_reason: StopReason | None = None
    answer: str | None = None
    output: Any = None
    unmet: tuple[str, ...] = ()
    error: str | None = None
    tool_names: tuple[str, ...] = ()
    # Child agents: those at work on calls of this turn, and those that are done, by call id. `own_budget` is set in a child.
    children: dict[str, RunState] = field(default_factory=dict)
    past_children: Log[tuple[str, RunState]] = field(default_factory=lambda: Log(()))
    child_turns: int = 0
    own_budget: Budget | None = None
    before: tuple[Step, ...] = ()
    said: tuple[str, ...] = ()
    # The number of the last message that was sent to the run in its store and has come to it.
    received: int = 0
    # Not data: given by the agent, never stored.
    plan: LoopPlan | None = field(default=None, repr=False)
    deps: Any = field(default=None, repr=False)
    tools: tuple[Tool, ...] = field(default=(), repr=False)
    arriving: Mapping[str, Tool] = field(default_factory=dict, repr=False)
    coming: TurnPlan | None = field(default=None, repr=False)
    failure: Exception | None = field(default=None, repr=False)
    standing: tuple[Extra, ...] | None = field(default=None, repr=False)
    menu: tuple[tuple[Tool, ...], tuple[str, ...], tuple[ToolDefinition, ...]] | None = field(default=None, repr=False)
    opening: Message | None = field(default=None, repr=False)
    request: ModelRequest | None = field(default=None, repr=False)
    call_permits: dict[str, Permit] = field(default_factory=dict, repr=False)
    present: Present = field(default=Present(()), repr=False)
    stale: tuple[str, ...] = field(default=(), repr=False)
    stale_history: History | None = field(default=None, repr=False)
    broken: str | None = field(default=None, repr=False)

    def __repr__(self) -> str:
        return f"<RunState {self.run_id}: {self.phase}, {len(self.turns)} turns, {len(self.history) - self.carried} steps>"

    def fork(self) -> RunState:
        """A shallow copy for the reducer to fill; logs and histories in it are immutable values."""
        copy = RunState.__new__(RunState)
        copy.__dict__ = self.__dict__.copy()
        return copy

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of this run in the model's order (those of a conversation carried over are left out)."""
        return self.history[self.carried :]

    @property
    def invocations(self) -> int:
        """Calls of this run that ran."""
        return self.history.total(failures=True) - self.carried_invocations

    @property
    def turns_used(self) -> int:
        """Model calls of this run and its child agents that were answered."""
        return len(self.turns) + self.child_turns

    @property
    def permits(self) -> tuple[Permit, ...]:
        """The permit of each turn."""
        return tuple(turn.permit for turn in self.turns)

    def to_json(self) -> str:
        """The state as JSON text. `deps` and what they hold are never in it."""
        return json_text(self.to_dict())

    def to_dict(self) -> dict[str, Any]:
        """The state as JSON data."""
        return {
            **self.head(),
            "messages": [message.to_dict() for message in self.messages],
            "history": [step.to_dict() for step in self.history],
            "turns": [turn.to_dict() for turn in self.turns],
            "children": {call_id: child.to_dict() for call_id, child in self.children.items()},
            "past_children": [[call_id, child.to_dict()] for call_id, child in self.past_children],
        }

    def head(self) -> dict[str, Any]:
        """The part of the JSON data that does not grow with the run: without its logs and child agents."""
        data: dict[str, Any] = {name: getattr(self, name) for name in _PLAIN}
        data.update(
            version=STATE_VERSION,
            budget=self.budget.to_dict(),
            offers=[offer.to_dict() for offer in self.offers],
            calls=[call.to_dict() for call in self.calls],
            choice=self.choice.to_dict() if self.choice else None,
            counters=self.counters.to_dict(),
            usage=self.usage.to_dict(),
            guard={"recent": list(self.guard.recent), "hits": self.guard.hits},
            measure=None if self.measure is None else asdict(self.measure),
            inbox=[message.to_dict() for message in self.inbox],
            given=_given_data(self.given),
            call_given={call.call_id: _given_data(self.call_given[call.call_id]) for call in self.calls if call.call_id in self.call_given},
            own_budget=None if self.own_budget is None else self.own_budget.to_dict(),
            before=[step.to_dict() for step in self.before],
            said=list(self.said),
            received=self.received,
        )
        return data

    @classmethod
    def from_json(cls, text: str | bytes) -> RunState:
        """The state whose `to_json` gave `text`. Raises RunError for what is no state, or one of a newer version."""
        try:
            data = json.loads(text)
            data["version"]
        except (ValueError, TypeError, KeyError) as fault:
            raise RunError(f"this is not the JSON of a run state: {fault}; give the text that RunState.to_json() returned") from fault
        return cls.from_dict(data)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> RunState:
        """The state whose `to_dict` gave `data`. Raises as `from_json` does."""
        version = data.get("version")
        if version != STATE_VERSION:
            raise RunError(
                f"this run state has version {version}, and this maymust reads version {STATE_VERSION}; "
                "resume it with the maymust that wrote it or a newer one"
            )
        try:
            return _from_data(cls, dict(data))
        except (KeyError, TypeError, ValueError, AttributeError) as fault:
            raise RunError(f"this run state is damaged: {type(fault).__name__} {fault}") from fault


# fmt: off
_PLAIN = [
    "run_id", "system", "agent", "policy_hash", "policy", "phase", "carried", "carried_invocations", "recorded", "released",
    "memories", "now", "started", "metadata", "seconds", "bad_replies", "failing_turns", "exposure", "last_status", "stop_reason", "lost",
    "compacted", "compacted_at", "compacted_size",
    "answer", "output", "unmet", "error", "tool_names", "child_turns",
]
# fmt: on


def _from_data(cls: type[RunState], data: dict[str, Any]) -> RunState:
    if data["phase"] not in get_args(Phase) or (data["calls"] and not data["turns"]):
        raise ValueError(f"phase {data['phase']!r} with {len(data['turns'])} turns and {len(data['calls'])} calls")
    messages = Log(Message.from_dict(message) for message in data["messages"])
    history = History(Step.from_dict(step) for step in data["history"])
    turns = [Turn.from_dict(turn, history) for turn in data["turns"]]
    choice = data["choice"]
    plain = {name: data[name] for name in _PLAIN}
    plain.update(
        unmet=tuple(data["unmet"]),
        lost=tuple(data["lost"]),
        offers=tuple(Offer.from_dict(offer) for offer in data["offers"]),
        tool_names=tuple(data["tool_names"]),
        exposure=tuple((call_id, tuple(added), tuple(removed)) for call_id, added, removed in data["exposure"]),
    )
    return cls(
        **plain,
        budget=Budget.from_dict(data["budget"]),
        messages=messages,
        history=history,
        call_ids=CallIds(call.call_id for message in messages for call in message.calls),
        turns=Log(turns),
        calls=tuple(CallRecord.from_dict(call) for call in data["calls"]),
        choice=None
        if choice is None
        else ToolChoice(choice["mode"], choice.get("required_function_name"), _names(choice.get("allowed_tools"))),
        counters=Counters.from_dict(data["counters"]),
        usage=Usage(**data["usage"]),
        guard=GuardMemory(tuple((place, raw) for place, raw in data["guard"]["recent"]), data["guard"]["hits"]),
        measure=None if data["measure"] is None else Measure(**data["measure"]),
        inbox=tuple(Message.from_dict(message) for message in data["inbox"]),
        given=_given(data["given"]),
        call_given={call_id: _given(given) for call_id, given in data.get("call_given", {}).items()},
        children={call_id: _from_data(cls, child) for call_id, child in data["children"].items()},
        past_children=Log([(call_id, _from_data(cls, child)) for call_id, child in data["past_children"]]),
        own_budget=None if data["own_budget"] is None else Budget.from_dict(data["own_budget"]),
        before=tuple(Step.from_dict(step) for step in data.get("before", ())),
        said=tuple(data.get("said", ())),
        received=data.get("received", 0),
    )


def _given_data(given: Mapping[str, GivenRules]) -> dict[str, Any]:
    return {name: {"rules": [rule.to_dict() for rule in said.rules], "at": said.at} for name, said in given.items()}


def _given(data: Mapping[str, Any]) -> dict[str, GivenRules]:
    return {name: GivenRules(tuple(Rule.from_dict(rule) for rule in said["rules"]), said["at"]) for name, said in data.items()}


def _names(names: list[str] | None) -> tuple[str, ...] | None:
    return None if names is None else tuple(names)

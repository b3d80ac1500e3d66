"""What a run was, for looking back: its turns, each with its permit, and its steps."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from maymust.agent import events
from maymust.agent.state import RunState
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.requirement import RunView
from maymust.core.step import Step
from maymust.models.chat_model import ModelReply, ToolDefinition
from maymust.trace.reader import Trace
from maymust.trace.records import ChildRun, StepsTaken, TraceStarted, ViewTaken


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """A turn: the permit that shaped it, the steps before it, and what rules saw beside them.

    first_step  how many steps of this run came before it
    """

    number: int
    permit: Permit
    history: History
    first_step: int
    relaxed: bool = False
    view: RunView = field(default_factory=RunView)
    memories: Mapping[str, dict[str, Any]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Recording:
    """A run as it was recorded, by a trace or a state.

    policy    what `Policy.describe()` said; None when it is not known
    history   all steps, the first `carried` of which are an earlier run's
    children  the runs of child agents, by call id
    exact     False when what rules remembered is known of the end only
    """

    run_id: str
    policy: Mapping[str, Any] | None
    turns: tuple[RecordedTurn, ...]
    history: History
    carried: int = 0
    mode: str | None = None
    tools: tuple[ToolDefinition, ...] = ()
    stop_reason: str | None = None
    answer: str | None = None
    children: tuple[tuple[str, RunState], ...] = ()
    exact: bool = True
    torn: bool = False

    @property
    def steps(self) -> tuple[Step, ...]:
        """The steps of this run."""
        return self.history[self.carried :]

    @property
    def memories(self) -> Mapping[str, dict[str, Any]]:
        """What rules remembered in the last turn."""
        return self.turns[-1].memories if self.turns else {}

    def steps_of(self, place: int) -> tuple[Step, ...]:
        """The steps of a turn, by its place in `turns`."""
        end = len(self.turns[place + 1].history) if place + 1 < len(self.turns) else len(self.history)
        return self.history[len(self.turns[place].history) : end]


def recording_of(source: Trace | RunState) -> Recording:
    """The run that a trace or a state recorded. Raises RunError for a trace with the damaged state of a child."""
    return _of_state(source) if isinstance(source, RunState) else _Reading(source).recording()


def _of_state(state: RunState) -> Recording:
    view = RunView(metadata=state.metadata, now=state.now, before=state.before, said=state.said)
    turns = tuple(
        RecordedTurn(
            turn.number,
            turn.permit,
            state.history.at(state.carried + turn.first_step),
            turn.first_step,
            turn.relaxed,
            view,
            state.memories,
        )
        for turn in state.turns
    )
    return Recording(
        state.run_id,
        state.policy or None,
        turns,
        state.history,
        state.carried,
        None if state.choice is None else state.choice.mode,
        (),
        state.stop_reason,
        state.answer,
        tuple(state.past_children),
        exact=not state.memories and state.now is None,
    )


class _Reading:
    """Goes through a trace, and puts together what its records tell."""

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.history = History()
        self.open: dict[str, Step] = {}
        self.reply: ModelReply | None = None
        self.view, self.memories = RunView(), {}  # type: tuple[RunView, Mapping[str, dict[str, Any]]]
        self.turns: list[RecordedTurn] = []
        self.tools: dict[str, ToolDefinition] = {}
        self.children: list[tuple[str, RunState]] = []
        self.end: events.RunFinished | None = None

    def recording(self) -> Recording:
        for event in self.trace.events:
            self._take(event)
        self._settle()
        start, end = self.trace.start, self.end
        return Recording(
            start.run_id,
            start.policy,
            tuple(self.turns),
            self.history,
            start.carried,
            start.mode,
            tuple(self.tools.values()),
            None if end is None else end.stop_reason,
            None if end is None else end.answer,
            tuple(self.children),
            torn=self.trace.torn,
        )

    def _take(self, event: events.RunEvent) -> None:
        match event:
            case TraceStarted():
                self.history = History(event.steps)
                self.open.clear()
                self.tools.update({tool.name: tool for tool in event.tools})
            case ViewTaken():
                self.view = RunView(metadata=event.metadata, now=event.now, before=event.before, said=event.said)
                self.memories = event.memories
            case events.ModelCallFinished():
                self.reply = event.reply
            case events.CallFinished():
                self.open[event.call_id] = Step(event.tool, event.outcome, event.arguments, event.output, event.call_id, event.text)
            case StepsTaken():
                for step in event.steps:
                    self.history = self.history.add(self._whole(step))
                self.open.clear()
            case ChildRun():
                self.children.append((event.call_id, RunState.from_dict(event.state)))
            case events.TurnStarted():
                self._begin_turn(event)
            case events.RunFinished():
                self.end = event

    def _begin_turn(self, event: events.TurnStarted) -> None:
        self._settle()
        self.reply = None
        first = len(self.history) - self.trace.start.carried
        permit = event.permit
        permit.history = self.history  # nobody else has this permit: it was just read
        self.turns.append(RecordedTurn(event.number, permit, self.history, first, event.relaxed, self.view, self.memories))

    def _whole(self, step: Step) -> Step:
        known = None if step.call_id is None else self.open.get(step.call_id)
        if known is None:
            return step
        return Step(step.tool, step.outcome, known.arguments, known.output, step.call_id, known.text, step.untrusted)

    def _settle(self) -> None:
        """Take the calls for steps of which no record tells the order: in that of the reply, else as they finished."""
        calls = [call.call_id for call in self.reply.calls] if self.reply is not None else []
        if calls:
            for call_id in sorted(self.open, key=lambda one: calls.index(one) if one in calls else len(calls)):
                self.history = self.history.add(self.open[call_id])
        self.open.clear()

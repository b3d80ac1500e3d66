"""Plays one scenario and writes down what can be seen of it from outside: the record that the checker walks."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field
from random import Random
from typing import Any

from maymust import Agent, Decision, MaymustError, PolicyError, Run, RunResult, RunState
from maymust.events import CallFinished, RunEvent
from tests.attack.adversary import Adversary, ChildAdversary, Reply
from tests.attack.build import build_agent
from tests.attack.world import World

PERMIT_FIELDS = ("tools", "allowed", "denied", "hidden", "withheld", "asks", "forced", "tool_choice", "may_stop")
MOST_PAUSES = 40


@dataclass
class Record:
    """What was seen of one run. Plain data.

    end      the stop reason, or the name of the error class that ended the run
    pauses   for each pause: the pending calls, the bodies started so far, and the decisions that followed
    children the records of child agents, by the call they worked on
    """

    run_id: str = ""
    replies: list[Reply] = field(default_factory=list)
    permits: list[dict[str, Any]] = field(default_factory=list)
    steps: list[dict[str, Any]] = field(default_factory=list)
    messages: list[dict[str, Any]] = field(default_factory=list)
    bodies: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    around: dict[str, dict[str, Any]] = field(default_factory=dict)
    pauses: list[dict[str, Any]] = field(default_factory=list)
    counters: dict[str, int] = field(default_factory=dict)
    unmet: tuple[str, ...] = ()
    answer: str | None = None
    end: str = ""
    said: str = ""
    tasks_left: int = 0
    children: dict[str, Record] = field(default_factory=dict)


class Unbuilt(Exception):
    """The scenario's policy is refused at construction."""


async def play(scenario: dict[str, Any], rng: Random, over: Callable[[Adversary], Any] | None = None) -> Record:
    """Run the scenario to its end, deciding about pending calls at random. Raises Unbuilt when the policy is refused.

    `over` puts something between the adversary and the agent: an adapter, say.
    """
    model = Adversary(scenario, rng)
    world = World(scenario, rng, model.replies)
    record = Record(replies=model.replies, bodies=world.bodies, questions=world.questions, around=world.around)
    child_model = ChildAdversary(scenario["child"], rng) if scenario["child"] is not None else None
    try:
        agent = build_agent(scenario, world, model if over is None else over(model), child_model)
    except PolicyError as refused:
        raise Unbuilt(str(refused)) from refused
    arriving = [world.tool(given["name"]) for given in scenario["later"] if not given["loadable"]]
    before = len(asyncio.all_tasks())
    state: Any = None
    try:
        result = await _first_part(scenario, agent, world, arriving)
        while result.stop_reason == "paused" and len(record.pauses) < MOST_PAUSES:
            decisions = _decide(rng, world, result.pending)
            record.pauses.append(
                {
                    "pending": [(call.call_id, call.tool, dict(call.arguments)) for call in result.pending],
                    "bodies": len(world.bodies),
                    "decisions": {call_id: decision.allow for call_id, decision in decisions.items()},
                }
            )
            result = await agent.resume(RunState.from_json(result.state.to_json()), decisions, deps=world, tools=arriving)
        state, record.end = result.state, result.stop_reason
        record.unmet, record.answer = tuple(result.unmet), result.answer
    except MaymustError as error:
        state, record.end, record.said = error.state, type(error).__name__, str(error)
    record.tasks_left = len(asyncio.all_tasks()) - before
    if state is not None:
        _read(record, state)
        if child_model is not None:
            _read_children(record, state, child_model)
    return record


async def _first_part(scenario: dict[str, Any], agent: Agent[Any], world: World, arriving: list[Any]) -> RunResult[Any]:
    """The run to its first end. At a crash it goes on from the text of an earlier state, and all that came after is lost."""
    run = agent.start("go", deps=world)
    if scenario["crash"] is None:
        return await run
    crash = Crash(run, world, scenario["crash"])
    run.on(RunEvent, crash.see)
    try:
        result = await run
    except MaymustError:
        if crash.text is None:
            raise
    if crash.text is None:
        return result
    return await agent.resume(crash.go_back(), deps=world, tools=arriving)


class Crash:
    """Takes the text of the state at the n-th event, and stops the run there."""

    def __init__(self, run: Run[Any], world: World, at: int) -> None:
        self._run, self._world, self._left = run, world, at
        self._finished: set[str] = set()
        self.text: str | None = None

    def see(self, event: RunEvent) -> None:
        """Count an event."""
        if self.text is not None:
            return
        if isinstance(event, CallFinished):
            self._finished.add(event.call_id)
        self._left -= 1
        if self._left <= 0 and self._run.state.stop_reason is None:
            self.text = self._run.state.to_json()
            self._run.cancel()

    def go_back(self) -> RunState:
        """The state to go on from; the world forgets what came after it, and bodies that had no result yet."""
        state = RunState.from_json(self.text or "")
        self._world.bodies[:] = [body for body in self._world.bodies if body["call_id"] in self._finished]
        del self._world.replies[len(state.turns) :]
        return state


def _decide(rng: Random, world: World, pending: Any) -> dict[str, Decision]:
    calls = list(pending)
    chosen = calls if rng.random() < 0.7 else rng.sample(calls, rng.randint(1, len(calls)))
    return {call.call_id: Decision(allow=rng.random() < world.yes) for call in chosen}


def _read_children(record: Record, state: Any, model: ChildAdversary) -> None:
    for call_id, child in state.past_children:
        task = child.messages[0].text
        prefix = f"{call_id}/"
        pauses = [
            {**pause, "decisions": {key.removeprefix(prefix): said for key, said in pause["decisions"].items() if key.startswith(prefix)}}
            for pause in record.pauses
        ]
        end = child.error.partition(":")[0] if child.stop_reason == "error" else child.stop_reason or "aborted"
        seen = Record(replies=model.tasks.get(task, []), bodies=record.bodies, questions=record.questions, pauses=pauses)
        seen.end, seen.said, seen.unmet, seen.answer = end, child.error or "", tuple(child.unmet), child.answer
        _read(seen, child)
        record.children[call_id] = seen


def _read(record: Record, state: Any) -> None:
    record.run_id = state.run_id
    for permit in state.permits:
        record.permits.append({name: getattr(permit, name) for name in PERMIT_FIELDS})
    for step in state.steps:
        record.steps.append(
            {
                "tool": step.tool,
                "outcome": str(step.outcome.value),
                "arguments": step.arguments,
                "output": step.output,
                "call_id": step.call_id,
                "text": step.text,
            }
        )
    for message in state.messages:
        calls = [(call.call_id, call.name, call.raw_arguments) for call in message.calls]
        record.messages.append(
            {"role": message.role, "text": message.text, "calls": calls, "call_id": message.call_id, "kind": message.kind}
        )
    record.counters = dict(state.counters.to_dict())

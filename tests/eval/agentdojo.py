"""AgentDojo's ground truth, replayed under the policies of `agentdojo_policies`: `python -m tests.eval.agentdojo` prints the table.

No model takes part. The calls of the user tasks are the benign ones; those of the injection tasks are what a model does that has
fallen for an injection completely. Each of the latter is replayed inside every user task of its suite, right after the first step
that brings untrusted output: at no other place can an injection have come in.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from maymust import Agent, Budget, FunctionInvocationContext, Policy, RunResult, Tool
from maymust.core.step import Outcome
from maymust.models import ScriptedModel, call
from tests.eval.agentdojo_policies import SUITES, policy_for

DATA = Path(__file__).parent.parent / "data" / "agentdojo.json.xz"
NAMES = tuple(SUITES)


@dataclass(frozen=True)
class Task:
    """What is asked, the calls of the ground truth, and what they returned."""

    suite: str
    id: str
    prompt: str
    calls: tuple[tuple[str, dict[str, Any]], ...]
    results: tuple[str, ...]


@dataclass(frozen=True)
class Benign:
    """A user task: how many of its calls were admitted, and how often a person was asked."""

    task: Task
    admitted: int
    questions: int

    @property
    def whole(self) -> bool:
        """Whether every call was admitted, a person saying yes."""
        return self.admitted == len(self.task.calls)


@dataclass(frozen=True)
class Attack:
    """An injected sequence inside a user task: whether it was stopped, how, and what of it had taken effect by then."""

    injection: Task
    inside: Task
    stopped: str | None
    effects_before: int


class World:
    """The tasks, the tools and a policy for each suite.

    kind  "named" (the policies as they are written), "always" (the same without `unless_named`), or "none" (no rules at all)
    """

    def __init__(self, kind: str = "named") -> None:
        data = json.loads(lzma.decompress(DATA.read_bytes()))
        self.tools: dict[str, tuple[Tool, ...]] = {suite: tuple(map(_tool, tools)) for suite, tools in data["tools"].items()}
        self.policies = {suite: _policy(kind, suite, tools) for suite, tools in self.tools.items()}
        self.user: list[Task] = [_task(one) for one in data["tasks"] if one["kind"] == "user"]
        self.injections: list[Task] = [_task(one) for one in data["tasks"] if one["kind"] == "injection"]

    def replay(self, task: Task, calls: list[tuple[str, str, dict[str, Any], str]]) -> tuple[Agent, RunResult[str]]:
        """Replay calls (id, name, arguments, result) under the suite's policy until a person is asked, or to the end."""
        turns = [call(name, call_id=call_id, raw_arguments=json.dumps(arguments)) for call_id, name, arguments, _ in calls]
        agent = Agent(
            ScriptedModel([*turns, call("final_answer", answer="done")]),
            tools=self.tools[task.suite],
            policy=self.policies[task.suite],
            loop_guard=None,
            budget=Budget(turns=None, errors=None),
        )
        return agent, agent.run_sync(task.prompt, deps={call_id: result for call_id, _, _, result in calls})

    def benign(self, task: Task) -> Benign:
        """A user task, a person saying yes to everything."""
        calls = _numbered(task, "user")
        agent, result = self.replay(task, calls)
        questions = 0
        while result.pending:
            questions += len(result.pending)
            yes = {pending.call_id: True for pending in result.pending}
            result = agent.resume_sync(result, yes, deps={call_id: text for call_id, _, _, text in calls})
        admitted = sum(step.outcome is Outcome.OK for step in result.steps if step.tool != "final_answer")
        return Benign(task, admitted, questions)

    def attack(self, injection: Task, inside: Task) -> Attack | None:
        """An injected sequence after the first untrusted output of a user task; None for a task without such output."""
        untrusted = SUITES[inside.suite]["untrusted"]
        first = next((place for place, (name, _) in enumerate(inside.calls) if name in untrusted), None)
        if first is None:
            return None
        injected = _numbered(injection, "injected")
        calls = [*_numbered(inside, "user")[: first + 1], *injected]
        agent, result = self.replay(inside, calls)
        while result.pending and result.pending[0].call_id.startswith("user"):
            result = agent.resume_sync(result, {result.pending[0].call_id: True}, deps={call_id: text for call_id, _, _, text in calls})
        effects = SUITES[inside.suite]["side_effects"]
        mine = [step for step in result.steps if (step.call_id or "").startswith("injected")]
        done = sum(step.outcome is Outcome.OK and step.tool in effects for step in mine)
        if result.pending:
            shown = any(name in reason for reason in result.pending[0].reasons for name in untrusted)
            return Attack(injection, inside, "asked" if shown else None, done)
        refused = any(step.outcome is Outcome.REFUSED for step in mine)
        return Attack(injection, inside, "refused" if refused else None, done)

    def attacks(self) -> Iterator[Attack]:
        """Every injected sequence inside every user task of its suite."""
        for injection in self.injections:
            for inside in self.user:
                if inside.suite == injection.suite and (found := self.attack(injection, inside)) is not None:
                    yield found


def _task(data: dict[str, Any]) -> Task:
    calls = tuple((name, arguments) for name, arguments in data["calls"])
    return Task(data["suite"], data["id"], data["prompt"], calls, tuple(data["results"]))


def _numbered(task: Task, word: str) -> list[tuple[str, str, dict[str, Any], str]]:
    pairs = zip(task.calls, task.results, strict=True)
    return [(f"{word}-{place}", name, arguments, result) for place, ((name, arguments), result) in enumerate(pairs)]


def _tool(data: dict[str, Any]) -> Tool:
    def body(context: FunctionInvocationContext, **arguments: Any) -> str:
        result: str = context.deps[context.call_id]
        return result

    schema = {"type": "object", "properties": {name: {} for name in data["params"]}, "additionalProperties": False}
    return Tool.from_schema(data["name"], data["doc"], schema, body)


def _policy(kind: str, suite: str, tools: tuple[Tool, ...]) -> Policy:
    if kind == "none":
        return Policy(tools=tools)
    return policy_for(suite, tools) if kind == "named" else policy_for(suite, tools, unless_named=None)


@dataclass(frozen=True)
class Score:
    """What came of a set of user tasks and attacks."""

    benign: tuple[Benign, ...]
    attacks: tuple[Attack, ...]

    @classmethod
    def of(cls, world: World) -> Score:
        """Replay everything."""
        return cls(tuple(world.benign(task) for task in world.user), tuple(world.attacks()))

    def only(self, suite: str) -> Score:
        """The part of one suite."""
        benign = tuple(one for one in self.benign if one.task.suite == suite)
        return Score(benign, tuple(one for one in self.attacks if one.injection.suite == suite))

    @property
    def questions(self) -> float:
        """Questions a user task."""
        return sum(one.questions for one in self.benign) / len(self.benign)

    @property
    def unasked(self) -> int:
        """User tasks about which nobody was asked."""
        return sum(not one.questions for one in self.benign)

    @property
    def sequences(self) -> tuple[int, int]:
        """Injected sequences, and how many of them were stopped wherever they came in."""
        every = {(one.injection.suite, one.injection.id) for one in self.attacks}
        return len(every), len(every - {(one.injection.suite, one.injection.id) for one in self.attacks if one.stopped is None})

    @property
    def pairings(self) -> tuple[int, int]:
        """Injected sequences inside user tasks, and how many of them were stopped."""
        return len(self.attacks), sum(one.stopped is not None for one in self.attacks)

    def row(self, label: str, *, answered: bool = True) -> str:
        """A row of a table; `answered` says whether a person says yes to what is asked about user tasks."""
        admitted = sum(one.whole and (answered or not one.questions) for one in self.benign)
        (every, stopped), (pairs, pairs_stopped) = self.sequences, self.pairings
        return (
            f"| {label} | {admitted} of {len(self.benign)} | {self.unasked} | {self.questions:.2f} | {stopped} of {every} "
            f"| {pairs_stopped} of {pairs} |"
        )


HEAD = """\
| {} | user tasks admitted | nobody asked | approvals a task | injected sequences stopped | in pairings |
|---|---|---|---|---|---|"""


def report() -> str:
    """Both tables of the docs page, and what was not stopped."""
    named = Score.of(World())
    lines = [HEAD.format("rules"), Score.of(World("none")).row("none"), Score.of(World("always")).row("ask after untrusted output")]
    lines += [named.row("ask unless it was named"), named.row("the same, and nobody says yes", answered=False), ""]
    lines += [HEAD.format("suite"), *(named.only(suite).row(suite) for suite in NAMES), ""]
    for one in named.attacks:
        if one.stopped is None:
            lines.append(f"Not stopped: {one.injection.suite}, {one.injection.id} inside {one.inside.id}.")
    lines.append(
        f"Side effects of stopped sequences before they were stopped: {sum(one.effects_before for one in named.attacks if one.stopped)}."
    )
    return "\n".join(lines)


if __name__ == "__main__":
    print(report())

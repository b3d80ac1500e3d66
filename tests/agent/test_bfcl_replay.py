"""The 200 tasks of BFCL in which functions are withheld until a later turn, replayed by a model that asks for them too early.

Each task is one run. The user's turns come by `run.send`; when its turn comes, a withheld function is added to the run.
"""

from __future__ import annotations

import asyncio
import json
import lzma
from pathlib import Path
from typing import Any

from maymust import Agent, Budget, FunctionInvocationContext, Run, RunResult, Tool, tool
from maymust.models import ScriptedModel, call

DATA = Path(__file__).parent.parent / "data" / "bfcl_miss_func.json.xz"
ANY_OBJECT = {"type": "object", "properties": {}, "additionalProperties": True}


def _tasks() -> list[dict[str, Any]]:
    tasks: list[dict[str, Any]] = json.loads(lzma.decompress(DATA.read_bytes()))
    return tasks


def _is_a_test(task: dict[str, Any]) -> bool:
    """Whether the answer calls no withheld function before its turn, and one after it."""
    turns = [(name, number, at) for at, calls in enumerate(task["calls"]) for name, _ in calls if (number := task["withheld"].get(name))]
    return bool(turns) and all(at >= number for _, number, at in turns)


class World:
    """The user of one task, and the functions that are there."""

    def __init__(self, task: dict[str, Any]) -> None:
        self.task, self.turn = task, 0
        self.run: Run | None = None
        names = sorted({name for calls in task["calls"] for name, _ in calls} | set(task["withheld"]))
        self.functions = {name: self._function(name) for name in names}

    def _function(self, name: str) -> Tool:
        async def body(**arguments: Any) -> dict[str, Any]:
            return {"turn": self.turn, **arguments}

        return Tool.from_schema(name, f"The function {name}.", ANY_OBJECT, body)

    def go_on(self, context: FunctionInvocationContext) -> str:
        """The user's next words, and the functions that come with them."""
        self.turn += 1
        assert self.run is not None
        self.run.send(self.task["turns"][self.turn] or "There are more functions now.")
        context.add_tools(self.functions[name] for name, turn in self.task["withheld"].items() if turn == self.turn)
        return "the user speaks"

    def script(self) -> list[Any]:
        """The answer's calls; before their turn the withheld functions too, and in it those that the answer does without."""
        withheld: dict[str, int] = self.task["withheld"]
        used = {name for calls in self.task["calls"] for name, _ in calls}
        turns: list[Any] = []
        for number, calls in enumerate(self.task["calls"]):
            if number:
                turns.append(call("next_turn"))
            for name, turn in withheld.items():
                if number < turn:
                    turns.append(call(name, too_early=number))
                elif number == turn and name not in used:
                    turns.append(call(name))
            turns += [call(name, **arguments) for name, arguments in calls]
        return [*turns, call("final_answer", answer="done")]


async def _replay(task: dict[str, Any]) -> RunResult:
    world = World(task)

    @tool(repeatable=True)
    async def next_turn(context: FunctionInvocationContext) -> str:
        """Wait for the user."""
        return world.go_on(context)

    there = [one for name, one in world.functions.items() if name not in task["withheld"]]
    agent = Agent(
        ScriptedModel(world.script()), tools=[next_turn, *there], loadable=[world.functions[name] for name in task["withheld"]],
        budget=Budget(turns=None), loop_guard=None,
    )  # fmt: skip
    world.run = agent.start(task["turns"][0] or "Hello.")
    return await world.run


def _check(task: dict[str, Any], result: RunResult) -> tuple[int, int]:
    """Hold one replay against its task; how many calls came too early, and how many of withheld functions ran."""
    withheld: dict[str, int] = task["withheld"]
    assert result.answer == "done", task["id"]
    turn, turns_of_steps = 0, []
    early, ran = 0, []
    for step in result.steps:
        turn += step.tool == "next_turn"
        turns_of_steps.append(turn)
        is_early = turn < withheld.get(step.tool, 0)
        assert step.outcome == ("refused" if is_early else "ok"), (task["id"], turn, step)
        early += is_early
        if step.tool in withheld and not is_early:
            assert step.output["turn"] == turn
            ran.append(step.tool)
    assert set(ran) == set(withheld)
    for made in result.turns:
        # `next_turn` changes what the turn after it is offered.
        now = turns_of_steps[made.first_step - 1] if made.first_step else 0
        assert {name for name in withheld if name in made.permit.allowed} == {name for name in withheld if withheld[name] <= now}
    used = {name for calls in task["calls"] for name, _ in calls}
    done = [(step.tool, step.arguments) for step in result.steps if step.tool in used and step.outcome == "ok"]
    assert done == [(name, arguments) for calls in task["calls"] for name, arguments in calls]
    said = [message.text for message in result.messages if message.role == "user" and not message.kind]
    assert said == [task["turns"][0] or "Hello.", *(text or "There are more functions now." for text in task["turns"][1:])]
    return early, len(ran)


def test_every_withheld_function_is_refused_before_its_turn_and_runs_after_it() -> None:
    async def scenario() -> list[tuple[dict[str, Any], RunResult]]:
        return [(task, await _replay(task)) for task in _tasks() if _is_a_test(task)]

    replayed = asyncio.run(scenario())
    assert len(replayed) == 197
    counts = [_check(task, result) for task, result in replayed]
    assert all(early > 0 and ran > 0 for early, ran in counts)

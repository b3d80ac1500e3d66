"""Limits on arguments in runs, against a model that always tries the wrong value first."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust import (
    Agent,
    ArgumentRequirement,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    FunctionInvocationContext,
    RunState,
    tool,
)
from maymust.models import Capabilities, ModelReply, ModelRequest, ScriptedModel, call

DONE = call("final_answer", answer="done")


@dataclass
class World:
    """What the tools of one run have done, in the order in which it happened."""

    done: list[tuple[str, str]] = field(default_factory=list)
    slow: frozenset[str] = frozenset()


@tool
async def read_file(context: FunctionInvocationContext, path: str) -> str:
    """Read a file."""
    if path in context.deps.slow:
        await asyncio.sleep(0.002)
    if path.startswith("missing"):
        raise FileNotFoundError(path)
    context.deps.done.append(("read", path))
    return f"contents of {path}"


@tool
async def write_file(context: FunctionInvocationContext, path: str, text: str = "") -> str:
    """Write a file."""
    context.deps.done.append(("write", path))
    return f"wrote {path}"


@tool
async def search(context: FunctionInvocationContext, query: str) -> dict[str, Any]:
    """Search for records."""
    if query in context.deps.slow:
        await asyncio.sleep(0.002)
    context.deps.done.append(("search", query))
    return {"hits": [{"id": f"{query}-{number}", "secret": f"{query}-9"} for number in range(2)]}


@tool
async def delete(context: FunctionInvocationContext, id: str) -> str:
    """Delete a record."""
    context.deps.done.append(("delete", id))
    return f"deleted {id}"


@tool
async def refund(context: FunctionInvocationContext, amount: float) -> str:
    """Pay money back."""
    context.deps.done.append(("refund", f"{amount:g}"))
    return "paid"


TOOLS = [read_file, write_file, search, delete, refund]
SAME_PATH = ArgumentRequirement(write_file, "path", from_argument=(read_file, "path"))
ONLY_FOUND = ArgumentRequirement(delete, "id", from_output=(search, "$.hits[*].id"))
SMALL = ArgumentRequirement(refund, "amount", minimum=1, maximum=100)


class Adversary:
    """A model that tries wrong values for as long as it is let, then the right one, and answers when there is none.

    wrong   per tool the arguments it tries in turn
    right   per tool the arguments that are right, in turn
    """

    name = "adversary"
    capabilities = Capabilities()

    def __init__(self, tool: str, wrong: Sequence[dict[str, Any]], first: Sequence[Any] = (), right: Sequence[dict[str, Any]] = ()) -> None:
        self.turns = [
            *first,
            *([call(tool, **arguments)] for arguments in wrong),
            *([call(tool, **arguments)] for arguments in right),
            DONE,
        ]

    async def complete(self, request: ModelRequest) -> ModelReply:
        done = sum(message.role == "assistant" for message in request.messages)
        return await ScriptedModel([self.turns[min(done, len(self.turns) - 1)]]).complete(request)

    async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
        yield await self.complete(request)


def run(model: Any, *requirements: Any, world: World | None = None, **settings: Any) -> tuple[Any, World]:
    world = world or World()
    agent = Agent(model, tools=TOOLS, requirements=requirements, loop_guard=None, budget=Budget(turns=100, errors=None), **settings)
    return agent.run_sync("go", deps=world), world


def written(world: World) -> list[str]:
    return [value for kind, value in world.done if kind in ("write", "delete", "refund")]


def test_read_before_write_on_the_same_path() -> None:
    wrong = [{"path": path} for path in ("b", "./a", "A", "a ", "a/../b", "", "contents of a")]
    first = [
        call("write_file", path="a"),
        call("read_file", path="missing-b"),
        call("write_file", path="missing-b"),
        call("read_file", path="a"),
    ]
    result, world = run(Adversary("write_file", wrong, first, [{"path": "a"}]), SAME_PATH)
    assert result.stop_reason == "final_answer"
    assert written(world) == ["a"]
    assert result.counters.refusals == len(wrong) + 2
    assert "missing-b" not in str([text for kind, text in world.done])


def test_the_limit_of_a_refund() -> None:
    wrong: list[dict[str, Any]] = [{"amount": amount} for amount in (100.01, 1e9, 0, -5, 101)]
    result, world = run(Adversary("refund", wrong, (), [{"amount": 100}, {"amount": "1"}]), SMALL)
    assert written(world) == ["100", "1"]
    assert result.counters.refusals == len(wrong)
    for raw in ("NaN", "Infinity", "null", '"a lot"', "[5]", "true"):
        _, world = run(ScriptedModel([call("refund", raw_arguments=f'{{"amount": {raw}}}'), DONE]), SMALL)
        assert written(world) in ([], ["1"]), raw  # true is 1 for the tool, and 1 is within the limit


def test_only_ids_that_a_search_returned() -> None:
    wrong = [{"id": id_} for id_ in ("a-2", "a-9", "b-0", "a", "*", "")]
    first = [call("delete", id="a-0"), call("search", query="a")]
    result, world = run(Adversary("delete", wrong, first, [{"id": "a-1"}, {"id": "a-0"}]), ONLY_FOUND)
    assert written(world) == ["a-1", "a-0"]
    assert result.counters.refusals == len(wrong) + 1


@pytest.mark.parametrize(
    ("last_only", "batch", "expected"),
    [
        (False, ["read a", "read b", "write a", "write b"], ["a", "b"]),
        (False, ["write a", "read a", "write b", "read b"], []),
        (False, ["read a", "write b", "read b", "write a", "write b"], ["a", "b"]),
        (True, ["read a", "read b", "write a", "write b"], ["b"]),
        (True, ["read a", "write a", "read b", "write b", "write a"], ["a", "b"]),
        (True, ["read a", "read missing", "write a", "write missing"], ["a"]),
    ],
)
@pytest.mark.parametrize("slow", [frozenset(), frozenset({"a"}), frozenset({"a", "b"})])
@pytest.mark.parametrize("together", [True, False])
def test_two_records_in_whatever_order(last_only: bool, batch: list[str], expected: list[str], slow: Any, together: bool) -> None:
    calls = [call(f"{word}_file", path=path) for word, path in (one.split() for one in batch)]
    # What is closed when the turn begins was not on offer, however the turn goes on.
    opened = [call("read_file", path="before")]
    rule = ArgumentRequirement(write_file, "path", from_argument=(read_file, "path"), last_only=last_only)
    turns = [calls] if together else [[one] for one in calls]
    _, world = run(ScriptedModel([opened, *turns, DONE]), rule, world=World(slow=slow))
    assert written(world) == expected


names = st.sampled_from(["a", "b", "c", "missing"])
moves = st.tuples(st.sampled_from(["read", "read", "write"]), names)
plans = st.lists(st.lists(moves, min_size=1, max_size=5), min_size=1, max_size=4)


@settings(max_examples=80, deadline=None)
@given(plans, st.sets(names), st.booleans())
def test_a_write_runs_if_and_only_if_its_path_was_read_before_it(plan: Any, slow: set[str], last_only: bool) -> None:
    turns = [[call(f"{word}_file", path=path) for word, path in batch] for batch in plan]
    rule = ArgumentRequirement(write_file, "path", from_argument=(read_file, "path"), last_only=last_only)
    result, world = run(ScriptedModel([*turns, DONE]), rule, world=World(slow=frozenset(slow)))
    read: list[str] = []
    steps = iter(result.steps)
    expected = []
    for batch in plan:
        offered = bool(read)
        for word, path in batch:
            step = next(steps)
            if word == "read":
                if path != "missing":
                    read.append(path)
                continue
            may = offered and path in (read[-1:] if last_only else read)
            assert (str(step.outcome) == "ok") == may, (batch, path)
            if may:
                expected.append(path)
    assert sorted(written(world)) == sorted(expected)
    # It also ran after the read, not only beside it.
    for place, (kind, path) in enumerate(world.done):
        assert kind != "write" or ("read", path) in world.done[:place]


def test_runs_of_one_agent_know_nothing_of_each_others_records() -> None:
    class Peer:
        """Deletes what the neighbour has found, then what it has found itself."""

        name = "peer"
        capabilities = Capabilities()

        async def complete(self, request: ModelRequest) -> ModelReply:
            await asyncio.sleep(0)
            mine = int(re.findall(r"\d+", next(message.text for message in request.messages if message.role == "user"))[0])
            turns: list[Any] = [
                [call("search", query=f"q{mine}"), call("delete", id=f"q{mine + 1}-0")],
                call("delete", id=f"q{mine + 1}-0"),
                call("delete", id=f"q{mine - 1}-1"),
                call("delete", id=f"q{mine}-1"),
                DONE,
            ]
            done = sum(message.role == "assistant" for message in request.messages)
            return await ScriptedModel([turns[done]]).complete(request)

        async def stream(self, request: ModelRequest) -> AsyncIterator[Any]:
            yield await self.complete(request)

    agent = Agent(Peer(), tools=TOOLS, requirements=[ONLY_FOUND])

    async def main() -> list[World]:
        worlds = [World(slow=frozenset({f"q{number}"}) if number % 3 else frozenset()) for number in range(150)]
        await asyncio.gather(*(agent.run(f"run {number}", deps=world) for number, world in enumerate(worlds)))
        return worlds

    for number, world in enumerate(asyncio.run(main())):
        assert world.done == [("search", f"q{number}"), ("delete", f"q{number}-1")]


def test_a_stored_run_still_knows_what_was_read() -> None:
    rules = [SAME_PATH, AskPermissionRequirement(write_file)]
    model = ScriptedModel([call("read_file", path="a"), call("write_file", path="b"), call("write_file", path="a", call_id="w"), DONE])
    agent = Agent(model, tools=TOOLS, requirements=rules)
    world = World()
    paused = agent.run_sync("go", deps=world)
    assert [pending.arguments["path"] for pending in paused.pending] == ["a"]
    done = agent.resume_sync(RunState.from_json(paused.state.to_json()), {"w": True}, deps=world)
    assert done.stop_reason == "final_answer"
    assert written(world) == ["a"]


def test_middleware_cannot_slip_another_value_past_the_limit() -> None:
    async def meddle(context: Any, call_next: Any) -> None:
        if context.name == "refund":
            context.arguments = {"amount": 5000}
        await call_next()

    result, world = run(ScriptedModel([call("refund", amount=5), DONE]), SMALL, middleware=[meddle])
    assert written(world) == []
    assert str(result.steps[0].outcome) == "refused"


def test_a_relaxed_turn_keeps_the_limits() -> None:
    rules = [SMALL, ConditionalRequirement(refund, min_invocations=1)]
    result, world = run(ScriptedModel(["no", "no", "no", call("refund", amount=5000), DONE]), *rules)
    assert written(world) == []
    assert result.counters.relaxations == 1 or result.stop_reason == "stalled"


def test_a_gate_holds_them_in_somebody_elses_loop() -> None:
    gate = Agent(ScriptedModel([]), tools=TOOLS, requirements=[ONLY_FOUND, SMALL]).policy.gate()
    gate.permit()
    assert gate.admit({"name": "search", "id": "1", "arguments": {"query": "a"}}).allowed
    gate.observe({"name": "search", "id": "1"}, "ok", {"hits": [{"id": "a-0"}]})
    gate.permit()
    refused = gate.admit({"name": "delete", "id": "2", "arguments": {"id": "b-0"}})
    assert not refused.allowed
    assert 'one of "a-0"' in (refused.reason or "")
    assert gate.admit({"name": "delete", "id": "3", "arguments": json.dumps({"id": "a-0"})}).allowed
    assert not gate.admit({"name": "refund", "id": "4", "arguments": {"amount": "a lot"}}).allowed

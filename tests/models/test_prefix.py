"""What was sent once is sent again as it was: request n is a prefix of request n+1 (design 3.11)."""

from __future__ import annotations

import asyncio
from itertools import pairwise
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, RunResult, RunState
from maymust.models import Capabilities, call
from tests.models.adapters import APIS, opened
from tests.models.agents import Player, long_agent, read, search, think
from tests.models.picky import Manners, PickyServer
from tests.models.picky.wire import canonical, no_marks

BOUND = Manners(thinks=True, bound=True, forced=False, piece=11)
FREE = Manners(thinks=True)
CASES = {
    "chat": ("chat", "gpt-6-sol", FREE),
    "responses": ("responses", "gpt-6-sol", FREE),
    "messages, bound": ("messages", "claude-opus-5-5", BOUND),
    "messages, changes": ("messages", "claude-opus-4-8", FREE),
    "messages, whole": ("messages", "claude-opus-4-6", FREE),
}


def items(api: str, body: dict[str, Any]) -> list[str]:
    """The prompt of a request as items: tools, system, messages; marks for the cache are no part of it."""
    body = no_marks(body)
    system = [body["system"]] if "system" in body else [body["instructions"]] if "instructions" in body else []
    return [canonical(item) for item in (*body.get("tools", ()), *system, *(body.get("messages") or body.get("input") or ()))]


def droppable(api: str, model: str, body: dict[str, Any]) -> int:
    """How many items at the end are a status that the next request leaves out: at most one."""
    last = (body.get("messages") or body["input"])[-1]
    text = last["content"] if isinstance(last.get("content"), str) else (last.get("content") or [{}])[0].get("text", "")
    says = text.startswith(("This step you may call", "You have to call", "Call one of these"))
    return int(says and model not in ("claude-opus-5-5", "claude-opus-4-8"))


async def run(api: str, model: str, manners: Manners, *, arriving: bool = False, **settings: Any) -> tuple[RunResult[Any], list[Any]]:
    with PickyServer(Player(), manners=manners) as server:
        async with opened(api, server, model) as adapter:
            agent = long_agent(adapter, arriving=arriving, **settings)
            result = await agent.run("What is it?")
        assert [one.status for one in server.seen] == [200] * len(server.seen)
        return result, server.bodies


@pytest.mark.parametrize("case", CASES)
def test_each_request_begins_as_the_one_before_it(case: str) -> None:
    api, model, manners = CASES[case]
    result, bodies = asyncio.run(run(api, model, manners))
    assert result.stop_reason == "final_answer"
    assert len(bodies) >= 20
    assert len({(permit.allowed, permit.tool_choice) for permit in result.permits}) >= 4
    for before, after in pairwise(bodies):
        kept = items(api, before)
        kept = kept[: len(kept) - droppable(api, model, before)]
        assert items(api, after)[: len(kept)] == kept


@pytest.mark.parametrize("case", ["responses", "messages, bound", "messages, changes"])
def test_a_tool_that_arrives_is_defined_inside_the_conversation(case: str) -> None:
    api, model, manners = CASES[case]
    result, bodies = asyncio.run(run(api, model, manners, arriving=True))
    assert result.stop_reason == "final_answer"
    assert "note" in result.permits[-1].tools
    for before, after in pairwise(bodies):
        kept = items(api, before)
        kept = kept[: len(kept) - droppable(api, model, before)]
        assert items(api, after)[: len(kept)] == kept


def test_elsewhere_the_list_changes_in_the_turn_in_which_a_tool_arrives_and_only_then() -> None:
    _, bodies = asyncio.run(run("chat", "gpt-6-sol", FREE, arriving=True))
    lists = [canonical(body["tools"]) for body in bodies]
    changes = [turn for turn, (before, after) in enumerate(pairwise(lists), 1) if before != after]
    assert len(changes) == 1
    assert canonical(bodies[-1]["tools"]).startswith(canonical(bodies[0]["tools"][:-1])[:-1])


@pytest.mark.parametrize("api", APIS)
def test_a_filter_changes_the_tool_list_and_nothing_else(api: str) -> None:
    async def filtered() -> list[Any]:
        with PickyServer(Player()) as server:
            async with opened(api, server, "some-model", capabilities=Capabilities(late_system=api != "messages")) as adapter:
                await long_agent(adapter).run("What is it?")
            return server.bodies

    bodies = asyncio.run(filtered())
    for before, after in pairwise(bodies):
        wanted = items(api, {**before, "tools": []})
        wanted = wanted[: len(wanted) - droppable(api, "some-model", before)]
        assert items(api, {**after, "tools": []})[: len(wanted)] == wanted


def test_a_conversation_that_goes_on_keeps_the_prefix_across_runs() -> None:
    async def both() -> list[Any]:
        with PickyServer(Player(6), manners=BOUND) as server:
            async with opened("messages", server, "claude-opus-5-5") as adapter:
                agent = long_agent(adapter)
                first = await agent.run("What is it?")
                second = await agent.run("And then?", previous=first)
            assert (first.stop_reason, second.stop_reason) == ("final_answer", "final_answer")
            return [one.status for one in server.seen]

    assert set(asyncio.run(both())) == {200}


def test_a_bound_run_that_is_stored_and_resumed_keeps_its_prefix() -> None:
    async def resumed() -> list[int]:
        script = [call("think", text="a"), call("read", page=1), call("search", q="x"), call("final_answer", answer="done")]
        with PickyServer(script, manners=BOUND) as server:
            async with opened("messages", server, "claude-opus-5-5") as adapter:
                agent = Agent(adapter, tools=[think, search, read], requirements=[AskPermissionRequirement(["read"])])
                paused = await agent.run("go")
                assert paused.stop_reason == "paused"
                state = RunState.from_json(paused.state.to_json())
                result = await agent.resume(state, {call.call_id: True for call in paused.pending})
                assert result.stop_reason == "final_answer"
            return [one.status for one in server.seen]

    assert set(asyncio.run(resumed())) == {200}

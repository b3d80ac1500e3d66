"""What a provider refuses is given up for the rest of the run, where everybody can see it."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

from maymust import Agent, RunResult, RunState
from maymust.events import AbilityLost, TextDelta
from maymust.models import Capabilities, call
from maymust.models.failures import ModelFailure
from tests.models.adapters import APIS, opened
from tests.models.agents import Player, long_agent, think
from tests.models.picky import Drop, Manners, PickyServer, Seen

HOPEFUL = Capabilities(
    subset="allowed_tools", parallel_switch=True, strict_schemas=True, json_schema=True, late_system=True, inline_tools=True
)
HOPEFUL_CLAUDE = Capabilities(subset="tool_changes", late_system=True, inline_tools=True, parallel_switch=True)


def hopeful(api: str) -> Capabilities:
    return HOPEFUL_CLAUDE if api == "messages" else HOPEFUL


async def play(
    api: str, told: Capabilities, *, stream: bool = False, **manners: Any
) -> tuple[RunResult[Any], list[AbilityLost], list[Seen]]:
    lost: list[AbilityLost] = []
    with PickyServer(Player(6), manners=Manners(**manners)) as server:
        async with opened(api, server, "some-model", capabilities=told, parallel=False) as adapter:
            run = long_agent(adapter).start("What is it?")
            run.on(AbilityLost, lost.append)
            if stream:
                run.on(TextDelta, lambda event: None)
            result = await run
        return result, lost, server.seen


REFUSALS = [
    ("chat", {"forced": False}, {"forced_choice"}),
    ("chat", {"subsets": False}, {"subset"}),
    ("chat", {"parallel": False}, {"parallel_switch"}),
    ("chat", {"late_system": False}, {"late_system"}),
    ("chat", {"tools": False}, {"tools"}),
    ("chat", {"forced": False, "subsets": False, "parallel": False}, {"forced_choice", "subset", "parallel_switch"}),
    ("responses", {"forced": False}, {"forced_choice"}),
    ("responses", {"subsets": False}, {"subset"}),
    ("responses", {"parallel": False}, {"parallel_switch"}),
    ("messages", {"forced": False}, {"forced_choice"}),
    ("messages", {"changes": False}, {"subset"}),
    ("messages", {"late_system": False}, {"late_system"}),
]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("api", "manners", "abilities"), REFUSALS)
def test_a_refusal_costs_one_request_and_is_remembered(
    api: str, manners: dict[str, bool], abilities: set[str], stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, "maymust.models"):
        result, lost, seen = asyncio.run(play(api, hopeful(api), stream=stream, **manners))
    assert {event.ability for event in lost} == abilities
    assert set(result.state.lost) == abilities
    assert [one.status for one in seen].count(400) == len(abilities)
    assert len(result.turns) + len(abilities) == len(seen) == result.usage.requests
    assert all(f"does not take {ability}" in caplog.text for ability in abilities)
    assert all(event.why for event in lost)


def test_the_turn_says_which_level_it_was_and_who_held_the_permit() -> None:
    result, _, _ = asyncio.run(play("chat", hopeful("chat"), forced=False))
    assert {turn.level for turn in result.turns} <= {3, 4}
    assert result.turns[0].level == 4
    assert result.turns[0].enforced_by == "maymust"
    plain, _, _ = asyncio.run(play("chat", hopeful("chat")))
    assert {turn.level for turn in plain.turns} == {1, 3}
    assert {turn.enforced_by for turn in plain.turns} == {"provider"}


def test_what_is_lost_travels_with_the_state() -> None:
    result, _, _ = asyncio.run(play("chat", hopeful("chat"), forced=False))
    assert RunState.from_json(result.state.to_json()).lost == ("forced_choice",)


def test_a_run_knows_nothing_of_what_another_has_lost() -> None:
    async def two() -> list[int]:
        with PickyServer(Player(6), manners=Manners(forced=False)) as server:
            async with opened("chat", server, capabilities=HOPEFUL) as adapter:
                agent = long_agent(adapter)
                await agent.run("one")
                before = len(server.seen)
                server._brain = Player(6)
                await agent.run("two")
            return [one.status for one in server.seen[before:]]

    assert asyncio.run(two()).count(400) == 1


def test_a_provider_that_ignores_the_choice_is_held_by_the_second_gate() -> None:
    async def ignored(api: str) -> RunResult[Any]:
        with PickyServer(
            [call("search", q="x"), call("think", text="a"), call("final_answer", answer="x")] * 3, manners=Manners(ignores=True)
        ) as server:
            async with opened(api, server) as adapter:
                try:
                    return await long_agent(adapter).run("What is it?")
                except ModelFailure as over:
                    return RunResult(over.state, "aborted")

    for api in APIS:
        result = asyncio.run(ignored(api))
        assert [(step.tool, step.outcome) for step in result.steps][:2] == [("search", "refused"), ("think", "ok")]


def test_what_was_refused_before_the_connection_was_lost_is_remembered_too() -> None:
    async def cut() -> Any:
        def brain(body: Any, wire: Any) -> Any:
            return Drop()

        with PickyServer(brain, manners=Manners(forced=False)) as server:
            async with opened("chat", server, capabilities=HOPEFUL, retries=0) as adapter:
                with pytest.raises(ModelFailure) as failed:
                    await Agent(adapter, tools=[think], tool_choice="required").run("go")
        return failed.value

    failure = asyncio.run(cut())
    assert failure.state.lost == ("forced_choice",)
    assert failure.state.usage.requests == 2

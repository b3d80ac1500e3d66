"""Whatever a model, a tool or a rule comes up with, the state of a run stays JSON, and an error names whose value is none."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest

from maymust import Agent, History, MaymustError, PolicyError, Rule, RunError, RunState, RunView, SqliteStore, requirement, tool
from maymust.events import CallStarted
from maymust.models import ScriptedModel, call, reply
from maymust.tools.function_tool import Tool


@tool
def weigh(grams: float) -> str:
    """Weigh something."""
    return f"{grams} g"


def survives(state: RunState) -> None:
    text = state.to_json()
    text.encode()
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    assert RunState.from_json(text).to_json() == text


@pytest.mark.parametrize("number", ["1e999", "-1e999", "[1e999]", "NaN", "-Infinity"])
def test_a_number_that_is_none_is_bad_json_and_the_state_can_be_stored(number: str) -> None:
    model = ScriptedModel([call("weigh", raw_arguments=f'{{"grams": {number}}}'), "done"])
    result = Agent(model, tools=[weigh]).run_sync("go")
    assert (result.steps[0].outcome, result.steps[0].arguments) == ("failed", None)
    assert "not valid JSON" in str(result.steps[0].text)
    survives(result.state)


@pytest.mark.parametrize("store", [False, True])
def test_half_a_character_from_a_model_or_a_tool_is_replaced(store: bool, tmp_path: Any) -> None:
    @tool
    def read(name: str) -> str:
        """Read a file."""
        raise OSError(f"{name}\udcff is not there")

    broken = call("read", raw_arguments='{"name": "\\ud83d"}')
    turns: list[Any] = [reply("half \ud83d", broken), call("re\ud83dad", name="x"), "the end \ud83d"]
    agent = Agent(ScriptedModel(turns), tools=[read], store=SqliteStore(tmp_path / "runs.db") if store else None)
    result = agent.run_sync("half \ud83d too")
    survives(result.state)
    assert result.answer == "the end \N{REPLACEMENT CHARACTER}"
    for message in result.state.messages:
        message.text.encode()


def test_what_a_rule_puts_into_a_list_of_its_memory_changes_no_earlier_state() -> None:
    @requirement(name="counts", targets=["weigh"])
    def counts(history: History, run: RunView) -> list[Rule]:
        run.memory.setdefault("seen", []).append(len(history))
        return []

    model = ScriptedModel([call("weigh", grams=1), call("weigh", grams=2), "done"])
    states: list[RunState] = []

    async def keep(context: Any, call_next: Any) -> None:
        states.append(context._run.state)
        await call_next()

    result = Agent(model, tools=[weigh], requirements=[counts], middleware=[keep]).run_sync("go")
    assert result.state.memories == {"counts": {"seen": [0, 1, 2]}}
    assert [state.memories for state in states[:2]] == [{"counts": {"seen": [0]}}, {"counts": {"seen": [0, 1]}}]


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan")])
def test_a_memory_that_is_no_json_stops_the_run_and_names_the_requirement(value: object) -> None:
    @requirement(name="counts", targets=["weigh"])
    def counts(history: History, run: RunView) -> list[Rule]:
        run.memory["seen"] = value
        return []

    with pytest.raises(PolicyError, match=r"'counts' put something into run\.memory that has no JSON form") as caught:
        Agent(ScriptedModel(["done"]), tools=[weigh], requirements=[counts]).run_sync("go")
    assert caught.value.state is not None
    survives(caught.value.state)


@pytest.mark.parametrize("value", [{1, 2}, object(), float("nan")])
def test_metadata_that_is_no_json_is_refused_before_the_run(value: object) -> None:
    with pytest.raises(TypeError, match=r"metadata has no JSON form.*deps"):
        Agent(ScriptedModel(["done"]), tools=[weigh]).run_sync("go", metadata={"value": value})


def test_metadata_that_its_owner_changes_later_stays_as_it_was() -> None:
    metadata = {"user": {"name": "Maria"}}

    async def change(context: Any, call_next: Any) -> None:
        metadata["user"]["name"] = "somebody else"
        await call_next()

    result = Agent(ScriptedModel([call("weigh", grams=1), "done"]), tools=[weigh], middleware=[change]).run_sync("go", metadata=metadata)
    assert result.state.metadata == {"user": {"name": "Maria"}}


@pytest.mark.parametrize("ran", [False, True])
def test_a_result_of_middleware_that_is_no_json_stops_the_run_and_the_step_keeps_its_outcome(ran: bool) -> None:
    class Spoil:
        async def __call__(self, context: Any, call_next: Any) -> None:
            if ran:
                await call_next()
                context.result = object()
            else:
                context.answer(object())

    with pytest.raises(RunError, match=r"the middleware around weigh gave a result that is no JSON") as caught:
        Agent(ScriptedModel([call("weigh", grams=1), "done"]), tools=[weigh], middleware=[Spoil()]).run_sync("go")
    assert caught.value.state is not None
    assert [str(step.outcome) for step in caught.value.state.steps] == ["ok" if ran else "refused"]
    assert "The tool ran" not in str(caught.value)
    survives(caught.value.state)


def test_a_state_of_a_broken_run_is_json_as_well() -> None:
    @requirement(name="breaks", targets=["weigh"])
    def breaks(history: History) -> list[Rule]:
        raise OSError("\udcff")

    with pytest.raises(MaymustError) as caught:
        Agent(ScriptedModel(["done"]), tools=[weigh], requirements=[breaks]).run_sync("go")
    assert caught.value.state is not None
    survives(caught.value.state)


def test_a_tool_that_is_no_function_may_say_half_a_character_too() -> None:
    send = Tool.from_schema("send", "Send.", {"type": "object", "properties": {}}, lambda **_: {"text": "\ud83d"})
    result = Agent(ScriptedModel([call("send"), "done"]), tools=[send]).run_sync("go")
    survives(result.state)


def test_a_listener_that_answers_with_what_is_no_json_is_named_and_nothing_runs() -> None:
    def answer(event: CallStarted) -> None:
        event.output = object()

    async def go() -> None:
        run = Agent(ScriptedModel([call("weigh", grams=1), "done"]), tools=[weigh]).start("go")
        await run.on(CallStarted, answer, blocking=True)

    with pytest.raises(RunError, match=r"the listener to weigh gave a result that is no JSON") as caught:
        asyncio.run(go())
    assert caught.value.state is not None
    assert [str(step.outcome) for step in caught.value.state.steps] == ["refused"]

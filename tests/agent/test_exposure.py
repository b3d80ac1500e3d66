"""Tools that come and go during a run: what the tables do not say."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, FunctionInvocationContext, RunError, RunState, Tool, tool
from maymust.events import ToolsChanged
from maymust.models import ScriptedModel, call

DONE = call("final_answer", answer="done")


def _make(name: str, **settings: Any) -> Tool:
    async def body() -> str:
        return f"{name} ran"

    return tool(name=name, description=f"The tool {name}.", **settings)(body)


def _run(body: Any, turns: list[Any], **settings: Any) -> Any:
    """A run of an agent whose tool `change` is `body`."""

    @tool
    async def change(context: FunctionInvocationContext) -> str:
        """Change the tools."""
        return str(body(context))

    return Agent(ScriptedModel(turns), tools=[change, *settings.pop("tools", ())], **settings).run_sync("go")


def _offers(result: Any) -> list[list[str]]:
    return [[name for name in permit.tools if name != "final_answer"] for permit in result.permits]


# --- what may be added ---


class Shelf:
    """Something with methods."""

    def __init__(self, mark: str) -> None:
        self.mark = mark

    async def take(self) -> str:
        """Take something."""
        return f"took from {self.mark}"


def test_a_bound_method_is_the_same_tool_each_time_and_of_another_object_another_one() -> None:
    shelf, other = Shelf("a"), Shelf("b")
    result = _run(lambda context: context.add_tools(shelf.take, [shelf.take]), [call("change"), call("change"), call("take"), DONE])
    assert [step.text for step in result.steps][2] == "took from a"
    assert _offers(result)[1:] == [["change", "take"]] * 3

    failed = _run(lambda context: context.add_tools(shelf.take, other.take), [call("change"), DONE])
    assert str(failed.steps[0].outcome) == "failed"
    assert "take" in failed.steps[0].text
    assert _offers(failed)[1] == ["change"]


def test_iterables_of_tools_are_taken_apart_once() -> None:
    def some() -> Iterator[Tool]:
        yield _make("one")
        yield _make("two")

    result = _run(lambda context: context.add_tools(some(), (_make("three"),), {"four": _make("four")}.values()), [call("change"), DONE])
    assert _offers(result)[1] == ["change", "one", "two", "three", "four"]


def test_classes_and_plain_functions_are_tools_too() -> None:
    class Stamp(Tool):
        """Stamps."""

        name = "stamp"

        async def run(self) -> str:
            return "stamped"

    async def plain() -> str:
        """Is plain."""
        return "plain"

    result = _run(lambda context: context.add_tools(Stamp, plain), [call("change"), [call("stamp"), call("plain")], DONE])
    assert [step.text for step in result.steps][1:3] == ["stamped", "plain"]


@pytest.mark.parametrize("garbage", ["a name", b"bytes", 7, None, {"name": "x"}, Agent, [7], [["nested", 7]]])
def test_garbage_is_a_type_error_and_adds_nothing(garbage: Any) -> None:
    raised: list[type[BaseException]] = []

    def body(context: FunctionInvocationContext) -> str:
        try:
            context.add_tools(_make("good"), garbage)
        except Exception as error:
            raised.append(type(error))
        return "ok"

    result = _run(body, [call("change"), DONE])
    assert raised == [TypeError]
    assert _offers(result)[1] == ["change"]


@pytest.mark.parametrize("name", ["auto", "none", "required"])
def test_reserved_names_cannot_be_tools_at_all(name: str) -> None:
    with pytest.raises(ValueError, match="reserved"):
        _make(name)


def test_a_loadable_tool_reserves_its_name() -> None:
    listed, stranger = _make("fetch"), _make("fetch")
    result = _run(lambda context: context.add_tools(stranger), [call("change"), DONE], loadable=[listed])
    assert str(result.steps[0].outcome) == "failed"
    assert "fetch" in result.steps[0].text


def test_two_calls_of_one_turn_cannot_add_different_tools_of_one_name() -> None:
    made = [_make("fetch"), _make("fetch")]

    @tool
    async def load(context: FunctionInvocationContext, which: int) -> str:
        """Load."""
        context.add_tools(made[which])
        return "loaded"

    rules = [ConditionalRequirement("load", consecutive_allowed=True)]
    agent = Agent(ScriptedModel([[call("load", which=0), call("load", which=1)], DONE]), tools=[load], requirements=rules)
    result = agent.run_sync("go")
    assert [str(step.outcome) for step in result.steps][:2] == ["ok", "failed"]
    assert result.state.tools[-1] is made[0]


# --- what may be removed ---


def test_removing_takes_names_tools_and_functions_and_ignores_what_is_not_there() -> None:
    shelf, one, two = Shelf("a"), _make("one"), _make("two")
    result = _run(
        lambda context: context.remove_tools("one", [two, shelf.take], "unknown", _make("stranger"), lambda: None),
        [call("change"), DONE],
        tools=[one, two, shelf.take],
    )
    assert _offers(result) == [["change", "one", "two", "take"], ["change"]]


def test_another_tool_of_the_same_name_is_not_the_one_that_is_there() -> None:
    result = _run(lambda context: context.remove_tools(_make("one")), [call("change"), DONE], tools=[_make("one")])
    assert _offers(result)[1] == ["change", "one"]


@pytest.mark.parametrize("form", ["final_answer", "object"])
def test_the_final_answer_cannot_be_removed(form: str) -> None:
    def body(context: FunctionInvocationContext) -> None:
        tools = context.state.plan.final.tool if form == "object" else form
        context.remove_tools(tools)

    result = _run(body, [call("change"), DONE])
    assert str(result.steps[0].outcome) == "failed"
    assert "final_answer cannot be removed" in result.steps[0].text


def test_a_tool_that_is_owed_cannot_be_removed_until_it_is_not() -> None:
    one = _make("one")
    rules = [ConditionalRequirement("one", min_invocations=1, name="one first")]
    turns = [call("change"), call("one"), call("change"), DONE]
    result = _run(lambda context: context.remove_tools(one), turns, tools=[one], requirements=rules)
    assert [str(step.outcome) for step in result.steps] == ["failed", "ok", "ok", "ok"]
    assert "one first" in result.steps[0].text
    assert _offers(result)[-1] == ["change"]


def test_a_tool_is_replaced_by_removing_and_adding_in_one_call() -> None:
    old, new = _make("one"), _make("one")

    def body(context: FunctionInvocationContext) -> str:
        context.remove_tools(old)
        return "removed"

    result = _run(body, [call("change"), DONE], tools=[old])
    assert _offers(result)[1] == ["change"]

    def back(context: FunctionInvocationContext) -> str:
        context.remove_tools(old)
        context.add_tools(old)
        return "there again"

    result = _run(back, [call("change"), call("one"), DONE], tools=[old, _make("two")])
    assert set(_offers(result)[1]) == {"change", "one", "two"}
    assert new is not old


# --- when it counts ---


@pytest.mark.parametrize("how", ["raises", "refused by middleware afterwards", "answered"])
def test_changes_count_when_the_call_that_made_them_succeeds(how: str) -> None:
    extra = _make("extra")

    async def middleware(context: FunctionInvocationContext, call_next: Any) -> None:
        if context.name == "change" and how == "answered":
            context.add_tools(extra)
            context.answer("from the cache")
            return
        await call_next()
        if how == "refused by middleware afterwards" and context.name == "change":
            context.refuse("only the text changes")

    def body(context: FunctionInvocationContext) -> str:
        context.add_tools(extra)
        if how == "raises":
            raise RuntimeError("no")
        return "ok"

    result = _run(body, [call("change"), DONE], middleware=[middleware])
    assert ("extra" in _offers(result)[1]) is (how != "raises")


def test_a_context_kept_beyond_its_call_or_its_run_changes_nothing() -> None:
    kept: list[FunctionInvocationContext] = []
    raised: list[str] = []

    def body(context: FunctionInvocationContext) -> str:
        if kept:
            for change in (kept[0].add_tools, kept[0].remove_tools):
                with pytest.raises(RuntimeError, match="c1") as caught:
                    change(_make("late"))
                raised.append(str(caught.value))
        kept.append(context)
        return "ok"

    _run(body, [call("change"), call("change"), DONE])
    assert len(raised) == 2
    for context in kept:
        for change in (context.add_tools, context.remove_tools):
            with pytest.raises(RuntimeError, match="over"):
                change(_make("late"))


def test_a_thread_that_was_given_up_changes_nothing() -> None:
    release, said = threading.Event(), []

    @tool(timeout=0.02)
    def slow(context: FunctionInvocationContext) -> str:
        """Work on after nobody waits."""
        release.wait(5)
        try:
            context.add_tools(_make("late"))
        except RuntimeError as error:
            said.append(str(error))
        return "late"

    @tool
    async def wait() -> str:
        """Wait for the other."""
        release.set()
        for _ in range(500):
            if said:
                break
            await asyncio.sleep(0.01)
        return "waited"

    result = Agent(ScriptedModel([call("slow"), call("wait"), DONE]), tools=[slow, wait]).run_sync("go")
    assert _offers(result)[-1] == ["slow", "wait"]
    assert said


def test_tools_may_be_changed_from_many_threads_at_once() -> None:
    each, calls = 25, 8
    barrier = threading.Barrier(calls)

    @tool
    def load(context: FunctionInvocationContext, k: int) -> str:
        """Load, in a thread of its own."""
        barrier.wait(10)
        for number in range(each):
            context.add_tools(_make(f"t{k}_{number}"))
        return "loaded"

    agent = Agent(ScriptedModel([[call("load", k=k) for k in range(calls)], DONE]), tools=[load])
    result = agent.run_sync("go")
    assert [str(step.outcome) for step in result.steps] == ["ok"] * (calls + 1)
    names = _offers(result)[1]
    assert len(names) == len(set(names)) == 1 + each * calls
    # In the model's order, however the threads ran.
    assert names == ["load", *(f"t{k}_{number}" for k in range(calls) for number in range(each))]


def test_whoever_listens_hears_of_changes() -> None:
    async def scenario() -> list[tuple[str, ...]]:
        heard: list[tuple[str, ...]] = []

        @tool
        async def load(context: FunctionInvocationContext) -> str:
            """Load."""
            context.add_tools(_make("one"))
            return "ok"

        run = Agent(ScriptedModel([call("load"), DONE]), tools=[load]).start("go")
        run.on(ToolsChanged, lambda event: heard.append(event.tools))
        await run
        return heard

    assert asyncio.run(scenario()) == [("load", "one")]


# --- resumed elsewhere ---


def _loading(tools: list[Tool], loadable: list[Tool] | None = None, done: int = 0) -> Agent:
    @tool
    async def load(context: FunctionInvocationContext) -> str:
        """Load."""
        context.add_tools(tools)
        return "loaded"

    turns: list[Any] = [call("load", call_id="l"), [call("ask_me", call_id="a"), call("fetch", call_id="f")], DONE]
    return Agent(
        ScriptedModel(turns[done:]),
        tools=[load, _make("ask_me")],
        loadable=loadable or [],
        requirements=[AskPermissionRequirement(["ask_me"])],
    )


def test_a_paused_run_keeps_its_tools_and_elsewhere_they_are_given_again() -> None:
    paused = _loading([_make("fetch")]).run_sync("go")
    assert [one.call_id for one in paused.pending] == ["a"]
    state = RunState.from_json(paused.state.to_json())
    elsewhere = _loading([], done=2)
    with pytest.raises(RunError, match=r"'fetch'.*tools=\[fetch\]"):
        elsewhere.resume_sync(state, {"a": True})
    again = _make("fetch")
    result = elsewhere.resume_sync(state, {"a": True}, tools=[again])
    assert result.answer == "done"
    assert "fetch" in result.permits[-1].tools
    assert result.state.tools[-1] is again


def test_loadable_tools_need_not_be_given_again() -> None:
    fetch = _make("fetch")
    paused = _loading([fetch], [fetch]).run_sync("go")
    state = RunState.from_json(paused.state.to_json())
    assert _loading([], [_make("fetch")], done=2).resume_sync(state, {"a": True}).answer == "done"


def test_in_the_same_process_nothing_has_to_be_given_again() -> None:
    agent = _loading([_make("fetch")])
    assert agent.resume_sync(agent.run_sync("go"), {"a": True}).answer == "done"


def test_a_tool_that_was_removed_stays_away_over_a_pause() -> None:
    @tool
    async def drop(context: FunctionInvocationContext) -> str:
        """Drop."""
        context.remove_tools("one")
        return "dropped"

    turns: list[Any] = [call("drop"), call("ask_me"), DONE]
    agent = Agent(ScriptedModel(turns), tools=[drop, _make("one"), _make("ask_me")], requirements=[AskPermissionRequirement(["ask_me"])])
    paused = agent.run_sync("go")
    result = agent.resume_sync(RunState.from_json(paused.state.to_json()), {"c2": True})
    assert _offers(result) == [["drop", "one", "ask_me"], ["drop", "ask_me"], ["drop", "ask_me"]]


def test_a_tool_that_always_asks_does_so_when_it_was_loaded() -> None:
    agent = _loading([_make("fetch", approval_mode="always_require")])
    paused = agent.run_sync("go")
    assert [one.call_id for one in paused.pending] == ["a", "f"]
    assert agent.resume_sync(paused, {"a": True, "f": False}).steps[2].outcome == "denied"


def test_a_tool_that_is_only_withheld_for_another_owes_nothing() -> None:
    rules = [ConditionalRequirement("change", force_at_step=1)]
    result = _run(lambda context: context.remove_tools("one"), [call("change"), DONE], tools=[_make("one")], requirements=rules)
    assert _offers(result) == [["change", "one"], ["change"]]


def test_a_tool_may_be_added_and_removed_again_by_one_call() -> None:
    one = _make("one")

    def body(context: FunctionInvocationContext) -> str:
        context.add_tools(one)
        context.remove_tools(one)
        return "ok"

    result = _run(body, [call("change"), DONE])
    assert str(result.steps[0].outcome) == "ok"
    assert _offers(result)[1] == ["change"]

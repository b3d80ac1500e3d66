"""An agent as a tool of another: one tool to the parent's rules, with a policy and a history of its own."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    Decision,
    FunctionInvocationContext,
    PolicyError,
    RunError,
    RunState,
    tool,
)
from maymust.events import QuestionAnswered, QuestionAsked, RunEvent, RunStarted
from maymust.models import ScriptedModel, call, reply


@tool(effect="idempotent")
async def search(q: str) -> str:
    """Search."""
    await asyncio.sleep(0)
    return f"found {q}"


@tool(effect="idempotent")
async def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


def _child(turns: list[Any], **settings: Any) -> Agent[Any]:
    return Agent(ScriptedModel(turns), name="helper", description="Helps.", tools=[search, pay], **settings)


def _parent(child: Agent[Any], turns: list[Any], **settings: Any) -> Agent[Any]:
    return Agent(ScriptedModel(turns), tools=[child.as_tool(), search], **settings)


def _run(agent: Agent[Any], **settings: Any) -> Any:
    return asyncio.run(agent.run("go", **settings))


def test_the_childs_answer_is_the_tools_result() -> None:
    child = _child([call("search", q="x"), call("final_answer", answer="it is x")])
    parent = _parent(child, [call("helper", task="find x"), call("final_answer", answer="x")])
    result = _run(parent)
    step = result.steps[0]
    assert (step.tool, str(step.outcome), step.text) == ("helper", "ok", "it is x")
    assert isinstance(child.model, ScriptedModel)
    first = child.model.requests[0]
    assert [message.text for message in first.messages if message.role == "user"] == ["find x"]
    assert [one.name for one in first.tools] == ["search", "pay", "final_answer"]


def test_a_child_with_an_output_type_gives_its_value() -> None:
    @dataclass
    class Found:
        page: int

    child = Agent(ScriptedModel([call("final_answer", page=7)]), name="helper", description="Helps.", output_type=Found)
    result = _run(Agent(ScriptedModel([call("helper", task="t"), call("final_answer", answer="x")]), tools=[child.as_tool()]))
    assert result.steps[0].output == {"page": 7}


def test_the_parents_rules_speak_of_the_child_as_one_tool() -> None:
    child = _child([call("search", q="x"), call("search", q="y"), call("final_answer", answer="ok")])
    rules = [ConditionalRequirement("helper", max_invocations=1), ConditionalRequirement("search", only_after=["helper"])]
    turns = [call("helper", task="a"), call("helper", task="b"), call("search", q="z"), call("final_answer", answer="x")]
    result = _run(_parent(child, turns, requirements=rules))
    assert [str(step.outcome) for step in result.steps] == ["ok", "refused", "ok", "ok"]


def test_the_child_has_its_own_policy_and_history() -> None:
    child = _child(
        [call("pay", amount=1), call("search", q="x"), call("pay", amount=1), call("final_answer", answer="ok")],
        requirements=[ConditionalRequirement("pay", only_after=["search"])],
    )
    # The parent has searched; that opens nothing in the child.
    result = _run(_parent(child, [call("search", q="a"), call("helper", task="t"), call("final_answer", answer="x")]))
    inner = result.children["c2"]
    assert [(step.tool, str(step.outcome)) for step in inner.steps][:3] == [("pay", "refused"), ("search", "ok"), ("pay", "ok")]


def test_deps_and_metadata_reach_the_child() -> None:
    seen: list[Any] = []

    @tool
    async def look(context: FunctionInvocationContext) -> str:
        """Look."""
        seen.append((context.deps, context.metadata["user"]))
        return "ok"

    child = Agent(ScriptedModel([call("look"), call("final_answer", answer="a")]), name="helper", description="d", tools=[look])
    deps = object()
    parent = Agent(ScriptedModel([call("helper", task="t"), call("final_answer", answer="b")]), tools=[child.as_tool()])
    _run(parent, deps=deps, metadata={"user": "ada"})
    assert seen == [(deps, "ada")]


def test_the_childs_usage_is_the_parents() -> None:
    child = _child([reply(call("search", q="x"), tokens=5), reply(call("final_answer", answer="a"), tokens=7)])
    result = _run(_parent(child, [reply(call("helper", task="t"), tokens=1), reply(call("final_answer", answer="b"), tokens=2)]))
    assert result.usage.output_tokens == 15
    assert result.usage.requests == 4


# --- budget ---


def _searches(count: int) -> list[Any]:
    return [call("search", q=str(n)) for n in range(count)]


def test_the_turns_that_the_parent_has_left_bound_the_child() -> None:
    child = _child([*_searches(3), call("final_answer", answer="cut short")])
    parent = _parent(child, [call("helper", task="t"), call("final_answer", answer="b")], budget=Budget(turns=6))
    result = _run(parent)
    # One for the call, four for the child, whose last can only answer, one to answer.
    assert result.stop_reason == "final_answer"
    ((_, inner),) = result.state.past_children
    assert len(inner.turns) == 4
    assert inner.permits[-1].forced == "final_answer"
    assert result.state.turns_used == 6


def test_a_child_leaves_the_parent_a_turn_to_answer_and_is_not_started_without_one_of_its_own() -> None:
    child = _child([])
    parent = _parent(child, [call("search", q="a"), call("helper", task="t"), call("final_answer", answer="b")], budget=Budget(turns=3))
    result = _run(parent)
    assert result.answer == "b"
    assert str(result.steps[1].outcome) == "failed"
    assert "budget" in (result.steps[1].text or "")


def test_children_at_work_at_once_share_what_is_left() -> None:
    class Searching:
        name, capabilities = "searching", ScriptedModel([]).capabilities

        async def complete(self, request: Any) -> Any:
            await asyncio.sleep(0)
            forced = request.tool_choice == "final_answer"
            said = call("final_answer", answer="a") if forced else call("search", q=str(len(request.messages)))
            return await ScriptedModel([said]).complete(request)

        async def stream(self, request: Any) -> Any:
            yield await self.complete(request)

    child = Agent(Searching(), name="helper", description="Helps.", tools=[search])
    turns = [[call("helper", task="a"), call("helper", task="b"), call("helper", task="c")], call("final_answer", answer="b")]
    result = _run(_parent(child, turns, budget=Budget(turns=9)))
    assert result.answer == "b"
    assert result.state.turns_used <= 9


def test_the_tokens_that_the_parent_has_left_bound_the_child() -> None:
    child = _child([reply(call("search", q=str(n)), tokens=10) for n in range(3)] + [reply(call("final_answer", answer="a"), tokens=1)])
    parent = _parent(child, [reply(call("helper", task="t"), tokens=10), call("final_answer", answer="b")], budget=Budget(tokens=40))
    result = _run(parent)
    ((_, inner),) = result.state.past_children
    assert [turn.grace for turn in inner.turns] == [False, False, False, True]
    assert result.usage.total_tokens == 41


def test_the_childs_own_budget_holds_too() -> None:
    child = _child(
        _searches(3),
        budget=Budget(turns=3),
        requirements=[ConditionalRequirement("pay", min_invocations=1)],
    )
    result = _run(_parent(child, [call("helper", task="t"), call("final_answer", answer="b")]))
    step = result.steps[0]
    assert str(step.outcome) == "failed"
    # Why, what was owed, and how far it got.
    for word in ("budget of 3 turns", "conditional:pay", "search (ok)", "found 2"):
        assert word in (step.text or "")
    assert len(result.state.past_children[0][1].steps) == 3


def test_a_child_whose_model_breaks_is_a_failed_step() -> None:
    result = _run(_parent(_child([call("search", q="a")]), [call("helper", task="t"), call("final_answer", answer="b")]))
    assert result.answer == "b"
    assert str(result.steps[0].outcome) == "failed"
    assert "script" in (result.steps[0].text or "")


def test_as_tool_needs_a_name_and_a_description() -> None:
    with pytest.raises(PolicyError, match="as_tool"):
        Agent(ScriptedModel([])).as_tool()
    with pytest.raises(PolicyError, match="as_tool"):
        Agent(ScriptedModel([]), name="helper").as_tool()
    made = Agent(ScriptedModel([]), name="helper", description="Helps.").as_tool("other", "Does other things.")
    assert (made.name, made.description, list(made.parameters["properties"])) == ("other", "Does other things.", ["task"])


# --- questions ---

ASKING = [AskPermissionRequirement(["pay"])]


def _asking_child(answer: str = "paid it") -> Agent[Any]:
    return _child([[call("pay", amount=1), call("pay", amount=2)], call("final_answer", answer=answer)], requirements=ASKING)


def _through_json(state: RunState) -> RunState:
    text = state.to_json()
    loaded = RunState.from_json(text)
    assert json.loads(loaded.to_json()) == json.loads(text)
    return loaded


def test_the_childs_questions_pause_the_parent_and_resume_goes_through_both() -> None:
    child = _asking_child()
    parent = _parent(child, [[call("helper", task="t"), call("search", q="s")], call("final_answer", answer="done")])
    first = _run(parent)
    assert first.stop_reason == "paused"
    assert [(one.call_id, one.tool, one.arguments) for one in first.pending] == [
        ("c1/c1", "pay", {"amount": 1}),
        ("c1/c2", "pay", {"amount": 2}),
    ]
    state = _through_json(first.state)
    second = asyncio.run(parent.resume(state, {"c1/c1": True}))
    assert [one.call_id for one in second.pending] == ["c1/c2"]
    third = asyncio.run(parent.resume(_through_json(second.state), {"c1/c2": Decision(False, "too much")}))
    assert third.answer == "done"
    ((_, inner),) = third.state.past_children
    assert [(step.tool, str(step.outcome)) for step in inner.steps][:2] == [("pay", "ok"), ("pay", "denied")]
    assert "too much" in (inner.steps[1].text or "")
    assert [(step.tool, str(step.outcome)) for step in third.steps][:2] == [("helper", "ok"), ("search", "ok")]
    # The state that was given is a value: the same pause can be resumed in another way.
    again = asyncio.run(parent.resume(state, {"c1/c2": True}))
    assert [one.call_id for one in again.pending] == ["c1/c1"]


def test_a_decision_has_to_name_a_question_that_waits() -> None:
    parent = _parent(_asking_child(), [call("helper", task="t"), call("final_answer", answer="done")])
    state = _run(parent).state
    for wrong in ("c1", "c1/c9", "c9/c1", "c2"):
        with pytest.raises(RunError, match="c1/c1, c1/c2"):
            asyncio.run(parent.resume(state, {wrong: True}))
    after = asyncio.run(parent.resume(state, {"c1/c1": True})).state
    with pytest.raises(RunError, match="c1/c2"):
        asyncio.run(parent.resume(after, {"c1/c1": True}))


def test_questions_of_the_parent_and_the_child_wait_side_by_side() -> None:
    parent = _parent(
        _asking_child(),
        [[call("helper", task="t"), call("search", q="s")], call("final_answer", answer="done")],
        requirements=[AskPermissionRequirement(["search"])],
    )
    first = _run(parent)
    assert {one.call_id for one in first.pending} == {"c1/c1", "c1/c2", "c2"}
    result = asyncio.run(parent.resume(first.state, {"c1/c1": True, "c2": True, "c1/c2": True}))
    assert result.answer == "done"
    assert [str(step.outcome) for step in result.steps] == ["ok", "ok", "ok"]


def test_a_person_may_be_asked_about_the_child_itself() -> None:
    child = _asking_child()
    parent = _parent(child, [call("helper", task="t"), call("final_answer", answer="done")], requirements=[AskPermissionRequirement()])
    first = _run(parent)
    assert [one.call_id for one in first.pending] == ["c1"]
    second = asyncio.run(parent.resume(first.state, {"c1": True}))
    assert [one.call_id for one in second.pending] == ["c1/c1", "c1/c2"]
    third = asyncio.run(parent.resume(_through_json(second.state), {"c1/c1": True, "c1/c2": True}))
    assert third.answer == "done"
    ((_, inner),) = third.state.past_children
    assert len(inner.turns) == 2


def _nested(handler: Any = None) -> Agent[Any]:
    grandchild = Agent(
        ScriptedModel([call("pay", amount=1), call("final_answer", answer="paid")]),
        name="cashier",
        description="Pays.",
        tools=[pay],
        requirements=[AskPermissionRequirement(["pay"], handler=handler)],
    )
    child = Agent(
        ScriptedModel([call("cashier", task="pay"), call("final_answer", answer="cashier paid")]),
        name="helper",
        description="Helps.",
        tools=[grandchild.as_tool()],
    )
    return Agent(ScriptedModel([call("helper", task="t"), call("final_answer", answer="done")]), tools=[child.as_tool()])


def test_children_of_children() -> None:
    parent = _nested()
    run_events: list[RunEvent] = []

    async def scenario() -> Any:
        run = parent.start("go")
        run.on(RunEvent, run_events.append)
        first = await run
        assert {event.run_id for event in run_events} == {run.id}
        return first

    first = asyncio.run(scenario())
    assert [one.call_id for one in first.pending] == ["c1/c1/c1"]
    assert [event.call.call_id for event in run_events if isinstance(event, QuestionAsked)] == ["c1/c1/c1"]
    result = asyncio.run(parent.resume(_through_json(first.state), {"c1/c1/c1": True}))
    assert result.answer == "done"
    assert result.usage.requests == 6
    ((_, inner),) = result.state.past_children
    ((_, innermost),) = inner.past_children
    assert (innermost.run_id, str(innermost.steps[0].outcome)) == (f"{result.state.run_id}/c1/c1", "ok")


def test_a_handler_in_a_child_is_asked_and_the_parent_hears_of_it() -> None:
    heard: list[tuple[str, bool]] = []

    async def scenario() -> Any:
        run = _nested(handler=lambda pending: pending.arguments["amount"] == 1).start("go")
        run.on(QuestionAnswered, lambda event: heard.append((event.call.call_id, event.allow)))
        return await run

    assert asyncio.run(scenario()).answer == "done"
    assert heard == [("c1/c1/c1", True)]


def test_resuming_checks_the_childs_policy_too() -> None:
    state = _run(_parent(_asking_child(), [call("helper", task="t")])).state
    other = _child([], requirements=[AskPermissionRequirement(["search", "pay"])])
    with pytest.raises(RunError, match="another policy"):
        asyncio.run(_parent(other, []).resume(state, {"c1/c1": True}))


# --- going on, and stopping ---


def test_a_child_goes_on_from_any_state_of_its_parent() -> None:
    taken: list[str] = []
    runs: list[Any] = []

    @tool(effect="idempotent")
    async def note(k: int) -> str:
        """Note."""
        taken.append(runs[-1].state.to_json())
        await asyncio.sleep(0)
        return f"noted {k}"

    script: list[Any] = [
        call("note", call_id="n1", k=1),
        [call("note", call_id="n2", k=2), call("note", call_id="n3", k=3)],
        call("final_answer", call_id="n4", answer="noted"),
    ]

    def parent(done: int) -> Agent[Any]:
        child = Agent(ScriptedModel(script[done:]), name="helper", description="d", tools=[note])
        turns: list[Any] = [call("helper", task="t"), call("final_answer", call_id="end", answer="b")]
        return Agent(ScriptedModel(turns[done > 0 :]), tools=[child.as_tool()])

    async def whole() -> Any:
        runs.append(parent(0).start("go"))
        return await runs[-1]

    expected = asyncio.run(whole())
    texts = list(taken)
    assert len(texts) == 3

    async def again(text: str) -> Any:
        state = RunState.from_json(text)
        (inner,) = state.children.values()
        runs.append(parent(len(inner.turns)).start_resume(state))
        return await runs[-1]

    for text in texts:
        result = asyncio.run(again(text))
        assert [step.to_dict() for step in result.steps] == [step.to_dict() for step in expected.steps]
        assert [message.to_dict() for message in result.messages] == [message.to_dict() for message in expected.messages]
        inner, before = result.state.past_children[0][1], expected.state.past_children[0][1]
        assert [step.to_dict() for step in inner.steps] == [step.to_dict() for step in before.steps]


@pytest.mark.parametrize("rounds", range(0, 24, 2))
def test_cancelling_the_parent_cancels_the_child(rounds: int) -> None:
    async def scenario() -> None:
        child = _child([*_searches(3), call("final_answer", answer="a")])
        parent = _parent(child, [call("helper", task="t"), call("final_answer", answer="b")])
        run = parent.start("go")
        for _ in range(rounds):
            await asyncio.sleep(0)
        run.cancel()
        result = await run
        await asyncio.sleep(0)
        assert len(asyncio.all_tasks()) == 1
        assert not result.state.children
        made = [one.call_id for message in result.messages for one in message.calls]
        assert [message.call_id for message in result.messages if message.role == "tool"] == made
        for _, inner in result.state.past_children:
            assert inner.stop_reason in ("aborted", "final_answer")
            made = [one.call_id for message in inner.messages for one in message.calls]
            assert [message.call_id for message in inner.messages if message.role == "tool"] == made

    asyncio.run(scenario())


def test_a_child_that_takes_too_long_is_stopped() -> None:
    @tool
    async def sleep() -> str:
        """Sleep."""
        await asyncio.sleep(30)
        return "slept"

    child = Agent(ScriptedModel([call("sleep")]), name="helper", description="d", tools=[sleep])
    parent = Agent(ScriptedModel([call("helper", task="t"), call("final_answer", answer="b")]), tools=[child.as_tool(timeout=0.02)])
    result = _run(parent)
    assert result.answer == "b"
    assert "0.02" in (result.steps[0].text or "")
    assert result.state.past_children[0][1].stop_reason == "aborted"


def test_a_listener_may_hear_the_runs_of_child_agents_too() -> None:
    async def main() -> tuple[list[tuple[str, str]], list[str]]:
        deep = Agent(ScriptedModel(["deep down"]), name="deep", description="Goes deep.")
        child = Agent(
            ScriptedModel([call("deep", task="go", call_id="d"), "found"]), name="child", description="Looks.", tools=[deep.as_tool()]
        )
        parent = Agent(ScriptedModel([call("child", task="look", call_id="c"), "done"], name="scripted:parent"), tools=[child.as_tool()])
        run = parent.start("go")
        everywhere: list[tuple[str, str]] = []
        here: list[str] = []
        run.on(RunStarted, lambda event: everywhere.append((event.run_id.removeprefix(run.id), event.agent or event.model)), children=True)
        run.on(RunStarted, lambda event: here.append(event.run_id))
        await run
        return everywhere, [one.removeprefix(run.id) for one in here]

    everywhere, here = asyncio.run(main())
    assert everywhere == [("", "scripted:parent"), ("/c", "child"), ("/c/d", "deep")]
    assert here == [""]

"""Going on with a conversation, speaking to a run under way, and input that is not text."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    FunctionInvocationContext,
    Message,
    RunError,
    RunState,
    tool,
)
from maymust.events import MessageReceived
from maymust.models import Capabilities, Part, ScriptedModel, call


@tool
async def search(q: str) -> str:
    """Search."""
    return f"found {q}"


@tool
async def load(context: FunctionInvocationContext) -> str:
    """Load another tool."""
    context.add_tools(extra)
    return "loaded"


@tool
async def extra() -> str:
    """Is loaded."""
    return "extra"


def _done(answer: str = "done") -> Any:
    return call("final_answer", answer=answer)


def _agent(turns: list[Any], **settings: Any) -> Agent:
    return Agent(ScriptedModel(turns), tools=[search, load], **settings)


def _requests(agent: Agent) -> Any:
    assert isinstance(agent.model, ScriptedModel)
    return agent.model.requests


def _texts(request: Any) -> list[str]:
    return [message.text for message in request.messages if message.role == "user" and message.kind == ""]


# --- previous ---


def test_the_messages_of_the_earlier_run_are_kept() -> None:
    agent = _agent([call("search", q="a"), _done("one"), _done("two"), _done("three")])
    first = agent.run_sync("first")
    second = agent.run_sync("second", previous=first)
    third = agent.run_sync("third", previous=RunState.from_json(second.state.to_json()))
    assert _texts(_requests(agent)[-1]) == ["first", "second", "third"]
    assert third.messages[: len(second.messages)] == second.messages
    assert [message.role for message in first.messages] == ["user", "assistant", "tool", "assistant", "tool"]
    assert third.state.run_id != second.state.run_id
    # The earlier results are as they were.
    assert (first.answer, len(first.messages)) == ("one", 5)


def test_history_tools_choices_and_budget_start_anew() -> None:
    rules = [
        ConditionalRequirement("search", max_invocations=1),
        ConditionalRequirement("load", force_at_step=1),
        AskPermissionRequirement(["extra"], handler=lambda pending: True, remember_choices=True),
    ]
    turns = [call("load"), call("search", q="a"), call("extra"), _done()]
    agent = Agent(ScriptedModel([*turns, *turns]), tools=[search, load], loadable=[extra], requirements=rules, budget=Budget(turns=4))
    first = agent.run_sync("first")
    second = agent.run_sync("second", previous=first)
    for result in (first, second):
        assert [str(step.outcome) for step in result.steps] == ["ok"] * 4
        assert result.permits[0].forced == "load"
        assert "extra" not in result.permits[0].tools
    assert len(second.turns) == 4


def test_carry_history_counts_over_the_conversation() -> None:
    rules = [ConditionalRequirement("search", max_invocations=1)]
    agent = _agent([call("search", q="a"), _done("one"), call("search", q="b"), _done("two")], requirements=rules)
    first = agent.run_sync("first")
    second = agent.run_sync("second", previous=first, carry_history=True)
    assert [(step.tool, str(step.outcome)) for step in second.steps] == [("search", "refused"), ("final_answer", "ok")]
    assert len(second.state.history) == 4


def test_what_was_owed_does_not_follow_into_the_next_run_but_is_owed_there_again() -> None:
    rules = [ConditionalRequirement("search", min_invocations=1)]
    agent = _agent([call("search", q="a"), _done(), _done(), call("search", q="b"), _done()], requirements=rules)
    first = agent.run_sync("first")
    second = agent.run_sync("second", previous=first)
    assert [str(step.outcome) for step in second.steps] == ["refused", "ok", "ok"]


def test_another_agent_may_go_on_with_the_conversation() -> None:
    first = _agent([_done("one")]).run_sync("first")
    other = Agent(ScriptedModel(["two"]))
    assert other.run_sync("second", previous=first).answer == "two"
    assert _texts(_requests(other)[0]) == ["first", "second"]


def test_a_run_in_the_middle_of_a_turn_is_no_conversation_to_go_on_with() -> None:
    agent = _agent([call("search", q="a"), _done()], requirements=[AskPermissionRequirement()])
    paused = agent.run_sync("first")
    with pytest.raises(RunError, match="c1 has no result"):
        agent.run_sync("second", previous=paused)
    done = agent.resume_sync(paused, {"c1": True})
    assert done.answer == "done"


def test_a_stopped_run_is_one() -> None:
    agent = _agent([call("search", q="a"), call("search", q="b"), _done()], budget=Budget(turns=1))
    stopped = agent.run_sync("first", tool_choice="required")
    assert stopped.stop_reason == "budget"
    assert agent.run_sync("second", previous=stopped, budget=Budget()).answer == "done"


# --- send ---


def _sending(send: Any) -> Agent:
    @tool
    async def work(context: FunctionInvocationContext) -> str:
        """Work."""
        await send(context)
        return "worked"

    return Agent(ScriptedModel([call("work"), _done("one"), _done("two")]), tools=[work])


def test_what_is_said_to_a_run_is_read_in_its_next_turn() -> None:
    async def scenario() -> None:
        async def send(context: FunctionInvocationContext) -> None:
            run.send("wait")
            run.send(Message("user", "a moment"))

        agent = _sending(send)
        run = agent.start("go")
        received: list[str] = []
        run.on(MessageReceived, lambda event: received.append(event.text))
        await run
        assert received == ["wait", "a moment"]
        first, second = _requests(agent)
        assert _texts(first) == ["go"]
        # After the results of the turn, never between a call and its result.
        assert [(message.role, message.text) for message in second.messages][-3:] == [
            ("tool", "worked"),
            ("user", "wait"),
            ("user", "a moment"),
        ]

    asyncio.run(scenario())


def test_what_is_said_before_the_first_model_call_is_part_of_it() -> None:
    async def scenario() -> None:
        agent = _agent([_done()])
        run = agent.start("go")
        run.send("quickly")
        await run
        assert _texts(_requests(agent)[0]) == ["go", "quickly"]

    asyncio.run(scenario())


def test_a_message_may_come_from_another_thread() -> None:
    async def scenario() -> None:
        async def send(context: FunctionInvocationContext) -> None:
            thread = threading.Thread(target=run.send, args=("from afar",))
            thread.start()
            await asyncio.to_thread(thread.join)
            await asyncio.sleep(0)

        agent = _sending(send)
        run = agent.start("go")
        await run
        assert _texts(_requests(agent)[1]) == ["go", "from afar"]

    asyncio.run(scenario())


def test_what_came_too_late_to_be_read_is_read_in_the_next_run() -> None:
    async def scenario() -> None:
        agent = _agent([_done("one"), _done("two")])

        async def late(context: Any, call_next: Any) -> None:
            run.send("too late")
            await call_next()

        run = agent.start("go", middleware=[late])
        result = await run
        assert result.answer == "one"
        await agent.start("next", previous=result)
        assert _texts(_requests(agent)[-1]) == ["go", "too late", "next"]

    asyncio.run(scenario())


def test_nothing_can_be_said_to_a_run_that_is_paused_or_over() -> None:
    async def scenario() -> None:
        agent = _agent([call("search", q="a"), _done()], requirements=[AskPermissionRequirement()])
        run = agent.start("go")
        paused = await run
        with pytest.raises(RunError, match="c1 waits for a person"):
            run.send("hello")
        again = agent.start_resume(paused, {"c1": True})
        again.send("hello")
        await again
        assert _texts(_requests(agent)[1]) == ["go", "hello"]
        with pytest.raises(RunError, match="previous=result"):
            again.send("bye")
        wrong: Any = 7
        with pytest.raises(TypeError, match="Message"):
            again.send(wrong)

    asyncio.run(scenario())


# --- input that is not text ---

IMAGE = Part("image", url="data:image/png;base64,AA==", media_type="image/png")
FILE = Part("file", url="https://example.org/a.pdf", filename="a.pdf")


def _seeing(turns: list[Any]) -> Agent:
    return Agent(ScriptedModel(turns, capabilities=Capabilities(images=True, files=True)))


def test_parts_reach_the_model_as_they_are() -> None:
    message = Message("user", "What is this?", parts=(IMAGE, FILE))
    agent = _seeing([_done("a picture")])
    result = agent.run_sync(message)
    assert [one for one in _requests(agent)[0].messages if one.role == "user"] == [message]
    assert RunState.from_json(result.state.to_json()).messages[0] == message


def test_a_list_may_hold_texts_messages_and_parts() -> None:
    agent = _seeing(["a", "b", "c", "d"])

    def said(given: Any) -> list[Message]:
        agent.run_sync(given)
        return [one for one in _requests(agent)[-1].messages if one.role == "user"]

    # With a part among them, texts and parts side by side are one message.
    assert said(["What is this?", IMAGE]) == [Message("user", "What is this?", parts=(IMAGE,))]
    assert said([IMAGE, "and", FILE]) == [Message("user", parts=(IMAGE, Part("text", "and"), FILE))]
    assert said(["one", Message("user", "two"), "three"]) == [Message("user", "one"), Message("user", "two"), Message("user", "three")]
    assert said(("one", "two")) == [Message("user", "one"), Message("user", "two")]


def test_parts_that_the_model_does_not_take_are_an_error_before_anything_is_sent() -> None:
    for part, capabilities in ((IMAGE, Capabilities(files=True)), (FILE, Capabilities(images=True))):
        model = ScriptedModel([_done()], capabilities=capabilities, name="plain")
        agent = Agent(model)
        with pytest.raises(RunError, match=f"plain takes no {part.kind} parts"):
            agent.run_sync(["What is this?", part])
        assert not model.requests
    # Also those of an earlier run with another model.
    earlier = _seeing(["a picture"]).run_sync(["What is this?", IMAGE])
    with pytest.raises(RunError, match="no image parts"):
        _agent([_done()]).run_sync("And now?", previous=earlier)

    async def scenario() -> None:
        run = _agent([_done()]).start("go")
        with pytest.raises(RunError, match="no file parts"):
            run.send(Message("user", parts=(FILE,)))
        await run

    asyncio.run(scenario())


@pytest.mark.parametrize("wrong", [7, None, [7], [b"bytes"], [["nested"]]])
def test_other_input_is_a_type_error(wrong: Any) -> None:
    with pytest.raises(TypeError, match="input must be text"):
        _agent([]).run_sync(wrong)

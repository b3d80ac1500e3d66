"""What is given to an agent, a run or `resume` and is of the wrong kind is told at once, by its name."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from maymust import (
    Agent,
    ApprovalMemory,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    LoopGuard,
    Message,
    NoAnswerError,
    Policy,
    PolicyError,
    RunError,
    ShortenOutputs,
    SqliteStore,
    Templates,
    tool,
)
from maymust.models import Capabilities, ModelReply, ScriptedModel, ToolCall, call


@tool
async def pay(amount: int = 1) -> str:
    """Pay."""
    return "paid"


ANSWER = call("final_answer", answer="done")


def agent(*turns: Any, **settings: Any) -> Agent[Any]:
    return Agent(ScriptedModel([*turns, ANSWER]), **{"tools": [pay], **settings})


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("name", 3),
        ("description", b"x"),
        ("instructions", 3),
        ("budget", 3),
        ("loop_guard", True),
        ("policy", "desk.policy.yaml"),
        ("templates", {}),
        ("supervise", "yes"),
        ("show_errors", "no"),
        ("tools", pay),
        ("tools", "pay"),
        ("loadable", pay),
        ("requirements", ConditionalRequirement("pay")),
        ("middleware", print),
    ],
)
def test_a_setting_of_the_wrong_kind_is_named(name: str, value: Any) -> None:
    with pytest.raises(PolicyError, match=rf"^{name}="):
        agent(**{name: value})


@pytest.mark.parametrize("given", [ConditionalRequirement("pay"), None, "pay"])
def test_requirements_and_tools_of_a_policy_are_lists(given: Any) -> None:
    with pytest.raises(PolicyError, match="have to be lists"):
        Policy(given, tools=["pay"])
    with pytest.raises(PolicyError, match="have to be lists"):
        Policy([], tools=given)


@pytest.mark.parametrize(
    "make",
    [
        lambda: Budget(seconds="1"),  # type: ignore[arg-type]
        lambda: LoopGuard(window=5),  # type: ignore[arg-type]
        lambda: LoopGuard(window=(5, 10, 15)),  # type: ignore[arg-type]
        lambda: LoopGuard(repeats="3"),  # type: ignore[arg-type]
        lambda: LoopGuard(repeats=2.5),  # type: ignore[arg-type]
        lambda: ShortenOutputs(limit="x"),  # type: ignore[arg-type]
        lambda: ShortenOutputs(limit=2.5),  # type: ignore[arg-type]
    ],
)
def test_a_limit_that_is_no_number_is_told(make: Callable[[], Any]) -> None:
    with pytest.raises(PolicyError, match=r"^\w+\(\w+="):
        make()


def test_what_a_run_is_given_is_checked_before_it_starts() -> None:
    with pytest.raises(PolicyError, match="budget=3"):
        agent().run_sync("pay", budget=3)
    with pytest.raises(TypeError, match="previous='x'"):
        agent().run_sync("pay", previous="x")


ASKED = ToolCall("c1", "pay")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ([], "the input is empty"),
        (Message("usr", "pay"), "role 'usr'"),  # type: ignore[arg-type]
        (Message("tool", "paid", call_id="c1"), "result of call 'c1'"),
        ([Message("user", "pay"), Message("assistant", calls=(ASKED,))], "no result of call c1"),
    ],
)
def test_an_input_that_no_provider_takes_is_an_error_before_the_first_model_call(given: Any, said: str) -> None:
    with pytest.raises(RunError, match=said):
        agent().run_sync(given)


def test_an_input_may_hold_calls_with_their_results() -> None:
    told = [Message("user", "pay"), Message("assistant", calls=(ASKED,)), Message("tool", "paid", call_id="c1"), Message("user", "and?")]
    assert agent().run_sync(told).answer == "done"


@pytest.mark.parametrize(("message", "said"), [(Message("tool", "x", call_id="c1"), "role 'tool'"), ("  ", "is empty")])
def test_only_what_a_user_says_is_sent_to_a_run(message: Any, said: str) -> None:
    async def scenario() -> None:
        run = agent().start("pay")
        with pytest.raises(RunError, match=said):
            run.send(message)
        await run

    asyncio.run(scenario())


def test_what_resume_cannot_take_is_told() -> None:
    state = agent(call("pay"), requirements=[AskPermissionRequirement("pay")]).run_sync("pay").state
    asking: Any = agent(requirements=[AskPermissionRequirement("pay")])
    with pytest.raises(TypeError, match="RunState, a RunResult or the id of a run"):
        asking.resume_sync(None)
    with pytest.raises(TypeError, match="by the ids of the calls"):
        asking.resume_sync(state, ["c1"])
    with pytest.raises(PolicyError, match="budget=3"):
        asking.resume_sync(state, {"c1": True}, budget=3)


def test_nothing_is_remembered_of_decisions_of_which_one_is_none() -> None:
    @tool
    async def send() -> str:
        """Send."""
        return "sent"

    asking = AskPermissionRequirement(remember_in=ApprovalMemory())
    settings: dict[str, Any] = {"tools": [pay, send], "requirements": [asking]}
    state = agent([call("pay"), call("send")], **settings).run_sync("pay").state
    with pytest.raises(RunError, match="the decision about 'c2' is 'yes'"):
        agent(**settings).resume_sync(state, {"c1": True, "c2": "yes"})  # type: ignore[dict-item]
    assert agent(call("pay"), **settings).run_sync("pay").stop_reason == "paused"


class Mute(Exception):
    """Its text cannot be had."""

    def __str__(self) -> str:
        raise ValueError("no text")


def test_an_exception_without_a_text_is_a_failed_step_like_any_other() -> None:
    @tool
    async def broken() -> str:
        """Break."""
        raise Mute

    step = agent(call("broken"), tools=[broken]).run_sync("break").steps[0]
    assert (str(step.outcome), step.text) == ("failed", "Mute: (an exception without a readable text)")


def test_an_exception_without_a_text_ends_a_run_like_any_other() -> None:
    async def breaks(context: Any, call_next: Any) -> None:
        raise Mute

    with pytest.raises(RunError, match="the run broke off: Mute") as caught:
        agent(call("pay"), middleware=[breaks]).run_sync("pay")
    assert isinstance(caught.value.__cause__, Mute)
    assert [step.outcome for step in caught.value.state.steps] == ["refused"]


def test_a_handler_that_raises_is_named() -> None:
    def handler(_: Any) -> bool:
        raise OSError("the line is dead")

    asking = AskPermissionRequirement("pay", handler=handler)
    with pytest.raises(RunError, match="the handler of ask:pay raised OSError about pay: the line is dead; it was not run") as caught:
        agent(call("pay"), requirements=[asking]).run_sync("pay")
    assert isinstance(caught.value.__cause__, OSError)


def test_the_error_of_a_missing_answer_has_the_state_of_the_run() -> None:
    result = Agent(ScriptedModel(["", "", "", ""])).run_sync("pay")
    with pytest.raises(NoAnswerError) as caught:
        _ = result.output
    assert caught.value.state is result.state


class Odd:
    """A model of somebody else."""

    name = "odd"
    capabilities = Capabilities()

    def __init__(self, reply: Any) -> None:
        self.reply = reply

    async def complete(self, request: Any) -> Any:
        return self.reply

    async def stream(self, request: Any) -> Any:
        yield self.reply


@pytest.mark.parametrize(
    ("reply", "said"),
    [
        (None, "the model odd gave None"),
        ("hello", "the model odd gave 'hello'"),
        (ModelReply(text=None), "text=None"),  # type: ignore[arg-type]
        (ModelReply(usage=None), "usage=None"),  # type: ignore[arg-type]
        (ModelReply(calls=None), "calls=None"),  # type: ignore[arg-type]
        (ModelReply(calls=(call("pay"),)), "gave a ScriptedCall for a call"),  # type: ignore[arg-type]
        (ModelReply(calls=(ToolCall("c1", "pay", {"amount": 1}),)), "pay with a dict as raw_arguments"),  # type: ignore[arg-type]
        (ModelReply(calls=(ToolCall("c1", None),)), "a tool called None, and a name is a text"),  # type: ignore[arg-type]
    ],
)
def test_a_model_that_gives_no_reply_is_named_and_the_run_can_go_on_from_its_state(reply: Any, said: str) -> None:
    with pytest.raises(RunError, match=said) as caught:
        Agent(Odd(reply), tools=[pay]).run_sync("pay")
    assert agent().resume_sync(caught.value.state).answer == "done"


@pytest.mark.parametrize(("template", "layout"), [("system", "stable"), ("status", "stable"), ("classic", "classic")])
def test_words_of_the_prompt_that_are_no_text_are_an_error(template: str, layout: Any) -> None:
    words: Any = lambda *_: None  # noqa: E731
    with pytest.raises(PolicyError, match=rf"Templates\({template}=\.\.\.\) gave None"):
        agent(templates=Templates(**{template: words}), prompt_layout=layout).run_sync("pay")


@pytest.mark.parametrize("stored", [False, True])
def test_a_run_that_is_started_without_an_event_loop_says_what_to_use_instead(stored: bool, tmp_path: Path) -> None:
    made = agent(store=SqliteStore(tmp_path / "runs.db") if stored else None)
    with pytest.raises(RuntimeError, match=r"use agent\.run_sync\(\)"):
        made.start("pay")

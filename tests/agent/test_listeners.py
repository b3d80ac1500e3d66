"""What listeners can do to a run: observers nothing, blocking ones what they are asked for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, RunError, RunResult, tool
from maymust.events import CallFinished, CallStarted, ModelCallStarted, QuestionAsked, RunEvent
from maymust.models import ScriptedModel, call


@tool
async def pay(amounts: list[int]) -> dict[str, list[int]]:
    """Pay."""
    return {"paid": amounts}


def paid(*listeners: tuple[type[RunEvent], Callable[[Any], Any], bool], **settings: Any) -> RunResult[str]:
    async def scenario() -> RunResult[str]:
        model = ScriptedModel([call("pay", amounts=[1]), call("final_answer", answer="done")])
        run = Agent(model, tools=[pay], **settings).start("pay")
        for kind, handler, blocking in listeners:
            run.on(kind, handler, blocking=blocking)
        return await run

    return asyncio.run(scenario())


def test_an_observer_answers_and_refuses_nothing() -> None:
    def meddle(event: Any) -> None:
        event.output = "nothing was paid"
        event.refusal = "no"

    result = paid((CallStarted, meddle, False), (ModelCallStarted, meddle, False))
    assert result.steps[0].output == {"paid": [1]}
    assert result.answer == "done"


def test_what_an_observer_does_to_an_event_changes_neither_the_steps_nor_what_others_are_shown() -> None:
    def meddle(event: Any) -> None:
        event.arguments["amounts"].append(2)
        event.arguments["more"] = True
        if isinstance(event, CallFinished):
            event.output["paid"].append(2)

    shown: list[Any] = []
    listeners = (
        (CallStarted, meddle, False),
        (CallStarted, lambda event: shown.append(event.arguments), True),
        (CallFinished, meddle, False),
    )
    step = paid(*listeners).steps[0]
    assert (step.arguments, step.output) == ({"amounts": [1]}, {"paid": [1]})
    assert shown == [{"amounts": [1]}]


def test_who_is_asked_sees_the_call_as_it_is_whatever_an_observer_does_to_the_question() -> None:
    shown: list[Any] = []

    def handler(pending: Any) -> bool:
        shown.append(pending.arguments)
        return True

    asking = AskPermissionRequirement("pay", handler=handler)
    paid((QuestionAsked, lambda event: event.call.arguments.clear(), False), requirements=[asking])
    assert shown == [{"amounts": [1]}]


def test_an_observer_learns_afterwards_how_a_blocking_listener_has_answered() -> None:
    seen: list[Any] = []

    def answer(event: CallStarted) -> None:
        event.output = "from the cache"

    paid((CallStarted, seen.append, False), (CallStarted, answer, True))
    assert seen[0].output == "from the cache"


@pytest.mark.parametrize("reason", [None, 3])
@pytest.mark.parametrize("kind", [CallStarted, ModelCallStarted])
def test_a_refusal_without_a_text_refuses_all_the_same(kind: type[RunEvent], reason: Any) -> None:
    with pytest.raises(RunError, match=r"event\.refuse\(\) takes the text of the refusal"):
        paid((kind, lambda event: event.refuse(reason), True))


@pytest.mark.parametrize("answer", [3, call("pay", amounts=[1])])
def test_an_answer_to_a_model_call_that_is_no_reply_is_an_error_and_no_answer_of_the_run(answer: Any) -> None:
    def give(event: ModelCallStarted) -> None:
        event.output = answer

    with pytest.raises(RunError, match="a reply is a ModelReply"):
        paid((ModelCallStarted, give, True))

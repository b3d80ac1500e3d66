"""The answer streams as tentative pieces, and is committed or withdrawn."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, tool
from maymust.agent.answer_stream import StringField
from maymust.events import AnswerCommitted, AnswerDelta, AnswerWithdrawn, ArgumentsDelta, CallAdmitted, RunEvent, RunFinished, TextDelta
from maymust.models import ScriptedModel, call, reply

ANSWERS = (AnswerDelta, AnswerCommitted, AnswerWithdrawn)


@tool
async def lookup(q: str = "") -> str:
    """Look up."""
    return f"found {q}"


@tool
async def broken() -> str:
    """Fail."""
    raise RuntimeError("no")


def _agent(turns: list[Any], **settings: Any) -> Agent[Any]:
    return Agent(ScriptedModel(turns), tools=[lookup, broken], **settings)


def _events(agent: Agent[Any], kind: Any = RunEvent) -> list[Any]:
    async def scenario() -> list[Any]:
        return [event async for event in agent.stream("go") if isinstance(event, kind)]

    return asyncio.run(scenario())


def _story(events: list[Any]) -> list[tuple[str, str]]:
    """The events about the answer; pieces running together are one."""
    story: list[tuple[str, str]] = []
    for event in events:
        if isinstance(event, AnswerDelta):
            if story and story[-1][0] == "shown":
                story[-1] = ("shown", story[-1][1] + event.text)
            else:
                story.append(("shown", event.text))
        elif isinstance(event, AnswerCommitted):
            story.append(("committed", event.answer))
        elif isinstance(event, AnswerWithdrawn):
            story.append(("withdrawn", event.reason))
    return story


LONG = 'She said "no" — 北京 \U0001f600, a backslash \\ and\n\ta new line.'


def test_a_call_of_final_answer_streams_its_text() -> None:
    events = _events(_agent([call("lookup", q="a"), call("final_answer", answer=LONG)]))
    assert _story(events) == [("shown", LONG), ("committed", LONG)]
    assert sum(isinstance(event, AnswerDelta) for event in events) > 3
    kinds = [type(event) for event in events]
    assert kinds.index(AnswerCommitted) < kinds.index(RunFinished)


def test_a_text_answer_streams_too() -> None:
    for agent in (_agent([LONG]), _agent([LONG], final_answer_as_tool=False)):
        assert _story(_events(agent)) == [("shown", LONG), ("committed", LONG)]


def test_an_output_type_streams_its_arguments_as_they_are_written() -> None:
    @dataclass
    class Found:
        page: int
        title: str

    story = _story(_events(_agent([call("final_answer", page=3, title="x")], output_type=Found)))
    assert [kind for kind, _ in story] == ["shown", "committed"]
    assert json.loads(story[0][1]) == json.loads(story[1][1]) == {"page": 3, "title": "x"}


def test_an_answer_that_is_refused_is_withdrawn() -> None:
    agent = _agent([[call("broken"), call("final_answer", answer="early")], call("final_answer", answer="done")])
    (shown, withdrawn, *rest) = _story(_events(agent))
    assert shown == ("shown", "early")
    assert withdrawn[0] == "withdrawn"
    assert "broken failed" in withdrawn[1]
    assert rest == [("shown", "done"), ("committed", "done")]


def test_an_answer_that_does_not_fit_its_type_is_withdrawn() -> None:
    story = _story(_events(_agent([call("final_answer", answer="seven"), call("final_answer", answer=7)], output_type=int)))
    assert [kind for kind, _ in story] == ["shown", "withdrawn", "shown", "committed"]
    assert "answer" in story[1][1]


def test_a_text_before_calls_is_withdrawn_when_the_calls_come() -> None:
    story = _story(_events(_agent([reply("Let me see.", call("lookup", q="a")), call("final_answer", answer="x")])))
    assert [kind for kind, _ in story] == ["shown", "withdrawn", "shown", "committed"]


def test_what_cannot_be_the_answer_is_not_shown_as_one() -> None:
    rules = [ConditionalRequirement("lookup", min_invocations=1)]
    agent = _agent(
        ["I know it.", call("final_answer", answer="no"), call("lookup", q="a"), call("final_answer", answer="x")], requirements=rules
    )
    events = _events(agent)
    assert _story(events) == [("shown", "x"), ("committed", "x")]
    assert "".join(event.text for event in events if isinstance(event, TextDelta)) == "I know it."
    assert any(isinstance(event, ArgumentsDelta) and event.tool == "final_answer" for event in events)


def test_only_the_first_of_several_answers_is_shown() -> None:
    agent = _agent([[call("final_answer", answer="one"), call("final_answer", answer="two")]])
    assert _story(_events(agent)) == [("shown", "one"), ("committed", "one")]


def test_without_pieces_the_answer_is_still_committed() -> None:
    heard: list[str] = []

    async def scenario() -> None:
        run = _agent([call("final_answer", answer="x")]).start("go")
        run.on(AnswerCommitted, lambda event: heard.append(event.answer))
        await run

    asyncio.run(scenario())
    assert heard == ["x"]


def test_an_answer_that_waits_behind_a_pause_is_settled_after_it() -> None:
    turns: list[Any] = [[call("lookup", q="a"), call("final_answer", answer="early")], call("final_answer", answer="late")]
    agent = _agent(turns, requirements=[AskPermissionRequirement(["lookup"])])

    async def scenario() -> None:
        events: list[Any] = []
        first = agent.start("go")
        first.on(AnswerDelta, events.append)
        result = await first
        assert _story(events) == [("shown", "early")]
        events.clear()
        second = agent.start_resume(result.state, {"c1": False})
        for kind in ANSWERS:
            second.on(kind, events.append)
        await second
        assert [kind for kind, _ in _story(events)] == ["withdrawn", "shown", "committed"]

    asyncio.run(scenario())


class Hanging:
    """Streams the beginning of an answer, and then nothing."""

    name = "hanging"
    capabilities = ScriptedModel([]).capabilities

    async def complete(self, request: Any) -> Any:
        raise NotImplementedError

    async def stream(self, request: Any) -> Any:
        async for item in ScriptedModel([call("final_answer", answer="a long answer, which nobody will ever read")]).stream(request):
            yield item
            await asyncio.sleep(0.001 if "re" not in getattr(item, "arguments", "") else 30)


def test_an_answer_is_withdrawn_when_the_run_is_stopped_while_it_streams() -> None:
    async def scenario() -> list[Any]:
        run = Agent(Hanging()).start("go")
        events: list[Any] = []
        shown = asyncio.Event()

        def hear(event: Any) -> None:
            events.append(event)
            shown.set()

        for kind in ANSWERS:
            run.on(kind, hear)
        await shown.wait()
        run.cancel()
        assert (await run).stop_reason == "aborted"
        return events

    assert [kind for kind, _ in _story(asyncio.run(scenario()))] == ["shown", "withdrawn"]


def test_calls_that_may_run_are_admitted_once() -> None:
    rules = [ConditionalRequirement("lookup", max_invocations=1), AskPermissionRequirement(["broken"])]
    agent = _agent(
        [[call("lookup"), call("lookup"), call("broken"), call("unheard_of")], call("final_answer", answer="x")], requirements=rules
    )

    async def scenario() -> list[str]:
        admitted: list[str] = []
        run = agent.start("go")
        run.on(CallAdmitted, lambda event: admitted.append(event.call_id))
        state = (await run).state
        again = agent.start_resume(state, {"c3": True})
        again.on(CallAdmitted, lambda event: admitted.append(event.call_id))
        await again
        return admitted

    assert asyncio.run(scenario()) == ["c1", "c3", "c5"]


# --- two at once ---


class Mirror:
    """A model without a memory of its own: it answers with what it was asked, word by word, giving way after each."""

    name = "mirror"
    capabilities = ScriptedModel([]).capabilities

    def _turn(self, request: Any) -> ScriptedModel:
        asked = next(message.text for message in request.messages if message.role == "user")
        seen = any(message.role == "tool" for message in request.messages)
        return ScriptedModel([call("final_answer", answer=f"{asked} " * 20) if seen else reply(f"{asked} " * 5, call("lookup", q=asked))])

    async def complete(self, request: Any) -> Any:
        return await self._turn(request).complete(request)

    async def stream(self, request: Any) -> Any:
        async for item in self._turn(request).stream(request):
            await asyncio.sleep(0)
            yield item


def test_two_agents_that_share_a_model_object_hear_nothing_of_each_other() -> None:
    model = Mirror()
    agents = {mark: Agent(model, name=mark, tools=[lookup]) for mark in ("alpha", "beta")}

    async def read(mark: str) -> list[Any]:
        run = agents[mark].stream(mark)
        events = [event async for event in run]
        assert {event.run_id for event in events} == {run.id}
        return events

    async def scenario() -> list[list[Any]]:
        return await asyncio.gather(*(read(mark) for mark in agents))

    alpha, beta = asyncio.run(scenario())
    for events, mine, other in ((alpha, "alpha", "beta"), (beta, "beta", "alpha")):
        assert not any(other in repr(event) for event in events)
        assert _story(events)[-2:] == [("shown", f"{mine} " * 20), ("committed", f"{mine} " * 20)]


# --- decoding ---


@given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.lists(st.integers(1, 5), max_size=30))
@settings(deadline=None)
def test_any_text_in_any_pieces_comes_out_whole(text: str, ascii_only: bool, sizes: list[int]) -> None:
    raw = json.dumps({"answer": text}, ensure_ascii=ascii_only)
    field, got, place = StringField(), "", 0
    for size in [*sizes, len(raw)]:
        piece = field.feed(raw[place : place + size])
        # Nothing is shown that would have to be taken back.
        piece.encode()
        got, place = got + piece, place + size
    assert got == text


@pytest.mark.parametrize("raw", ["", "{}", "[]", "null", '{"answer": 7}', '{"other": "x", "answer": "y"}', "x" * 1000, '{"answer": null}'])
def test_what_is_no_text_answer_gives_nothing(raw: str) -> None:
    field = StringField()
    assert "".join(field.feed(letter) for letter in raw) == ""

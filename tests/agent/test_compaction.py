"""Long conversations are made shorter for the model; the history and its verdicts know nothing of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import pytest

from maymust import Agent, PolicyError, RunState
from maymust.agent.compaction import Compacted, Compaction, ShortenOutputs, Summarise, cut, tokens_of, valid
from maymust.events import ConversationCompacted
from maymust.models import Capabilities, ChatModel, Message, ModelRequest, ScriptedModel, ToolCall, call
from tests.models.adapters import opened
from tests.models.agents import RULES, Player, long_agent, read, search, think
from tests.models.picky import Manners, PickyServer

SCRIPT = [
    call("think", text="a" * 400),
    *[one for page in range(6) for one in (call("search", q="q" * 100), call("read", page=page))],
    call("final_answer", answer="done"),
]


def kind(value: object) -> str:
    """The name of its class, which is the same in each process."""
    return type(value).__name__


def agent(model: ChatModel, compaction: Compaction | None) -> Agent:
    return Agent(model, tools=[think, search, read], requirements=RULES[:4], loop_guard=None, compaction=compaction)


def prompts(model: ScriptedModel) -> list[list[str]]:
    """The messages of each request as JSON, without a status at the end."""
    return [[json.dumps(one.to_dict()) for one in request.messages if one.kind != "status"] for request in model.requests]


def breaks(model: ScriptedModel) -> int:
    """How often a request did not begin as the one before it."""
    return sum(after[: len(before)] != before for before, after in pairwise(prompts(model)))


@pytest.mark.parametrize("compaction", [ShortenOutputs(limit=300, keep=100, length=20), Summarise(limit=300, keep=100)], ids=kind)
def test_verdicts_and_history_are_the_same_with_and_without(compaction: Compaction) -> None:
    plain = agent(ScriptedModel(SCRIPT), None).run_sync("go " * 50)
    script = [*SCRIPT] if isinstance(compaction, ShortenOutputs) else SCRIPT
    model = Interpreter(script)
    short = agent(model, compaction).run_sync("go " * 50)
    assert short.answer == plain.answer == "done"
    assert [step.to_dict() | {"call_id": ""} for step in short.steps] == [step.to_dict() | {"call_id": ""} for step in plain.steps]
    assert [permit.to_dict() for permit in short.permits] == [permit.to_dict() for permit in plain.permits]
    assert tokens_of(short.messages) < tokens_of(plain.messages)


class Interpreter(ScriptedModel):
    """A script, and a summary for whoever asks for one."""

    summaries = 0

    async def complete(self, request: ModelRequest) -> Any:
        if not request.tools:
            self.summaries += 1
            return await ScriptedModel([f"summary {self.summaries}"]).complete(request)
        return await super().complete(request)


@pytest.mark.parametrize("compaction", [ShortenOutputs(limit=300, keep=100, length=20), Summarise(limit=300, keep=100)], ids=kind)
def test_what_is_compacted_never_changes_twice(compaction: Compaction) -> None:
    model = Interpreter(SCRIPT)
    seen: list[ConversationCompacted] = []

    async def main() -> Any:
        run = agent(model, compaction).start("go " * 50)
        run.on(ConversationCompacted, seen.append)
        return await run

    result = asyncio.run(main())
    assert result.answer == "done"
    assert seen
    assert all(event.after < event.before for event in seen)
    assert breaks(model) == len(seen) < len(result.turns) / 2
    kept: list[list[str]] = []
    for prompt in prompts(model):
        for earlier in kept:
            assert prompt[: len(earlier)] == earlier
        compacted = [place for place, text in enumerate(prompt) if "left out ..." in text or "[Summary" in text]
        kept = [prompt[: compacted[-1] + 1]] if compacted else []


def test_a_summary_costs_what_it_costs_and_stands_after_the_task() -> None:
    model = Interpreter(SCRIPT)
    result = agent(model, Summarise(limit=300, keep=100)).run_sync("go " * 50)
    assert model.summaries >= 1
    assert result.usage.requests == len(result.turns) + model.summaries
    first, second = result.messages[:2]
    assert first.text.startswith("go go")
    assert (second.kind, second.text) == ("summary", "[Summary of what came before]\nsummary 1")


def test_a_state_that_was_compacted_goes_to_json_and_back() -> None:
    result = agent(Interpreter(SCRIPT), Summarise(limit=300, keep=100)).run_sync("go " * 50)
    loaded = RunState.from_json(result.state.to_json())
    assert loaded.compacted == result.state.compacted > 0
    assert tuple(loaded.messages) == result.messages


def test_nothing_happens_below_the_limit() -> None:
    result = agent(ScriptedModel(SCRIPT), ShortenOutputs()).run_sync("go")
    plain = agent(ScriptedModel(SCRIPT), None).run_sync("go")
    assert result.messages == plain.messages


CALLS = [
    Message("user", "u" * 400),
    Message("assistant", "", (ToolCall("a", "x"), ToolCall("b", "x"))),
    Message("tool", "A" * 400, call_id="a"),
    Message("tool", "B" * 400, call_id="b"),
    Message("assistant", "", (ToolCall("c", "x"),)),
    Message("tool", "C" * 400, call_id="c"),
]


@pytest.mark.parametrize(("keep", "place"), [(1, 4), (90, 4), (150, 1), (320, 0), (10**6, 0)])
def test_no_call_is_parted_from_its_results(keep: int, place: int) -> None:
    assert cut(CALLS, keep) == place


@pytest.mark.parametrize(
    ("made", "wrong"),
    [
        (Compacted((), 1), None),
        (Compacted((), 2), "has no call"),
        (Compacted(tuple(CALLS[1:2]), 4), "no result of a, b"),
        (Compacted((), 0), "replaces 0"),
        (Compacted((), 9), "replaces 9"),
        (Compacted((Message("system", "x"),), 1), "system"),
    ],
)
def test_pairs_are_checked(made: Compacted, wrong: str | None) -> None:
    said = valid(CALLS, made)
    assert said is None if wrong is None else said is not None and wrong in said


class Broken:
    """A compaction that breaks pairs, or raises."""

    limit = 1

    def __init__(self, made: Compacted | None) -> None:
        self.made = made

    async def compact(self, messages: Sequence[Message], model: ChatModel) -> Compacted | None:
        if self.made is None:
            raise RuntimeError("broken")
        return self.made


@pytest.mark.parametrize(
    "made", [None, Compacted((), 2), Compacted((Message("tool", "x", call_id="none"),), 1)], ids=["raises", "parts", "adds"]
)
def test_a_compaction_that_fails_changes_nothing(made: Compacted | None) -> None:
    result = agent(ScriptedModel(SCRIPT), Broken(made)).run_sync("go")
    assert result.messages == agent(ScriptedModel(SCRIPT), None).run_sync("go").messages


def test_errors_of_construction() -> None:
    with pytest.raises(PolicyError, match="limit=0"):
        ShortenOutputs(limit=0)
    with pytest.raises(PolicyError, match="keep=-1"):
        Summarise(keep=-1)
    with pytest.raises(PolicyError, match="ShortenOutputs"):
        Agent(ScriptedModel([]), compaction="shorten")  # type: ignore[arg-type]


@pytest.mark.parametrize("model", ["claude-opus-5-5", "claude-opus-4-8"])
def test_reasoning_that_is_bound_to_the_prefix_is_let_go_with_it(model: str) -> None:
    bound = model == "claude-opus-5-5"

    async def main() -> Any:
        manners = Manners(thinks=True, bound=bound, forced=not bound)
        with PickyServer(Player(16), manners=manners) as server:
            async with opened("messages", server, model) as adapter:
                seen: list[Any] = []
                run = long_agent(adapter, compaction=ShortenOutputs(limit=700, keep=60, length=20)).start("What is it?")
                run.on(ConversationCompacted, seen.append)
                result = await run
            assert [one.status for one in server.seen] == [200] * len(server.seen)
            return result, seen

    result, seen = asyncio.run(main())
    assert result.stop_reason == "final_answer"
    assert seen


def test_the_providers_count_goes_before_our_estimate() -> None:
    async def main() -> int:
        with PickyServer(Player(8)) as server:
            async with opened("chat", server, capabilities=Capabilities()) as adapter:
                seen: list[Any] = []
                run = long_agent(adapter, compaction=ShortenOutputs(limit=10**6, length=20)).start("What is it?")
                run.on(ConversationCompacted, seen.append)
                await run
                return len(seen)

    assert asyncio.run(main()) == 0


@pytest.mark.parametrize("made", [[], "shorter", 7])
def test_a_compaction_that_gives_something_else_is_not_used_and_the_log_says_so(made: object, caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        limit = 1

        async def compact(self, messages: Any, model: Any) -> Any:
            return made

    result = Agent(ScriptedModel(["done"]), compaction=Odd()).run_sync("go " * 50)
    assert result.answer == "done"
    assert "it has to give a Compacted, or None" in caplog.text

"""The table, and pydantic-ai's own features, through a real agent with a scripted `FunctionModel`."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest

pytest.importorskip("pydantic_ai")

from pydantic import BaseModel
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ToolDenied
from pydantic_ai.exceptions import ToolFailed
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from pydantic_ai.settings import ToolOrOutput

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
from maymust.adapters.pydantic_ai import PolicyCapability
from maymust.errors import RunError, UnsupportedRuleError
from tests.adapters.harness import Broken, Scenario, both, check, noting, policy, scenarios


@pytest.fixture(autouse=True)
def _an_event_loop_for_run_sync() -> Iterator[None]:
    """`run_sync` takes the thread's event loop, and leaves one it has made itself open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


class Script:
    """A model that says what its script says, and notes what it was offered."""

    def __init__(self, *turns: Any) -> None:
        self.turns = list(turns)
        self.offers: list[tuple[list[str], Any]] = []

    def next(self, info: AgentInfo) -> Any:
        tools = [tool.name for tool in (*info.function_tools, *info.output_tools)]
        self.offers.append((tools, (info.model_settings or {}).get("tool_choice")))
        return self.turns[len(self.offers) - 1]

    def reply(self, messages: Any, info: AgentInfo) -> ModelResponse:
        turn, place = self.next(info), len(self.offers)
        if isinstance(turn, str):
            return ModelResponse(parts=[TextPart(turn)])
        return ModelResponse(parts=[ToolCallPart(name, args, tool_call_id=f"c{place}.{i}") for i, (name, args) in enumerate(turn)])

    async def stream(self, messages: Any, info: AgentInfo) -> Any:
        turn = self.next(info)
        if isinstance(turn, str):
            for word in turn.split(" "):
                yield word
        else:
            for i, (name, args) in enumerate(turn):
                yield {i: DeltaToolCall(name, str(args).replace("'", '"'), tool_call_id=f"s{len(self.offers)}.{i}")}

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(self.reply, stream_function=self.stream)


def agent_of(script: Script, rules: Policy, execute: Callable[[str], str], **options: Any) -> Any:
    def run(name: str) -> str:
        try:
            return execute(name)
        except Broken as problem:
            raise ToolFailed(str(problem)) from problem

    agent: Any = Agent(script.model, capabilities=[PolicyCapability(rules)], **options)

    @agent.tool_plain
    def think() -> str:
        """Think."""
        return run("think")

    @agent.tool_plain
    def search(q: str) -> str:
        """Search."""
        return run("search")

    @agent.tool_plain
    def refund(amount: float) -> str:
        """Refund."""
        return run("refund")

    return agent


def play(scenario: Scenario) -> str | None:
    try:
        return str(agent_of(Script(*scenario.turns()), scenario.built_policy(), scenario.execute).run_sync("Help me.").output)
    except RunError:
        return None


async def aplay(scenario: Scenario) -> str | None:
    try:
        return str((await agent_of(Script(*scenario.turns()), scenario.built_policy(), scenario.execute).run("Help me.")).output)
    except RunError:
        return None


@pytest.mark.parametrize("way", both(play, aplay))
@pytest.mark.parametrize("row", scenarios())
def test_pydantic_ai_executes_what_the_table_says(row: dict[str, Any], way: Callable[[Scenario], str | None]) -> None:
    check(row, way)


def test_the_permit_is_in_the_request() -> None:
    script, ran = Script([("think", {})], [("search", {"q": "x"})], "done"), list[str]()
    rules = Policy(
        [ConditionalRequirement("think", force_at_step=1), ConditionalRequirement("refund", only_after=["search"])],
        tools=["think", "search", "refund"],
    )
    agent_of(script, rules, noting(ran)).run_sync("Help me.")
    everything = ["think", "search", "refund"]
    assert script.offers == [(everything, ["think"]), (everything, ToolOrOutput(["think", "search"])), (everything, None)]


def test_a_hidden_tool_is_not_sent() -> None:
    script, ran = Script([("refund", {"amount": 5})], "done"), list[str]()
    result = agent_of(script, policy("refund_hidden"), noting(ran)).run_sync("Help me.")
    assert script.offers[0][0] == ["think", "search"]
    (answer,) = [part for message in result.all_messages() for part in message.parts if isinstance(part, ToolReturnPart)]
    assert answer.content == "there is no tool called 'refund'; you may call: think, search, final_answer"
    assert ran == []


def test_runs_do_not_share_a_history() -> None:
    script, ran = Script([("search", {"q": "x"})] * 2, "one", [("search", {"q": "x"})] * 2, "two"), list[str]()
    agent = agent_of(script, policy("two_searches"), noting(ran))
    first = agent.run_sync("Help me.")
    agent.run_sync("Again.", message_history=first.all_messages())
    assert ran == ["search"] * 4


def test_arguments_that_are_invalid_make_a_failed_call() -> None:
    script, ran = Script([("search", {"q": "x"}), ("search", {"wrong": 1}), ("search", {"q": "y"})], "done"), list[str]()
    agent_of(script, policy("two_searches"), noting(ran)).run_sync("Help me.")
    assert ran == ["search", "search"]


class Verdict(BaseModel):
    """The answer."""

    good: bool


def test_a_structured_answer_is_an_answer_for_the_rules() -> None:
    script, ran = Script([("final_result", {"good": False})], [("search", {"q": "x"})], [("final_result", {"good": True})]), list[str]()
    agent = agent_of(script, policy("answer_after_search"), noting(ran), output_type=Verdict)
    assert agent.run_sync("Help me.").output == Verdict(good=True)
    assert [choice for _, choice in script.offers] == [["think", "search", "refund"], ["think", "search", "refund"], None]


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_structured_answer_beside_calls_is_taken_when_they_succeed(succeeds: bool) -> None:
    script = Script([("final_result", {"good": False}), ("think", {})], [("final_result", {"good": True})])

    def execute(name: str) -> str:
        if not succeeds:
            raise Broken
        return "fine"

    agent = agent_of(script, policy("two_searches"), execute, output_type=Verdict)
    assert agent.run_sync("Help me.").output == Verdict(good=not succeeds)


def streamed(script: Script, rules: Policy, ran: list[str]) -> list[str]:
    async def main() -> list[str]:
        async with agent_of(script, rules, noting(ran)).run_stream("Help me.") as result:
            return [text async for text in result.stream_text(delta=True, debounce_by=None)]

    return asyncio.run(main())


def test_streaming_goes_on() -> None:
    ran: list[str] = []
    assert streamed(Script([("search", {"q": "x"})], "all is done"), policy("owes_search"), ran) == ["all", "is", "done"]
    assert ran == ["search"]


def test_a_streamed_text_that_may_not_end_the_run_is_an_error() -> None:
    ran: list[str] = []
    with pytest.raises(RunError, match="the run may not end"):
        streamed(Script("too early", "done"), policy("owes_search"), ran)


def test_events_are_streamed_over_the_whole_run() -> None:
    ran: list[str] = []
    script = Script("too early", [("search", {"q": "x"})], "done")

    async def main() -> Any:
        async with agent_of(script, policy("owes_search"), noting(ran)).run_stream_events("Help me.") as events:
            return [event async for event in events][-1]

    assert asyncio.run(main()).result.output == "done"
    assert ran == ["search"]


def asking() -> Policy:
    rules = [AskPermissionRequirement("refund"), ConditionalRequirement("refund", max_invocations=1)]
    return Policy(rules, tools=["think", "search", "refund"])


@pytest.mark.parametrize("says", [True, False])
def test_a_question_defers_the_call_and_the_run_goes_on_from_its_messages(says: bool) -> None:
    turns = ([("refund", {"amount": 5}), ("search", {"q": "x"})], [("refund", {"amount": 5})], "done")
    script, ran = Script(*turns), list[str]()
    agent = agent_of(script, asking(), noting(ran), output_type=[str, DeferredToolRequests])
    first = agent.run_sync("Help me.")
    (waiting,) = first.output.approvals
    assert (waiting.tool_name, ran) == ("refund", ["search"])
    results = DeferredToolResults(approvals={waiting.tool_call_id: True if says else ToolDenied("no money")})
    second = agent.run_sync(message_history=first.all_messages(), deferred_tool_results=results)
    if not says:
        assert len(second.output.approvals) == 1, "the limit is untouched by a no"
        return
    assert (ran, second.output) == (["search", "refund"], "done")


def test_what_it_cannot_enforce_is_said_at_construction() -> None:
    @requirement(name="slow", targets=["think"])
    async def slow(history: Any) -> None:
        return None

    with pytest.raises(UnsupportedRuleError, match="slow: asynchronous requirements"):
        PolicyCapability(Policy([slow], tools=["think"]))

"""The table, and the features of Strands, through its real agent with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

pytest.importorskip("strands")

from pydantic import BaseModel
from strands import Agent, tool
from strands.hooks import BeforeToolCallEvent
from strands.models.model import Model

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
from maymust.adapters.strands import PolicyPlugin
from maymust.errors import RunError, UnsupportedRuleError
from tests.adapters.harness import Scenario, check, noting, policy, scenarios

pytestmark = pytest.mark.filterwarnings("ignore")


class Scripted(Model):
    """A model that says what its script says, and notes what it was offered."""

    def __init__(self, *turns: Any) -> None:
        self.turns, self.offers, self.heard = list(turns), list[tuple[list[str], Any]](), list[Any]()

    def update_config(self, **config: Any) -> None:
        return None

    def get_config(self) -> Any:
        return {}

    def structured_output(self, *args: Any, **options: Any) -> Any:
        raise NotImplementedError

    async def stream(
        self, messages: Any, tool_specs: Any = None, system_prompt: Any = None, *, tool_choice: Any = None, **rest: Any
    ) -> AsyncIterator[Any]:
        self.offers.append(([spec["name"] for spec in tool_specs or ()], tool_choice))
        self.heard.append(messages[-1])
        place = len(self.offers) - 1
        turn = self.turns[place]
        yield {"messageStart": {"role": "assistant"}}
        if isinstance(turn, str):
            yield {"contentBlockStart": {"start": {}}}
            for word in turn.split(" "):
                yield {"contentBlockDelta": {"delta": {"text": word}}}
            yield {"contentBlockStop": {}}
        else:
            for i, (name, args) in enumerate(turn):
                yield {"contentBlockStart": {"start": {"toolUse": {"name": name, "toolUseId": f"c{place}.{i}"}}}}
                yield {
                    "contentBlockDelta": {
                        "delta": {"toolUse": {"input": str(args).replace("'", '"').replace("True", "true").replace("False", "false")}}
                    }
                }
                yield {"contentBlockStop": {}}
        yield {"messageStop": {"stopReason": "end_turn" if isinstance(turn, str) else "tool_use"}}


def agent_of(model: Scripted, rules: Policy, execute: Callable[[str], str], **options: Any) -> Any:
    @tool
    def think() -> str:
        """Think."""
        return execute("think")

    @tool
    def search(q: str) -> str:
        """Search."""
        return execute("search")

    @tool
    def refund(amount: float) -> str:
        """Refund."""
        return execute("refund")

    return Agent(model=model, tools=[think, search, refund], plugins=[PolicyPlugin(rules)], callback_handler=None, **options)


def text_of(result: Any) -> str:
    return "".join(block.get("text", "") for block in result.message["content"])


def play(scenario: Scenario) -> str | None:
    try:
        return text_of(agent_of(Scripted(*scenario.turns()), scenario.built_policy(), scenario.execute)("Help me."))
    except RunError:
        return None


def play_streamed(scenario: Scenario) -> str | None:
    async def main() -> Any:
        agent = agent_of(Scripted(*scenario.turns()), scenario.built_policy(), scenario.execute)
        return [event async for event in agent.stream_async("Help me.")][-1]["result"]

    try:
        return text_of(asyncio.run(main()))
    except RunError:
        return None


@pytest.mark.parametrize("way", [play, play_streamed])
@pytest.mark.parametrize("row", scenarios())
def test_strands_executes_what_the_table_says(row: dict[str, Any], way: Callable[[Scenario], str | None]) -> None:
    check(row, way)


def test_the_permit_is_in_the_request() -> None:
    model = Scripted([("think", {})], "done")
    agent_of(model, policy("think_first"), noting([]))("Help me.")
    assert model.offers == [(["think"], {"tool": {"name": "think"}}), (["think", "search", "refund"], None)]


def test_the_model_reads_why_a_call_was_refused() -> None:
    model = Scripted([("search", {"q": "x"})], "done")
    agent_of(model, policy("search_after_think"), noting([]))("Help me.")
    (block,) = model.heard[-1]["content"]
    assert block["toolResult"]["content"] == [{"text": "not now: think has to succeed first; you may call: think, refund, final_answer"}]


def test_invocations_of_one_agent_do_not_share_a_history() -> None:
    ran: list[str] = []
    agent = agent_of(
        Scripted([("search", {"q": "x"})] * 2, "one", [("search", {"q": "x"})] * 2, "two"), policy("two_searches"), noting(ran)
    )
    agent("Help me.")
    agent("Again.")
    assert ran == ["search"] * 4


def test_a_rejected_text_is_not_streamed() -> None:
    async def main() -> list[str]:
        agent = agent_of(Scripted("too early", [("search", {"q": "x"})], "all done"), policy("owes_search"), noting([]))
        return [event["data"] async for event in agent.stream_async("Help me.") if "data" in event]

    assert asyncio.run(main()) == ["all", "done"]


class Verdict(BaseModel):
    """The answer."""

    good: bool


def test_a_structured_answer_is_an_answer_for_the_rules() -> None:
    ran: list[str] = []
    model = Scripted([("Verdict", {"good": False})], [("search", {"q": "x"})], [("Verdict", {"good": True})])
    result = agent_of(model, policy("answer_after_search"), noting(ran))("Help me.", structured_output_model=Verdict)
    assert result.structured_output == Verdict(good=True)
    assert ["Verdict" in names for names, _ in model.offers] == [False, False, True]


def test_nobody_waits_for_a_call_that_a_hook_cancelled() -> None:
    ran: list[str] = []
    rules = Policy([ConditionalRequirement("search", max_invocations=1)], tools=["think", "search", "refund"])
    agent = agent_of(Scripted([("search", {"q": "bad"}), ("search", {"q": "x"})], "done"), rules, noting(ran))

    def no_bad(event: Any) -> None:
        if event.tool_use["input"].get("q") == "bad":
            event.cancel_tool = "bad word"

    agent.add_hook(no_bad, BeforeToolCallEvent)
    agent("Help me.")
    assert ran == ["search"]


def asking() -> Policy:
    rules = [AskPermissionRequirement("refund"), ConditionalRequirement("refund", max_invocations=1)]
    return Policy(rules, tools=["think", "search", "refund"])


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize("says", [True, False])
def test_a_question_interrupts_the_agent_and_it_goes_on(says: bool, same_process: bool) -> None:
    ran: list[str] = []
    turns = ([("refund", {"amount": 5}), ("search", {"q": "x"})], [("refund", {"amount": 6})], "done")
    agent = agent_of(Scripted(*turns), asking(), noting(ran))
    first = agent("Help me.")
    (question,) = first.interrupts
    assert (first.stop_reason, question.reason, ran) == (
        "interrupt",
        {"tool": "refund", "arguments": {"amount": 5}, "reasons": []},
        ["search"],
    )
    if not same_process:
        agent._plugin_registry._plugins["maymust"]._runs.clear()
    second = agent([{"interruptResponse": {"interruptId": question.id, "response": says}}])
    if says:
        assert (ran, text_of(second)) == (["search", "refund"], "done")
    else:
        assert (ran, second.stop_reason) == (["search"], "interrupt"), "the limit is untouched by a no"


def test_your_own_calls_of_tools_go_through() -> None:
    ran: list[str] = []
    agent = agent_of(Scripted("done"), policy("search_after_think"), noting(ran))
    agent.tool.search(q="x")
    assert ran == ["search"]


def test_what_it_cannot_enforce_is_said_at_construction() -> None:
    @requirement(name="slow", targets=["think"])
    async def slow(history: Any) -> None:
        return None

    with pytest.raises(UnsupportedRuleError, match="slow: asynchronous requirements"):
        PolicyPlugin(Policy([slow], tools=["think"]))

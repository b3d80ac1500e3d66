"""The table, and the features of the OpenAI Agents SDK, through its real runner with its own scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("agents.testing")

from agents import Agent, RunConfig, Runner, SQLiteSession, ToolGuardrailFunctionOutput, ToolInputGuardrail, function_tool
from agents.testing import ScriptedModel, assistant_message, function_call
from pydantic import BaseModel

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
from maymust.adapters.openai_agents import PolicyRunner
from maymust.errors import RunError, UnsupportedRuleError
from tests.adapters.harness import Scenario, both, check, noting, policy, scenarios

QUIET = RunConfig(tracing_disabled=True)


def model_of(*turns: Any) -> ScriptedModel:
    steps = []
    for place, turn in enumerate(turns):
        if isinstance(turn, str):
            steps.append([assistant_message(turn)])
        else:
            steps.append([function_call(name, json.dumps(args), call_id=f"c{place}.{i}") for i, (name, args) in enumerate(turn)])
    return ScriptedModel(steps)


def agent_of(model: ScriptedModel, execute: Callable[[str], str], **options: Any) -> Agent:
    @function_tool
    def think() -> str:
        """Think."""
        return execute("think")

    @function_tool
    def search(q: str) -> str:
        """Search."""
        return execute("search")

    @function_tool
    def refund(amount: float) -> str:
        """Refund."""
        return execute("refund")

    return Agent(name="Helper", model=model, tools=[think, search, refund], **options)


def play(scenario: Scenario) -> str | None:
    agent = agent_of(model_of(*scenario.turns()), scenario.execute)
    try:
        return str(PolicyRunner(scenario.built_policy()).run_sync(agent, "Help me.", run_config=QUIET).final_output)
    except RunError:
        return None


async def aplay(scenario: Scenario) -> str | None:
    agent = agent_of(model_of(*scenario.turns()), scenario.execute)
    try:
        result = PolicyRunner(scenario.built_policy()).run_streamed(agent, "Help me.", run_config=QUIET)
        _ = [event async for event in result.stream_events()]
        return str(result.final_output)
    except RunError:
        return None


@pytest.fixture(autouse=True)
def _an_event_loop_for_run_sync() -> Any:
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.parametrize("way", both(play, aplay))
@pytest.mark.parametrize("row", scenarios())
def test_the_openai_agents_sdk_executes_what_the_table_says(row: dict[str, Any], way: Callable[[Scenario], str | None]) -> None:
    check(row, way)


def test_the_permit_is_in_the_request() -> None:
    model, ran = model_of([("think", {})], [("search", {"q": "x"})], "done"), list[str]()
    rules = Policy([ConditionalRequirement("think", force_at_step=1)], tools=["think", "search", "refund"])
    PolicyRunner(rules).run_sync(agent_of(model, noting(ran)), "Help me.", run_config=QUIET)
    offers = [([tool.name for tool in call.tools], call.model_settings.tool_choice) for call in model.calls]
    assert offers == [(["think"], "think"), (["think", "search", "refund"], None), (["think", "search", "refund"], None)]


def test_the_model_reads_why_a_call_was_refused() -> None:
    model, ran = model_of([("search", {"q": "x"})], "done"), list[str]()
    result = PolicyRunner(policy("search_after_think")).run_sync(agent_of(model, noting(ran)), "Help me.", run_config=QUIET)
    outputs = [item.output for item in result.new_items if item.type == "tool_call_output_item"]
    assert outputs == ["not now: think has to succeed first; you may call: think, refund, final_answer"]


def test_runs_do_not_share_a_history_and_the_agent_is_left_alone() -> None:
    model, ran = model_of([("search", {"q": "x"})] * 2, "one", [("search", {"q": "x"})] * 2, "two"), list[str]()
    agent, runner = agent_of(model, noting(ran)), PolicyRunner(policy("two_searches"))
    session = SQLiteSession("1")
    for question in ("Help me.", "Again."):
        runner.run_sync(agent, question, session=session, run_config=QUIET)
    assert ran == ["search"] * 4
    assert all(tool.tool_input_guardrails is None for tool in agent.tools)


def test_streaming_goes_on() -> None:
    model, ran = model_of("early", [("search", {"q": "x"})], "all done"), list[str]()

    async def main() -> list[str]:
        result = PolicyRunner(policy("owes_search")).run_streamed(agent_of(model, noting(ran)), "Help me.", run_config=QUIET)
        return [event.name async for event in result.stream_events() if event.type == "run_item_stream_event"]

    assert asyncio.run(main()) == ["tool_called", "tool_output", "message_output_created"]
    assert ran == ["search"]


class Verdict(BaseModel):
    good: bool


def test_a_structured_answer_is_an_answer_for_the_rules() -> None:
    model, ran = model_of('{"good": false}', [("search", {"q": "x"})], '{"good": true}'), list[str]()
    agent = agent_of(model, noting(ran), output_type=Verdict)
    assert PolicyRunner(policy("answer_after_search")).run_sync(agent, "Help me.", run_config=QUIET).final_output == Verdict(good=True)


def test_a_tool_may_end_the_run_only_where_the_rules_let_it_end() -> None:
    model, ran = model_of([("think", {})], [("search", {"q": "x"})]), list[str]()
    agent = agent_of(model, noting(ran), tool_use_behavior="stop_on_first_tool")
    assert PolicyRunner(policy("owes_search")).run_sync(agent, "Help me.", run_config=QUIET).final_output == "search went well"
    assert ran == ["think", "search"]


def test_the_agents_own_guardrails_go_on_and_nobody_waits_for_what_they_rejected() -> None:
    model, ran = model_of([("search", {"q": "bad"}), ("search", {"q": "x"})], "done"), list[str]()
    agent = agent_of(model, noting(ran))

    def no_bad(data: Any) -> Any:
        bad = "bad" in data.context.tool_arguments
        return ToolGuardrailFunctionOutput.reject_content("bad word") if bad else ToolGuardrailFunctionOutput.allow()

    agent.tools[1].tool_input_guardrails = [ToolInputGuardrail(no_bad)]
    rules = Policy([ConditionalRequirement("search", max_invocations=1)], tools=["think", "search", "refund"])
    PolicyRunner(rules).run_sync(agent, "Help me.", run_config=QUIET)
    assert ran == ["search"]


def asking() -> Policy:
    rules = [AskPermissionRequirement("refund"), ConditionalRequirement("refund", max_invocations=1)]
    return Policy(rules, tools=["think", "search", "refund"])


@pytest.mark.parametrize("says", [True, False])
def test_a_question_interrupts_the_run_and_it_goes_on_from_its_state(says: bool) -> None:
    model, ran = model_of([("refund", {"amount": 5}), ("search", {"q": "x"})], [("refund", {"amount": 6})], "done"), list[str]()
    agent, runner = agent_of(model, noting(ran)), PolicyRunner(asking())
    first = runner.run_sync(agent, "Help me.", run_config=QUIET)
    (waiting,) = first.interruptions
    assert waiting.name == "refund"
    assert "refund" not in ran
    state = first.to_state()
    (state.approve if says else state.reject)(waiting)
    second = runner.run_sync(agent, state, run_config=QUIET)
    if says:
        assert (sorted(ran), second.final_output) == (["refund", "search"], "done")
    else:
        assert (ran, len(second.interruptions)) == (["search"], 1), "the limit is untouched by a no"


def test_what_it_cannot_enforce_is_said_before_the_run() -> None:
    @requirement(name="slow", targets=["think"])
    async def slow(history: Any) -> None:
        return None

    with pytest.raises(UnsupportedRuleError, match="slow: asynchronous requirements"):
        PolicyRunner(Policy([slow], tools=["think"]))
    agent = agent_of(model_of("done"), noting([]), handoffs=[Agent(name="Other")])
    with pytest.raises(UnsupportedRuleError, match="handoffs: "):
        PolicyRunner(policy("two_searches")).run_sync(agent, "Help me.")
    with pytest.warns(UserWarning, match="handoffs: "):
        PolicyRunner(policy("two_searches"), strict=False).run_sync(agent, "Help me.", run_config=QUIET)


def test_a_state_of_an_unknown_run_is_refused() -> None:
    state = Runner.run_sync(agent_of(model_of("done"), noting([])), "Help me.", run_config=QUIET).to_state()
    with pytest.raises(RunError, match="its steps are not known here"):
        PolicyRunner(policy("two_searches")).run_sync(agent_of(model_of("done"), noting([])), state)

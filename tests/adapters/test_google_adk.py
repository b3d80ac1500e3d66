"""The table, and ADK's own features, through a real runner with a scripted model."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable
from typing import Any

import pytest

pytest.importorskip("google.adk")

from google.adk.agents import LlmAgent
from google.adk.agents.run_config import RunConfig, StreamingMode
from google.adk.apps import App
from google.adk.models import BaseLlm, LlmResponse
from google.adk.plugins.base_plugin import BasePlugin
from google.adk.runners import InMemoryRunner
from google.adk.tools import FunctionTool
from google.genai import types
from pydantic import BaseModel

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
from maymust.adapters.google_adk import PolicyPlugin
from maymust.errors import RunError, UnsupportedRuleError
from tests.adapters.harness import Broken, Scenario, check, noting, policy, scenarios

pytestmark = pytest.mark.filterwarnings("ignore")


class Scripted(BaseLlm):
    """A model that says what its script says, and notes what it was offered."""

    script: list[Any]
    offers: list[Any]

    async def generate_content_async(self, llm_request: Any, stream: bool = False) -> AsyncGenerator[LlmResponse, None]:
        declared = [one.name for tool in llm_request.config.tools or () for one in tool.function_declarations or ()]
        config = llm_request.config.tool_config
        self.offers.append((declared, config.function_calling_config if config else None))
        turn = self.script[len(self.offers) - 1]
        if isinstance(turn, str):
            parts = [types.Part(text=turn)]
            if stream:
                yield LlmResponse(content=types.Content(role="model", parts=parts), partial=True)
        else:
            parts = [types.Part(function_call=types.FunctionCall(name=name, args=args)) for name, args in turn]
        yield LlmResponse(content=types.Content(role="model", parts=parts), partial=False)


class ErrorsAreResults(BasePlugin):
    """As ADK's own retry plugin does it: an exception is a result."""

    async def on_tool_error_callback(self, *, tool: Any, tool_args: Any, tool_context: Any, error: Exception) -> Any:
        return {"error": str(error)} if isinstance(error, Broken) else None


def runner_of(script: Scripted, rules: Policy, execute: Callable[[str], str], *, confirm: bool = False, **options: Any) -> InMemoryRunner:
    def think() -> str:
        """Think."""
        return execute("think")

    def search(q: str) -> str:
        """Search."""
        return execute("search")

    def refund(amount: float) -> str:
        """Refund."""
        return execute("refund")

    agent = LlmAgent(name="helper", model=script, tools=[think, search, FunctionTool(refund, require_confirmation=confirm)], **options)
    return InMemoryRunner(app=App(name="app", root_agent=agent, plugins=[PolicyPlugin(rules), ErrorsAreResults(name="errors")]))


def scripted(*turns: Any) -> Scripted:
    return Scripted(model="scripted", script=list(turns), offers=[])


async def ask(runner: InMemoryRunner, message: Any = "Help me.", session: str = "s", **options: Any) -> list[Any]:
    if await runner.session_service.get_session(app_name="app", user_id="u", session_id=session) is None:
        await runner.session_service.create_session(app_name="app", user_id="u", session_id=session)
    part = types.Part(text=message) if isinstance(message, str) else message
    content = types.Content(role="user", parts=[part])
    return [event async for event in runner.run_async(user_id="u", session_id=session, new_message=content, **options)]


def last_text(events: list[Any]) -> str:
    return "".join(part.text or "" for part in events[-1].content.parts)


def played(scenario: Scenario, **options: Any) -> str | None:
    runner = runner_of(scripted(*scenario.turns()), scenario.built_policy(), scenario.execute)
    try:
        return last_text(asyncio.run(ask(runner, **options)))
    except RuntimeError as problem:
        if not isinstance(problem.__cause__, RunError):
            raise
        return None


def play(scenario: Scenario) -> str | None:
    return played(scenario)


def play_streamed(scenario: Scenario) -> str | None:
    return played(scenario, run_config=RunConfig(streaming_mode=StreamingMode.SSE))


@pytest.mark.parametrize("way", [play, play_streamed])
@pytest.mark.parametrize("row", scenarios())
def test_adk_executes_what_the_table_says(row: dict[str, Any], way: Callable[[Scenario], str | None]) -> None:
    check(row, way)


def test_the_permit_is_in_the_request() -> None:
    script = scripted([("think", {})], "done")
    asyncio.run(ask(runner_of(script, policy("think_first"), noting([]))))
    (first, forced), (then, free) = script.offers
    assert (first, forced.mode.value, forced.allowed_function_names) == (["think"], "ANY", ["think"])
    assert (then, free) == (["think", "search", "refund"], None)


def test_the_model_reads_why_a_call_was_refused() -> None:
    events = asyncio.run(ask(runner_of(scripted([("search", {"q": "x"})], "done"), policy("search_after_think"), noting([]))))
    (answer,) = [one for event in events for one in event.get_function_responses()]
    assert answer.response == {"error": "not now: think has to succeed first; you may call: think, refund, final_answer"}


def test_invocations_of_one_session_do_not_share_a_history() -> None:
    ran: list[str] = []
    turns = [[("search", {"q": "x"})] * 2, "one", [("search", {"q": "x"})] * 2, "two"]
    runner = runner_of(scripted(*turns), policy("two_searches"), noting(ran))

    async def main() -> None:
        await ask(runner)
        await ask(runner)

    asyncio.run(main())
    assert ran == ["search"] * 4


class Verdict(BaseModel):
    good: bool


def test_a_structured_answer_is_an_answer_for_the_rules() -> None:
    ran: list[str] = []
    answer = [("set_model_response", {"good": True})]
    script = scripted([("set_model_response", {"good": False})], [("search", {"q": "x"})], answer)
    events = asyncio.run(ask(runner_of(script, policy("answer_after_search"), noting(ran), output_schema=Verdict)))
    assert ran == ["search"]
    assert Verdict.model_validate_json(last_text(events)) == Verdict(good=True)
    assert ["set_model_response" in names for names, _ in script.offers] == [False, False, True]


def asking() -> Policy:
    rules = [AskPermissionRequirement("refund"), ConditionalRequirement("refund", max_invocations=1)]
    return Policy(rules, tools=["think", "search", "refund"])


def limited() -> Policy:
    return Policy([ConditionalRequirement("refund", max_invocations=1)], tools=["think", "search", "refund"])


@pytest.mark.parametrize("own", [True, False])
@pytest.mark.parametrize("says", [True, False])
def test_a_call_waits_for_a_confirmation_and_its_run_goes_on(says: bool, own: bool) -> None:
    ran: list[str] = []
    turns = [[("refund", {"amount": 5}), ("search", {"q": "x"})], [("refund", {"amount": 6})], "done"]
    runner = runner_of(scripted(*turns), asking() if own else limited(), noting(ran), confirm=not own)

    async def main() -> list[Any]:
        events = await ask(runner)
        (request,) = [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]
        assert ran == ["search"]
        answer = types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": says})
        return await ask(runner, types.Part(function_response=answer))

    events = asyncio.run(main())
    if says:
        assert (ran, last_text(events)) == (["search", "refund"], "done")
    else:
        assert ran == ["search"]
        assert any(call.name == "adk_request_confirmation" for event in events for call in event.get_function_calls()), "asked again"


def test_a_confirmation_for_an_unknown_run_is_an_error() -> None:
    turns = [[("refund", {"amount": 5})], "done"]
    runner = runner_of(scripted(*turns), asking(), noting([]))

    async def main() -> None:
        events = await ask(runner)
        (request,) = [call for event in events for call in event.get_function_calls() if call.name == "adk_request_confirmation"]
        runner.plugin_manager.plugins[0]._waiting.clear()
        await ask(
            runner, types.Part(function_response=types.FunctionResponse(id=request.id, name=request.name, response={"confirmed": True}))
        )

    with pytest.raises(RuntimeError, match="its steps are not known here"):
        asyncio.run(main())


def test_what_it_cannot_enforce_is_said_at_construction() -> None:
    @requirement(name="slow", targets=["think"])
    async def slow(history: Any) -> None:
        return None

    with pytest.raises(UnsupportedRuleError, match="slow: asynchronous requirements"):
        PolicyPlugin(Policy([slow], tools=["think"]))

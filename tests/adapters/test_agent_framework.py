"""The table, and the features of Microsoft Agent Framework, through its real agent with a scripted chat client."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

pytest.importorskip("agent_framework")

from agent_framework import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    tool,
)
from pydantic import BaseModel

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
from maymust.adapters.agent_framework import PolicyMiddleware
from maymust.errors import RunError, UnsupportedRuleError
from tests.adapters.harness import Scenario, check, noting, policy, scenarios

pytestmark = pytest.mark.filterwarnings("ignore")


class Scripted(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A chat client that says what its script says, and notes what it was offered."""

    def __init__(self, *turns: Any) -> None:
        super().__init__()
        self.turns, self.offers = list(turns), list[tuple[list[str], Any]]()

    def _contents(self, options: Any) -> list[Any]:
        self.offers.append(([one.name for one in options.get("tools") or []], options.get("tool_choice")))
        place = len(self.offers) - 1
        turn = self.turns[place]
        if isinstance(turn, str):
            return [Content.from_text(turn)]
        return [Content.from_function_call(call_id=f"c{place}.{i}", name=name, arguments=args) for i, (name, args) in enumerate(turn)]

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **rest: Any) -> Any:
        contents = self._contents(options)
        if stream:

            async def updates() -> Any:
                for one in contents:
                    yield ChatResponseUpdate(role="assistant", contents=[one])

            return ResponseStream(updates(), finalizer=ChatResponse.from_updates)

        async def response() -> ChatResponse:
            return ChatResponse(messages=[Message(role="assistant", contents=contents)], response_format=options.get("response_format"))

        return response()


def agent_of(client: Scripted, rules: Policy, execute: Callable[[str], str], **options: Any) -> Any:
    @tool(approval_mode="never_require")
    def think() -> str:
        """Think."""
        return execute("think")

    @tool(approval_mode="never_require")
    def search(q: str) -> str:
        """Search."""
        return execute("search")

    @tool(approval_mode=options.pop("approval_mode", "never_require"))
    def refund(amount: float) -> str:
        """Refund."""
        return execute("refund")

    return Agent(client, tools=[think, search, refund], middleware=[PolicyMiddleware(rules)], **options)


def play(scenario: Scenario) -> str | None:
    async def main() -> str:
        agent = agent_of(Scripted(*scenario.turns()), scenario.built_policy(), scenario.execute)
        return str((await agent.run("Help me.")).messages[-1].text)

    try:
        return asyncio.run(main())
    except RunError:
        return None


def play_streamed(scenario: Scenario) -> str | None:
    async def main() -> str:
        stream = agent_of(Scripted(*scenario.turns()), scenario.built_policy(), scenario.execute).run("Help me.", stream=True)
        return "".join([update.text async for update in stream])

    try:
        return asyncio.run(main())
    except RunError:
        return None


@pytest.mark.parametrize("way", [play, play_streamed])
@pytest.mark.parametrize("row", scenarios())
def test_agent_framework_executes_what_the_table_says(row: dict[str, Any], way: Callable[[Scenario], str | None]) -> None:
    check(row, way)


def run(agent: Any, *questions: Any, **options: Any) -> list[Any]:
    async def main() -> list[Any]:
        return [await agent.run(question, **options) for question in questions]

    return asyncio.run(main())


def test_the_permit_is_in_the_request() -> None:
    client, ran = Scripted([("think", {})], [("search", {"q": "x"})], "done"), list[str]()
    run(agent_of(client, policy("think_first"), noting(ran)), "Help me.")
    everything = ["think", "search", "refund"]
    assert client.offers[0] == (["think"], {"mode": "required", "required_function_name": "think"})
    assert [tools for tools, _ in client.offers[1:]] == [everything, everything]


def test_the_agents_options_are_left_alone() -> None:
    client = Scripted([("think", {})], "done")
    agent = agent_of(client, policy("think_first"), noting([]))
    before = dict(agent.default_options)
    run(agent, "Help me.")
    assert dict(agent.default_options) == before


def test_the_model_reads_why_a_call_was_refused() -> None:
    ran: list[str] = []
    (response,) = run(agent_of(Scripted([("search", {"q": "x"})], "done"), policy("search_after_think"), noting(ran)), "Help me.")
    results = [part.result for message in response.messages for part in message.contents if part.type == "function_result"]
    assert results == ["not now: think has to succeed first; you may call: think, refund, final_answer"]


def test_runs_of_one_session_do_not_share_a_history() -> None:
    client, ran = Scripted([("search", {"q": "x"})] * 2, "one", [("search", {"q": "x"})] * 2, "two"), list[str]()
    run(agent_of(client, policy("two_searches"), noting(ran)), "Help me.", "Again.", session=AgentSession())
    assert ran == ["search"] * 4


class Verdict(BaseModel):
    good: bool


def test_a_structured_answer_is_an_answer_for_the_rules() -> None:
    client, ran = Scripted('{"good": false}', [("search", {"q": "x"})], '{"good": true}'), list[str]()
    agent = agent_of(client, policy("answer_after_search"), noting(ran))
    (response,) = run(agent, "Help me.", options={"response_format": Verdict})
    assert response.value == Verdict(good=True)
    assert ran == ["search"]


def asking() -> Policy:
    rules = [AskPermissionRequirement("refund"), ConditionalRequirement("refund", max_invocations=1)]
    return Policy(rules, tools=["think", "search", "refund"])


@pytest.mark.parametrize(
    "rules", [asking(), Policy([ConditionalRequirement("refund", max_invocations=1)], tools=["think", "search", "refund"])]
)
@pytest.mark.parametrize("says", [True, False])
def test_a_run_waits_for_an_approval_and_goes_on_in_its_session(says: bool, rules: Policy) -> None:
    turns = ([("search", {"q": "x"})], [("refund", {"amount": 5})], [("refund", {"amount": 6})], "done")
    client, ran, session = Scripted(*turns), list[str](), AgentSession()
    mode = "never_require" if len(rules.requirements) == 2 else "always_require"
    agent = agent_of(client, rules, noting(ran), approval_mode=mode)

    async def main() -> Any:
        first = await agent.run("Help me.", session=session)
        (request,) = first.user_input_requests
        assert ran == ["search"]
        answer = request.to_function_approval_response(says)
        return await agent.run(Message(role="user", contents=[answer]), session=session)

    second = asyncio.run(main())
    if says:
        assert ran == ["search", "refund"]
    else:
        assert (ran, len(second.user_input_requests)) == (["search"], 1), "the limit is untouched by a no"


def test_what_it_cannot_enforce_is_said_at_construction() -> None:
    @requirement(name="slow", targets=["think"])
    async def slow(history: Any) -> None:
        return None

    with pytest.raises(UnsupportedRuleError, match="slow: asynchronous requirements"):
        PolicyMiddleware(Policy([slow], tools=["think"]))

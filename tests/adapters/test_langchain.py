"""The table, and LangChain's own features, through a real `create_agent` with a scripted chat model."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

pytest.importorskip("langchain.agents")

from langchain.agents import create_agent
from langchain.agents.middleware import HumanInTheLoopMiddleware, ToolRetryMiddleware, wrap_tool_call
from langchain.agents.structured_output import ToolStrategy
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy, requirement
from maymust.adapters.langchain import PolicyMiddleware
from maymust.errors import RunError, UnsupportedRuleError
from tests.adapters.harness import Broken, Scenario, both, check, noting, policy, scenarios

ASK = {"messages": [{"role": "user", "content": "Help me."}]}


class Scripted(BaseChatModel):
    """A chat model that says what its script says, and notes what it was offered."""

    script: list[Any]
    offers: list[Any]
    offered: tuple[list[str], Any] = ([], None)
    shared: dict[str, int]

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **settings: Any) -> Any:
        names = [one.name for one in tools]
        return self.model_copy(update={"offered": (names, tool_choice)})

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        place = self.shared["turn"] = self.shared.get("turn", -1) + 1
        self.offers.append(self.offered)
        turn = self.script[place]
        if isinstance(turn, str):
            message = AIMessage(turn)
        else:
            calls = [{"name": name, "args": args, "id": f"c{place}.{i}"} for i, (name, args) in enumerate(turn)]
            message = AIMessage("", tool_calls=calls)
        return ChatResult(generations=[ChatGeneration(message=message)])


def scripted(*turns: Any) -> Scripted:
    return Scripted(script=list(turns), offers=[], shared={})


def tools_of(execute: Callable[[str], str]) -> list[Any]:
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

    for one in (think, search, refund):
        one.handle_tool_error = True
    return [think, search, refund]


def agent_of(model: Scripted, rules: Policy, ran: list[str], **options: Any) -> Any:
    before = options.pop("before", [])
    after = {"middleware": [*before, PolicyMiddleware(rules)], **options}
    return create_agent(model, tools=tools_of(noting(ran)), **after)


def built(scenario: Scenario) -> Any:
    failing = ToolRetryMiddleware(max_retries=0, on_failure="continue")
    model = scripted(*scenario.turns())
    return create_agent(model, tools=tools_of(scenario.execute), middleware=[failing, PolicyMiddleware(scenario.built_policy())])


def play(scenario: Scenario) -> str | None:
    try:
        return str(built(scenario).invoke(ASK)["messages"][-1].content)
    except RunError:
        return None


async def aplay(scenario: Scenario) -> str | None:
    try:
        return str((await built(scenario).ainvoke(ASK))["messages"][-1].content)
    except RunError:
        return None


@pytest.mark.parametrize("way", both(play, aplay))
@pytest.mark.parametrize("row", scenarios())
def test_langchain_executes_what_the_table_says(row: dict[str, Any], way: Callable[[Scenario], str | None]) -> None:
    check(row, way)


def test_the_permit_is_in_the_request() -> None:
    ran: list[str] = []
    model = scripted([("think", {})], [("search", {"q": "x"})], "done")
    rules = Policy([ConditionalRequirement("think", force_at_step=1)], tools=["think", "search", "refund"])
    agent_of(model, rules, ran).invoke(ASK)
    assert model.offers == [(["think"], "think"), (["think", "search", "refund"], None), (["think", "search", "refund"], None)]


def test_the_model_reads_why_a_call_was_refused() -> None:
    ran: list[str] = []
    model = scripted([("search", {"q": "x"})], "done")
    result = agent_of(model, policy("search_after_think"), ran).invoke(ASK)
    (answer,) = [one for one in result["messages"] if isinstance(one, ToolMessage)]
    assert answer.content == "not now: think has to succeed first; you may call: think, refund, final_answer"
    assert ran == []


def test_runs_do_not_share_a_history() -> None:
    ran: list[str] = []
    model = scripted([("search", {"q": "x"})] * 2, "one", [("search", {"q": "x"})] * 2, "two")
    agent = agent_of(model, policy("two_searches"), ran, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    agent.invoke(ASK, thread)
    agent.invoke(ASK, thread)
    assert ran == ["search"] * 4


def test_streaming_goes_on() -> None:
    ran: list[str] = []
    model = scripted("early", [("search", {"q": "x"})], "done")
    parts = list(agent_of(model, policy("owes_search"), ran).stream(ASK, stream_mode="updates"))
    assert ran == ["search"]
    assert [next(iter(part)) for part in parts].count("model") == 3
    tokens = [chunk.content for chunk, _ in agent_of(scripted("all done"), policy("two_searches"), ran).stream(ASK, stream_mode="messages")]
    assert "".join(tokens) == "all done"


class Verdict(BaseModel):
    """The answer."""

    good: bool


def test_a_structured_answer_is_an_answer_for_the_rules() -> None:
    ran: list[str] = []
    model = scripted([("Verdict", {"good": False})], [("search", {"q": "x"})], [("Verdict", {"good": True})])
    agent = agent_of(model, policy("answer_after_search"), ran, response_format=ToolStrategy(Verdict))
    result = agent.invoke(ASK)
    assert result["structured_response"] == Verdict(good=True)
    assert [offer for offer, _ in model.offers] == [["think", "search", "refund"]] * 2 + [["think", "search", "refund", "Verdict"]]
    assert [choice for _, choice in model.offers] == ["any", "any", "any"]


@pytest.mark.parametrize("succeeds", [True, False])
def test_a_structured_answer_beside_calls_is_taken_when_they_succeed(succeeds: bool) -> None:
    model = scripted([("think", {}), ("Verdict", {"good": False})], [("Verdict", {"good": True})])

    def execute(name: str) -> str:
        if not succeeds:
            raise Broken
        return "fine"

    failing = ToolRetryMiddleware(max_retries=0, on_failure="continue")
    agent = create_agent(
        model,
        tools=tools_of(execute),
        response_format=ToolStrategy(Verdict),
        middleware=[failing, PolicyMiddleware(policy("two_searches"))],
    )
    assert agent.invoke(ASK)["structured_response"] == Verdict(good=not succeeds)


def test_retries_of_a_failed_call_count_as_calls() -> None:
    ran: list[str] = []
    model = scripted([("search", {"q": "x"})], "done")
    rules = Policy([ConditionalRequirement("search", max_attempts=2)], tools=["think", "search", "refund"])

    def execute(name: str) -> str:
        ran.append(name)
        raise Broken

    retries = ToolRetryMiddleware(max_retries=5, initial_delay=0, on_failure="continue", retry_on=(Broken,))
    create_agent(model, tools=tools_of(execute), middleware=[retries, PolicyMiddleware(rules)]).invoke(ASK)
    assert ran == ["search", "search"]


def test_a_call_that_other_middleware_answers_counts_and_nobody_hangs_on_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("maymust.adapters.passage.PATIENCE", 0.1)
    ran: list[str] = []

    @wrap_tool_call
    def cache(request: Any, handler: Any) -> Any:
        if request.tool_call["args"].get("q") == "known":
            return ToolMessage("from the cache", tool_call_id=request.tool_call["id"])
        return handler(request)

    rules = Policy([ConditionalRequirement("search", max_invocations=1)], tools=["think", "search", "refund"])
    agent = agent_of(
        scripted([("search", {"q": "known"}), ("search", {"q": "x"})], [("search", {"q": "x"})], "done"), rules, ran, before=[cache]
    )
    assert agent.invoke(ASK)["messages"][-1].content == "done"
    assert ran == [], "the cached one was the one that is allowed"


def asking() -> Policy:
    rules = [AskPermissionRequirement("refund"), ConditionalRequirement("refund", max_invocations=1)]
    return Policy(rules, tools=["think", "search", "refund"])


@pytest.mark.parametrize("same_process", [True, False])
@pytest.mark.parametrize(("says", "expected"), [(True, ["search", "refund"]), ({"allow": False, "reason": "no money"}, ["search"])])
def test_a_question_pauses_the_graph_and_a_checkpoint_goes_on(same_process: bool, says: Any, expected: list[str]) -> None:
    turns = ([("refund", {"amount": 5}), ("search", {"q": "x"})], [("refund", {"amount": 5})], "done")
    ran: list[str] = []
    model, saver, thread = scripted(*turns), InMemorySaver(), {"configurable": {"thread_id": "1"}}
    agent = agent_of(model, asking(), ran, checkpointer=saver)
    (question,) = agent.invoke(ASK, thread)["__interrupt__"]
    assert question.value == {"tool": "refund", "arguments": {"amount": 5}, "call_id": "c0.0", "reasons": []}
    assert ran == ["search"]
    if not same_process:
        agent = agent_of(model, asking(), ran, checkpointer=saver)
    result = agent.invoke(Command(resume=says), thread)
    if says is not True:
        assert "a person said no: no money; it was not run" in [one.content for one in result["messages"]]
        result = agent.invoke(Command(resume=False), thread)
    assert ran == expected
    assert result["messages"][-1].content == "done"


@pytest.mark.parametrize("says", [True, False])
def test_a_call_that_hangs_on_a_question_waits_for_it(says: bool) -> None:
    turns = ([("refund", {"amount": 5}), ("refund", {"amount": 6})], "done")
    ran: list[str] = []
    agent = agent_of(scripted(*turns), asking(), ran, checkpointer=InMemorySaver())
    thread = {"configurable": {"thread_id": "1"}}
    assert len(agent.invoke(ASK, thread)["__interrupt__"]) == 1
    result = agent.invoke(Command(resume=says), thread)
    if not says:
        result = agent.invoke(Command(resume=True), thread)
    assert ran == ["refund"]
    assert result["messages"][-1].content == "done"


def test_what_a_person_edited_is_judged_as_edited() -> None:
    ran: list[str] = []
    model = scripted([("refund", {"amount": 5})], "done")
    human = HumanInTheLoopMiddleware(interrupt_on={"refund": True})
    agent = agent_of(model, policy("refund_bounds"), ran, checkpointer=InMemorySaver(), before=[human])
    thread = {"configurable": {"thread_id": "1"}}
    assert agent.invoke(ASK, thread)["__interrupt__"]
    edit = {"type": "edit", "edited_action": {"name": "refund", "args": {"amount": 5000}}}
    result = agent.invoke(Command(resume={"decisions": [edit]}), thread)
    assert ran == []
    assert any("amount has to be a number, at most 100" in str(one.content) for one in result["messages"])


def test_what_it_cannot_enforce_is_said_at_construction() -> None:
    @requirement(name="slow", targets=["think"])
    async def slow(history: Any) -> None:
        return None

    rules = Policy([slow], tools=["think"])
    with pytest.raises(UnsupportedRuleError, match="slow: asynchronous requirements"):
        PolicyMiddleware(rules)
    with pytest.warns(UserWarning, match="cannot enforce"):
        PolicyMiddleware(rules, strict=False)

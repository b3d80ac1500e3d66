"""LangChain's create_agent."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

from benchmarks.peers.brain import Brain, Stuck
from benchmarks.peers.world import World
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, HumanInTheLoopMiddleware, ToolCallLimitMiddleware, hook_config
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphRecursionError
from langgraph.types import Command
from pydantic import Field

DOCS = "https://docs.langchain.com/oss/python/langchain/"
IDIOMS = {
    "order": f"[tools filtered by state in wrap_model_call]({DOCS}agents#dynamic-tools)",
    "limit": f"[ToolCallLimitMiddleware(run_limit=2)]({DOCS}middleware/built-in#tool-call-limit)",
    "spacing": f"[tools filtered by state in wrap_model_call]({DOCS}agents#dynamic-tools)",
    "approval": f"[HumanInTheLoopMiddleware]({DOCS}human-in-the-loop)",
    "bounds": f"[a bound in the tool's schema]({DOCS}tools)",
    "first": f"[tool_choice overridden in wrap_model_call]({DOCS}middleware/custom)",
    "answer": f"[after_model that jumps back to the model]({DOCS}middleware/custom#agent-jumps)",
}
ASK = {"messages": [{"role": "user", "content": "Help me."}]}


class Model(BaseChatModel):
    """Asks the brain."""

    brain: Any
    yields: Any = None
    offered: tuple[str, ...] = ()
    named: str | None = None

    @property
    def _llm_type(self) -> str:
        return "brain"

    def bind_tools(self, tools: Sequence[Any], *, tool_choice: Any = None, **settings: Any) -> Any:
        """A copy that knows what it was offered."""
        return Model(brain=self.brain, yields=self.yields, offered=tuple(one.name for one in tools), named=tool_choice)

    def _generate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        said = self.brain.reply(self.offered, self.named)
        calls = [{"name": one.name, "args": one.arguments, "id": one.call_id} for one in said.calls]
        return ChatResult(generations=[ChatGeneration(message=AIMessage(said.text, tool_calls=calls))])

    async def _agenerate(self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **settings: Any) -> ChatResult:
        if self.yields is not None:
            await self.yields()
        return self._generate(messages)


@tool
async def search(q: str) -> str:
    """Search."""
    return "nothing"


def loop(brain: Brain, steps: int, yields: Any = None) -> Callable[[], Awaitable[Any]]:
    """A run of so many steps."""
    agent = create_agent(Model(brain=brain, yields=yields), tools=[search])
    return lambda: agent.ainvoke(ASK, {"recursion_limit": 3 * steps + 10})


def done(messages: Sequence[Any]) -> list[str]:
    """Names of the tools that have answered."""
    return [one.name for one in messages if isinstance(one, ToolMessage) and one.status == "success"]


class Filter(AgentMiddleware):
    """Leaves out what is closed, and names the tool that has to come first."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        self.kind = kind

    async def awrap_model_call(self, request: Any, handler: Any) -> Any:
        """One model call."""
        ran = done(request.messages)
        if self.kind == "first":
            return await handler(request.override(tool_choice="think") if not ran else request)
        closed = "think" not in ran if self.kind == "order" else ran[-1:] == ["search"]
        tools = [one for one in request.tools if not (closed and one.name == "search")]
        return await handler(request.override(tools=tools))


class Answer(AgentMiddleware):
    """Sends the model back when it answers before it has searched."""

    @hook_config(can_jump_to=["model"])
    def after_model(self, state: Any, runtime: Any) -> Any:
        """One reply."""
        last = state["messages"][-1]
        if not getattr(last, "tool_calls", None) and "search" not in done(state["messages"]):
            return {"messages": [{"role": "user", "content": "Search first."}], "jump_to": "model"}
        return None


def middleware_of(kind: str | None) -> list[Any]:
    """The middleware of a kind."""
    if kind in ("order", "spacing", "first"):
        return [Filter(kind)]
    made: dict[str | None, Callable[[], Any]] = {
        "limit": lambda: ToolCallLimitMiddleware(tool_name="refund", run_limit=2),
        "approval": lambda: HumanInTheLoopMiddleware(interrupt_on={"refund": True}),
        "answer": Answer,
    }
    return [made[kind]()] if kind in made else []


async def desk(brain: Brain, world: World, kind: str | None) -> None:
    """One run under the rule of a kind."""

    @tool
    async def think() -> str:
        """Think."""
        return await world.think()

    @tool
    async def search(q: str) -> str:
        """Search."""
        return await world.search(q)

    async def refund(amount: float) -> str:
        """Refund."""
        return await world.refund(amount)

    if kind == "bounds":
        refund.__annotations__["amount"] = Annotated[float, Field(le=100)]
    saver = InMemorySaver() if kind == "approval" else None
    agent: Any = create_agent(Model(brain=brain), tools=[think, search, tool(refund)], middleware=middleware_of(kind), checkpointer=saver)
    config = {"configurable": {"thread_id": "1"}, "recursion_limit": 200}
    try:
        result = await agent.ainvoke(ASK, config)
        while result.get("__interrupt__"):
            wanted = result["__interrupt__"][0].value["action_requests"]
            result = await agent.ainvoke(Command(resume={"decisions": [{"type": "reject"} for _ in wanted]}), config)
        world.answered = bool(result["messages"][-1].content)
    except (Stuck, GraphRecursionError) as error:
        world.broke = type(error).__name__
    except Exception as error:
        world.broke = type(error).__name__

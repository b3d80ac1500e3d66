"""Microsoft Agent Framework."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    FunctionMiddleware,
    Message,
    tool,
)
from benchmarks.peers.brain import Brain, Stuck
from benchmarks.peers.world import World
from pydantic import Field

DOCS = "https://learn.microsoft.com/en-us/agent-framework/"
MIDDLEWARE = f"{DOCS}agents/middleware/"
IDIOMS = {
    "order": f"[function middleware that answers instead]({MIDDLEWARE})",
    "limit": f"[@tool(max_invocations=2)]({DOCS}agents/tools/function-tools)",
    "spacing": f"[function middleware that answers instead]({MIDDLEWARE})",
    "approval": f'[approval_mode="always_require"]({DOCS}agents/tools/tool-approval)',
    "bounds": f"[a bound in the parameter's annotation]({DOCS}agents/tools/function-tools)",
    "first": f"[tool_choice with required_function_name]({DOCS}agents/tools/function-tools)",
}


class Client(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """Asks the brain."""

    def __init__(self, brain: Brain, yields: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__()
        self.brain, self.yields = brain, yields

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **rest: Any) -> Any:
        async def response() -> ChatResponse:
            if self.yields is not None:
                await self.yields()
            choice = options.get("tool_choice")
            named = choice.get("required_function_name") if isinstance(choice, dict) else None
            said = self.brain.reply([one.name for one in options.get("tools") or ()], named)
            contents = [
                Content.from_function_call(call_id=one.call_id, name=one.name, arguments=json.dumps(one.arguments)) for one in said.calls
            ]
            return ChatResponse(messages=[Message(role="assistant", contents=contents or [Content.from_text(said.text)])])

        return response()


@tool(approval_mode="never_require")
async def search(q: str) -> str:
    """Search."""
    return "nothing"


def loop(brain: Brain, steps: int, yields: Any = None) -> Callable[[], Awaitable[Any]]:
    """A run of so many steps."""
    client = Client(brain, yields)
    client.function_invocation_configuration["max_iterations"] = steps + 2
    agent = Agent(client, tools=[search])

    async def run() -> Any:
        return await agent.run("go")

    return run


class Keeping(FunctionMiddleware):
    """Answers in the tool's place where the rule says no; it keeps its own log of what ran."""

    def __init__(self, kind: str | None) -> None:
        self.kind, self.ran = kind, list[str]()

    async def process(self, context: Any, call_next: Any) -> None:
        """One call."""
        name = context.function.name
        closed = name == "search" and (
            (self.kind == "order" and "think" not in self.ran) or (self.kind == "spacing" and self.ran[-1:] == ["search"])
        )
        if closed:
            context.result = "Not now."
            return
        await call_next()
        self.ran.append(name)


async def desk(brain: Brain, world: World, kind: str | None) -> None:
    """One run under the rule of a kind."""

    @tool(approval_mode="never_require")
    async def think() -> str:
        """Think."""
        return await world.think()

    @tool(approval_mode="never_require")
    async def search(q: str) -> str:
        """Search."""
        return await world.search(q)

    async def refund_(amount: float) -> str:
        """Refund."""
        return await world.refund(amount)

    if kind == "bounds":
        refund_.__annotations__["amount"] = Annotated[float, Field(le=100)]
    decorate = tool(
        name="refund",
        approval_mode="always_require" if kind == "approval" else "never_require",
        max_invocations=2 if kind == "limit" else None,
    )
    client = Client(brain)
    agent = Agent(client, tools=[think, search, decorate(refund_)], middleware=[Keeping(kind)])
    session = agent.create_session()
    options = {"tool_choice": {"mode": "required", "required_function_name": "think"}} if kind == "first" else None
    try:
        result = await agent.run("Help me.", session=session, options=options)
        while result.user_input_requests:
            answers = [one.to_function_approval_response(approved=False) for one in result.user_input_requests]
            result = await agent.run([Message(role="user", contents=answers)], session=session)
        world.answered = bool(result.text)
    except Stuck:
        world.broke = "Stuck"
    except Exception as error:
        world.broke = type(error.__cause__ or error).__name__

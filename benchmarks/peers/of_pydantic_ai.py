"""pydantic-ai."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Annotated, Any

from benchmarks.peers.brain import Brain, Stuck
from benchmarks.peers.world import World
from pydantic import Field
from pydantic_ai import Agent, DeferredToolRequests, DeferredToolResults, ModelRetry, RunContext, Tool, ToolDenied, UsageLimits
from pydantic_ai.messages import ModelResponse, TextPart, ToolCallPart, ToolReturnPart
from pydantic_ai.models import Model

DOCS = "https://ai.pydantic.dev/"
PREPARE = f"{DOCS}tools-advanced/#tool-prepare"
IDIOMS = {
    "order": f"[a prepare function that leaves the tool out]({PREPARE})",
    "limit": f"[a prepare function that leaves the tool out]({PREPARE})",
    "spacing": f"[a prepare function that leaves the tool out]({PREPARE})",
    "approval": f"[requires_approval=True]({DOCS}deferred-tools/#human-in-the-loop-tool-approval)",
    "bounds": f"[a bound in the parameter's annotation]({DOCS}tools/)",
    "first": f"[prepare functions that leave the others out]({PREPARE})",
    "answer": f"[an output validator that raises ModelRetry]({DOCS}output/#output-validator-functions)",
}


class Asking(Model):
    """Asks the brain. A class of its own, since the framework's `FunctionModel` counts the words of all messages in every call."""

    def __init__(self, brain: Brain, yields: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__()
        self.brain, self.yields = brain, yields

    @property
    def model_name(self) -> str:
        """A name."""
        return "brain"

    @property
    def system(self) -> str:
        """The provider."""
        return "brain"

    async def request(self, messages: Any, model_settings: Any, model_request_parameters: Any) -> ModelResponse:
        """The brain's reply."""
        if self.yields is not None:
            await self.yields()
        said = self.brain.reply([one.name for one in model_request_parameters.function_tools])
        calls = [ToolCallPart(one.name, one.arguments, tool_call_id=one.call_id) for one in said.calls]
        return ModelResponse(parts=calls or [TextPart(said.text)], model_name="brain")


async def search(q: str) -> str:
    """Search."""
    return "nothing"


def loop(brain: Brain, steps: int, yields: Any = None) -> Callable[[], Awaitable[Any]]:
    """A run of so many steps."""
    agent = Agent(Asking(brain, yields), tools=[Tool(search)])
    return lambda: agent.run("go", usage_limits=UsageLimits(request_limit=None))


def done(context: RunContext[Any]) -> list[str]:
    """Names of the tools that have answered."""
    return [part.tool_name for message in context.messages for part in message.parts if isinstance(part, ToolReturnPart)]


def open_when(says: Callable[[list[str]], bool]) -> Any:
    """A prepare function."""

    async def prepare(context: RunContext[Any], definition: Any) -> Any:
        return definition if says(done(context)) else None

    return prepare


async def desk(brain: Brain, world: World, kind: str | None) -> None:
    """One run under the rule of a kind."""
    opens: dict[str, dict[str, Callable[[list[str]], bool]]] = {
        "order": {"search": lambda ran: "think" in ran},
        "limit": {"refund": lambda ran: ran.count("refund") < 2},
        "spacing": {"search": lambda ran: ran[-1:] != ["search"]},
        "first": {"search": bool, "refund": bool},
    }
    chosen = opens.get(kind or "", {})

    async def think() -> str:
        """Think."""
        return await world.think()

    async def search(q: str) -> str:
        """Search."""
        return await world.search(q)

    async def refund(amount: float) -> str:
        """Refund."""
        return await world.refund(amount)

    if kind == "bounds":
        refund.__annotations__["amount"] = Annotated[float, Field(le=100)]
    tools = [
        Tool(body, prepare=open_when(chosen[body.__name__]) if body.__name__ in chosen else None,
             requires_approval=kind == "approval" and body is refund)
        for body in (think, search, refund)
    ]  # fmt: skip
    agent: Any = Agent(Asking(brain), tools=tools, output_type=[str, DeferredToolRequests], retries=10)
    if kind == "answer":

        @agent.output_validator
        def searched(context: RunContext[Any], output: Any) -> Any:
            if "search" not in done(context):
                raise ModelRetry("Search first.")
            return output

    try:
        result = await agent.run("Help me.")
        while isinstance(result.output, DeferredToolRequests):
            decided = DeferredToolResults(approvals={one.tool_call_id: ToolDenied() for one in result.output.approvals})
            result = await agent.run(message_history=result.all_messages(), deferred_tool_results=decided)
        world.answered = True
    except Stuck:
        world.broke = "Stuck"
    except Exception as error:
        world.broke = type(error).__name__

"""OpenAI Agents SDK."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Annotated, Any

from agents import (
    Agent,
    GuardrailFunctionOutput,
    Model,
    ModelResponse,
    ModelSettings,
    RunConfig,
    Runner,
    Usage,
    function_tool,
    output_guardrail,
    set_tracing_disabled,
)
from agents.exceptions import AgentsException
from benchmarks.peers.brain import Brain, Stuck
from benchmarks.peers.world import World
from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText
from pydantic import Field

DOCS = "https://openai.github.io/openai-agents-python/"
ENABLED = f"{DOCS}tools/#conditional-tool-enabling"
IDIOMS = {
    "order": f"[is_enabled]({ENABLED})",
    "limit": f"[is_enabled]({ENABLED})",
    "spacing": f"[is_enabled]({ENABLED})",
    "approval": f"[needs_approval=True]({DOCS}human_in_the_loop/)",
    "bounds": f"[a bound in the parameter's annotation]({DOCS}tools/#function-tools)",
    "first": f"[tool_choice with a name]({DOCS}agents/#forcing-tool-use)",
    "answer": f"[an output guardrail]({DOCS}guardrails/#output-guardrails)",
}
QUIET = RunConfig(tracing_disabled=True)
set_tracing_disabled(True)


class Asking(Model):
    """Asks the brain."""

    def __init__(self, brain: Brain, yields: Callable[[], Awaitable[None]] | None = None) -> None:
        self.brain, self.yields = brain, yields

    async def get_response(self, system_instructions: Any, input: Any, model_settings: Any, tools: Any, *rest: Any, **more: Any) -> Any:
        """The brain's reply."""
        if self.yields is not None:
            await self.yields()
        said = self.brain.reply([one.name for one in tools], model_settings.tool_choice)
        output: list[Any] = [
            ResponseFunctionToolCall(type="function_call", call_id=one.call_id, name=one.name, arguments=json.dumps(one.arguments))
            for one in said.calls
        ]
        if not output:
            text = ResponseOutputText(type="output_text", text=said.text, annotations=[])
            output = [ResponseOutputMessage(id="m", type="message", role="assistant", status="completed", content=[text])]
        return ModelResponse(output=output, usage=Usage(), response_id=None)

    def stream_response(self, *given: Any, **more: Any) -> AsyncIterator[Any]:
        """Not asked for here."""
        raise NotImplementedError


@function_tool
async def search(q: str) -> str:
    """Search."""
    return "nothing"


def loop(brain: Brain, steps: int, yields: Any = None) -> Callable[[], Awaitable[Any]]:
    """A run of so many steps."""
    agent = Agent(name="Helper", model=Asking(brain, yields), tools=[search])
    return lambda: Runner.run(agent, "go", max_turns=steps + 2, run_config=QUIET)


@output_guardrail
async def searched(context: Any, agent: Any, output: Any) -> GuardrailFunctionOutput:
    """No answer before a search; the log of what ran is the context of the run."""
    return GuardrailFunctionOutput(output_info=None, tripwire_triggered="search" not in context.context)


async def desk(brain: Brain, world: World, kind: str | None) -> None:
    """One run under the rule of a kind."""
    opens: dict[str, dict[str, Callable[[list[str]], bool]]] = {
        "order": {"search": lambda ran: "think" in ran},
        "limit": {"refund": lambda ran: ran.count("refund") < 2},
        "spacing": {"search": lambda ran: ran[-1:] != ["search"]},
    }
    chosen = opens.get(kind or "", {})

    def enabled(name: str) -> Any:
        says = chosen.get(name)
        return True if says is None else lambda context, agent: says(context.context)

    ran: list[str] = []

    @function_tool(is_enabled=enabled("think"))
    async def think() -> str:
        """Think."""
        text = await world.think()
        ran.append("think")
        return text

    @function_tool(is_enabled=enabled("search"))
    async def search(q: str) -> str:
        """Search."""
        text = await world.search(q)
        ran.append("search")
        return text

    async def refund(amount: float) -> str:
        """Refund."""
        text = await world.refund(amount)
        ran.append("refund")
        return text

    if kind == "bounds":
        refund.__annotations__["amount"] = Annotated[float, Field(le=100)]
    tools = [think, search, function_tool(is_enabled=enabled("refund"), needs_approval=kind == "approval")(refund)]
    agent: Any = Agent(
        name="Helper",
        model=Asking(brain),
        tools=tools,
        model_settings=ModelSettings(tool_choice="think") if kind == "first" else ModelSettings(),
        output_guardrails=[searched] if kind == "answer" else [],
    )
    try:
        result = await Runner.run(agent, "Help me.", context=ran, max_turns=40, run_config=QUIET)
        while result.interruptions:
            state = result.to_state()
            for one in result.interruptions:
                state.reject(one)
            result = await Runner.run(agent, state, max_turns=40, run_config=QUIET)
        world.answered = True
    except (Stuck, AgentsException) as error:
        world.broke = type(error).__name__

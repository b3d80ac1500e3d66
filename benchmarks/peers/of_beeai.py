"""BeeAI's RequirementAgent."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Annotated, Any

from beeai_framework.agents.requirement import RequirementAgent
from beeai_framework.agents.requirement.requirements.ask_permission import AskPermissionRequirement
from beeai_framework.agents.requirement.requirements.conditional import ConditionalRequirement
from beeai_framework.agents.requirement.types import RequirementAgentRunState, RequirementAgentRunStateStep
from beeai_framework.agents.requirement.utils._llm import RequirementsReasoner
from beeai_framework.agents.requirement.utils._tool import FinalAnswerTool
from beeai_framework.backend import AssistantMessage, ChatModel, ChatModelOutput, MessageToolCallContent
from beeai_framework.context import RunContext
from beeai_framework.errors import FrameworkError
from beeai_framework.memory import UnconstrainedMemory
from beeai_framework.tools import StringToolOutput
from beeai_framework.tools import tool as bee_tool
from benchmarks.peers.brain import Brain, Stuck, Walker
from benchmarks.peers.world import World
from pydantic import Field

DOCS = "https://framework.beeai.dev/modules/agents/requirement-agent"
IDIOMS = {
    "order": f"[ConditionalRequirement(only_after=…)]({DOCS})",
    "limit": f"[ConditionalRequirement(max_invocations=2)]({DOCS})",
    "spacing": f"[ConditionalRequirement(consecutive_allowed=False)]({DOCS})",
    "approval": f"[AskPermissionRequirement]({DOCS})",
    "bounds": "[a bound in the tool's input schema](https://framework.beeai.dev/modules/tools)",
    "first": f"[ConditionalRequirement(force_at_step=1)]({DOCS})",
    "answer": f"[ConditionalRequirement(min_invocations=1)]({DOCS})",
}


class Model(ChatModel):
    """Asks the brain."""

    model_id = "brain"
    provider_id = "ollama"

    def __init__(self, brain: Brain, yields: Callable[[], Awaitable[None]] | None = None) -> None:
        super().__init__(allow_parallel_tool_calls=True)
        self.brain, self.yields = brain, yields

    async def _create(self, input: Any, run: Any) -> ChatModelOutput:
        if self.yields is not None:
            await self.yields()
        said = self.brain.reply(
            [one.name for one in input.tools or () if one.name != "final_answer"], getattr(input.tool_choice, "name", None)
        )
        if said.answers:
            content: Any = [MessageToolCallContent(id="last", tool_name="final_answer", args=json.dumps({"response": said.text}))]
        elif said.calls:
            content = [MessageToolCallContent(id=one.call_id, tool_name=one.name, args=json.dumps(one.arguments)) for one in said.calls]
        else:
            content = said.text
        return ChatModelOutput(output=[AssistantMessage(content)])

    async def _create_stream(self, input: Any, run: Any) -> AsyncGenerator[ChatModelOutput]:
        yield await self._create(input, run)


@bee_tool
async def search(q: str) -> str:
    """Search."""
    return "nothing"


def loop(brain: Brain, steps: int, yields: Any = None) -> Callable[[], Awaitable[Any]]:
    """A run of so many steps."""
    agent = RequirementAgent(llm=Model(brain, yields), tools=[search], save_intermediate_steps=False)

    async def run() -> Any:
        return await agent.run("go", max_iterations=steps + 2)

    return run


def rules_of(kind: str | None) -> list[Any]:
    """The requirement of a kind."""
    made: dict[str | None, Callable[[], Any]] = {
        "order": lambda: ConditionalRequirement("search", only_after=["think"]),
        "limit": lambda: ConditionalRequirement("refund", max_invocations=2),
        "spacing": lambda: ConditionalRequirement("search", consecutive_allowed=False),
        "approval": lambda: AskPermissionRequirement(["refund"], handler=lambda tool, given: False),
        "first": lambda: ConditionalRequirement("think", force_at_step=1),
        "answer": lambda: ConditionalRequirement("search", min_invocations=1),
    }
    return [made[kind]()] if kind in made else []


async def desk(brain: Brain, world: World, kind: str | None) -> None:
    """One run under the rule of a kind."""

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
    tools = [bee_tool(think), bee_tool(search), bee_tool(refund)]
    agent = RequirementAgent(llm=Model(brain), tools=tools, requirements=rules_of(kind))
    try:
        await agent.run("Help me.", max_iterations=40)
    except (FrameworkError, Stuck) as error:
        world.broke = type(error).__name__
    else:
        world.answered = True


def requirements_of(tools: int, requirements: int) -> list[Any]:
    """The same limits, orders, forces and minima as on our side."""
    rules: list[Any] = []
    for number in range(requirements):
        target, other = f"t{number % tools}", f"t{(number * 7 + 1) % tools}"
        kinds: tuple[dict[str, Any], ...] = (
            {"only_after": [other]} if other != target else {},
            {"max_invocations": 10**6},
            {"consecutive_allowed": False},
            {"force_at_step": 10**6 + number, "only_success_invocations": False},
            {"min_invocations": 1},
        )
        rules.append(ConditionalRequirement(target, **kinds[number % 5]))
    return rules


def tool_named(number: int) -> Any:
    """A tool."""

    async def do(q: str) -> str:
        """Do it."""
        return q

    return bee_tool(name=f"t{number}", description="Does it.")(do)


def decide(tools: int, requirements: int, history: int, times: int) -> float:
    """Microseconds of a full decision: the request that the agent makes before a model call, without its system prompt."""
    made = [tool_named(number) for number in range(tools)]
    steps = [
        RequirementAgentRunStateStep.model_construct(
            id=str(number),
            iteration=number,
            input={},
            output=StringToolOutput("x"),
            tool=made[number % 10],
            error=FrameworkError("bad") if number % 5 == 4 else None,
            ability=None,
        )
        for number in range(history)
    ]
    state = RequirementAgentRunState.model_construct(
        answer=None, result=None, memory=UnconstrainedMemory(), steps=steps, iteration=history, usage=None, cost=None
    )

    async def timed(context: RunContext) -> float:
        reasoner = RequirementsReasoner(tools=made, final_answer=FinalAnswerTool(None, state=state), context=context)
        await reasoner.update(requirements_of(tools, requirements))
        start = time.process_time()
        for _ in range(times):
            await reasoner.create_request(state, force_tool_call=True)
        return (time.process_time() - start) / times * 1e6

    async def main() -> float:
        agent = RequirementAgent(llm=Model(Walker(0)), tools=[])
        return float(await RunContext.enter(agent, timed))

    return asyncio.run(main())

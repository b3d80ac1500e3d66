"""smolagents' ToolCallingAgent. Its tools and its loop are synchronous; many runs at once are threads, as its page on async says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any

from benchmarks.peers.brain import Brain, Stuck
from benchmarks.peers.world import World
from smolagents import LogLevel, Tool, ToolCallingAgent
from smolagents.models import ChatMessage, ChatMessageToolCall, ChatMessageToolCallFunction, MessageRole, Model
from smolagents.utils import AgentError

DOCS = "https://huggingface.co/docs/smolagents/"
IDIOMS = {"answer": f"[final_answer_checks]({DOCS}reference/agents)"}


class Asking(Model):
    """Asks the brain."""

    def __init__(self, brain: Brain) -> None:
        super().__init__()
        self.brain = brain

    def generate(
        self, messages: Any, stop_sequences: Any = None, response_format: Any = None, tools_to_call_from: Any = None, **more: Any
    ) -> Any:
        """The brain's reply."""
        said = self.brain.reply([one.name for one in tools_to_call_from or () if one.name != "final_answer"])
        made = [(one.call_id, one.name, one.arguments) for one in said.calls]
        if said.answers:
            made = [("last", "final_answer", {"answer": said.text})]
        calls = [
            ChatMessageToolCall(ChatMessageToolCallFunction(json.dumps(arguments), name), call_id, "function")
            for call_id, name, arguments in made
        ]
        return ChatMessage(MessageRole.ASSISTANT, said.text, calls or None)


class Search(Tool):
    """Finds nothing."""

    name = "search"
    description = "Search."
    inputs = {"q": {"type": "string", "description": "What to look for."}}  # noqa: RUF012 - the framework reads it off the class
    output_type = "string"

    def forward(self, q: str) -> str:
        """Search."""
        return "nothing"


def loop(brain: Brain, steps: int, yields: Any = None) -> Callable[[], Awaitable[Any]]:
    """A run of so many steps."""
    agent = ToolCallingAgent(tools=[Search()], model=Asking(brain), max_steps=steps + 2, verbosity_level=LogLevel.OFF)

    async def run() -> Any:
        return agent.run("go")

    return run


class Body(Tool):
    """A tool of the desk."""

    output_type = "string"
    description = "A tool."
    skip_forward_signature_validation = True

    def __init__(self, name: str, inputs: dict[str, Any], body: Callable[..., Any]) -> None:
        self.name, self.inputs, self.body = name, inputs, body
        super().__init__()

    def forward(self, **arguments: Any) -> str:
        """Run the body."""
        return str(asyncio.run(self.body(**arguments)))


def play(brain: Brain, world: World, kind: str | None) -> None:
    """One run."""
    tools = [
        Body("think", {}, world.think),
        Body("search", {"q": {"type": "string", "description": "What to look for."}}, world.search),
        Body("refund", {"amount": {"type": "number", "description": "How much."}}, world.refund),
    ]
    checks: list[Callable[..., bool]] = [lambda answer, memory, agent=None: "search" in world.ended] if kind == "answer" else []
    agent = ToolCallingAgent(tools=tools, model=Asking(brain), max_steps=40, verbosity_level=LogLevel.OFF, final_answer_checks=checks)
    try:
        agent.run("Help me.")
    except (Stuck, AgentError) as error:
        world.broke = "Stuck" if "Stuck" in repr(error) or isinstance(error, Stuck) else type(error).__name__
    else:
        world.answered = True


async def desk(brain: Brain, world: World, kind: str | None) -> None:
    """One run under the rule of a kind, in a thread, since its bodies start an event loop of their own."""
    await asyncio.to_thread(play, brain, world, kind)

"""Removing tools during a run: what is not there is ignored, whatever it is."""

from __future__ import annotations

from typing import Any

from maymust import Agent, FunctionInvocationContext, tool
from maymust.models import ScriptedModel, call

unknown: Any = lambda text: text  # noqa: E731
anonymous = tool(name="shout")(lambda text: text.upper())


@tool
async def whisper(text: str) -> str:
    """Say it quietly."""
    return text.lower()


@tool
async def tidy(context: FunctionInvocationContext) -> str:
    """Take away what is not needed."""
    context.remove_tools(unknown, len, [lambda: None], object(), 7, "nobody")
    context.remove_tools(anonymous.function, whisper.function)
    return "tidy"


def test_lambdas_builtins_and_garbage_are_ignored_and_functions_are_found() -> None:
    agent = Agent(ScriptedModel([call("tidy"), call("final_answer", answer="done")]), tools=[anonymous, whisper, tidy])
    result = agent.run_sync("go")
    assert [step.text for step in result.steps[:1]] == ["tidy"]
    assert result.state.tool_names == ("tidy",)

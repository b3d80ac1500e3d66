"""A tool for thinking in the open."""

from __future__ import annotations

from typing import Annotated

from maymust.tools.function_tool import Effect, Tool


class ThinkTool(Tool):
    """Write down a thought before you act: what you know, what is missing, what to do next. It changes nothing and fetches nothing."""

    name = "think"
    effect: Effect = "read"

    def run(self, thought: Annotated[str, "The thought, in plain words."]) -> str:
        """Record the thought; it stays in the conversation."""
        return "Thought recorded."

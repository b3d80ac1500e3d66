"""What the loop asks in every step of the tools that are present, found out once for each list of tools."""

from __future__ import annotations

from maymust.tools.function_tool import Tool


class Present:
    """The tools of one moment.

    by_name     each tool by its name
    repeatable  names of those that the loop guard does not look at
    untrusted   names of those whose output comes from outside
    """

    __slots__ = ("_secretive", "by_name", "repeatable", "tools", "untrusted")

    def __init__(self, tools: tuple[Tool, ...]) -> None:
        self.tools: tuple[Tool, ...] = tools
        self.by_name: dict[str, Tool] = {tool.name: tool for tool in tools}
        self.repeatable: frozenset[str] = frozenset([tool.name for tool in tools if tool.repeatable])
        self.untrusted: frozenset[str] = frozenset([tool.name for tool in tools if tool.untrusted])
        self._secretive: bool | None = None

    def takes_secrets(self) -> bool:
        """Whether there is something to mask in what is written to any of these tools; found out at first use, like their schemas."""
        if self._secretive is None:
            self._secretive = any(tool.secrets for tool in self.tools)
        return self._secretive

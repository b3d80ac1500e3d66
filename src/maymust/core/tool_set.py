"""The tools of one moment, in their order."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from maymust.core.requirement import RunView
from maymust.core.tool_spec import FINAL_ANSWER, RESERVED_NAMES, ToolLike, tool_name
from maymust.errors import PolicyError


class ToolSet:
    """An ordered set of tools by name; the final answer is implied and comes last.

    names   the user's tools
    all     the same with `final_answer` at the end
    order   place of each name in `all`

    Raises PolicyError for two tools of one name and for reserved names.
    """

    __slots__ = ("all", "by_name", "cache", "names", "order", "specs", "view")

    def __init__(self, tools: Iterable[ToolLike]) -> None:
        self.specs = tuple(tools)
        self.by_name: dict[str, ToolLike] = {}
        for tool in self.specs:
            name = tool_name(tool)
            if name in RESERVED_NAMES:
                raise PolicyError(f"a tool may not be called {name}: the name is reserved; rename the tool")
            if not name:
                raise PolicyError("a tool needs a name, got an empty text")
            if name in self.by_name:
                raise PolicyError(f"two tools are called {name}; rename one of them")
            self.by_name[name] = tool
        self.names = tuple(self.by_name)
        self.all = (*self.names, FINAL_ANSWER)
        self.order = {name: place for place, name in enumerate(self.all)}
        self.view = RunView(tools=self.names)
        self.cache: dict[Any, Any] = {}

    def schema_of(self, name: str, parameter: str) -> Mapping[str, Any]:
        """The tool's own schema of one parameter, empty when it has none."""
        parameters = getattr(self.by_name.get(name), "parameters", None)
        properties = parameters.get("properties", {}) if isinstance(parameters, Mapping) else {}
        schema = properties.get(parameter, {})
        return schema if isinstance(schema, Mapping) else {}

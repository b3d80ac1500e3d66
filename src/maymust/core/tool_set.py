"""The tools of one moment, in their order."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maymust.core.requirement import RunView
from maymust.core.tool_spec import FINAL_ANSWER, RESERVED_NAMES, ToolLike, tool_name
from maymust.errors import PolicyError

_FOLDS = 1024
_SETS = 64


class Shelf(dict[Any, Any]):
    """A dict that drops its oldest entry for a new one. Reads need no lock."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self._room = room
        self._lock = threading.Lock()

    def put(self, key: Any, value: Any) -> Any:
        """Keep a value, and return the one that is kept under the key."""
        with self._lock:
            if key not in self and len(self) >= self._room:
                del self[next(iter(self))]
            return self.setdefault(key, value)

    def __reduce__(self) -> tuple[Any, ...]:
        # Keys may be identities, which mean nothing in a copy: it begins empty.
        return Shelf, (self._room,)


class ToolSet:
    """An ordered set of tools by name; the final answer is implied and comes last.

    names   the user's tools
    all     the same with `final_answer` at the end
    order   place of each name in `all`
    view    the run as requirements see it when nobody gives another

    steady  kept by the policy's `Speakers`

    `by_situation` and `by_rules` keep what was folded over these tools, by what tells one fold from another.
    Raises PolicyError for two tools of one name and for reserved names.
    """

    __slots__ = ("all", "by_name", "by_rules", "by_situation", "names", "order", "specs", "steady", "view")

    def __init__(self, tools: Iterable[ToolLike]) -> None:
        self.specs: tuple[ToolLike, ...] = tuple(tools)
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
        self.names: tuple[str, ...] = tuple(self.by_name)
        self.all: tuple[str, ...] = (*self.names, FINAL_ANSWER)
        self.order: dict[str, int] = {name: place for place, name in enumerate(self.all)}
        self.view: RunView = RunView(tools=self.names)
        self.steady: frozenset[int] | None = None
        self.by_situation: Shelf = Shelf(_FOLDS)
        self.by_rules: Shelf = Shelf(_FOLDS)

    def schema_of(self, name: str, parameter: str) -> Mapping[str, Any]:
        """The tool's own schema of one parameter, empty when it has none."""
        parameters = getattr(self.by_name.get(name), "parameters", None)
        properties = parameters.get("properties", {}) if isinstance(parameters, Mapping) else {}
        schema = properties.get(parameter, {})
        return schema if isinstance(schema, Mapping) else {}


class ToolSets:
    """The sets a policy has met. The same tools give the same set, so that what was folded over them is found again."""

    __slots__ = ("_by_tools", "_by_tuple", "_home")

    def __init__(self, home: ToolSet) -> None:
        self._home = home
        self._by_tools = Shelf(_SETS)
        self._by_tuple = Shelf(_SETS)

    def find(self, present: Sequence[ToolLike]) -> ToolSet:
        """The set of these tools; `final_answer` among them is left out. Giving the same tuple again costs next to nothing."""
        met = self._by_tuple.get(id(present))
        if met is not None and met[0] is present:
            found: ToolSet = met[1]
            return found
        tools = tuple(tool for tool in present if tool_name(tool) != FINAL_ANSWER)
        key = tuple(map(id, tools))
        entry = self._by_tools.get(key)
        if entry is None:
            same = len(tools) == len(self._home.specs) and all(map(_is_same, tools, self._home.specs))
            # The entry holds the tools, so their identities stay theirs.
            entry = self._by_tools.put(key, (tools, self._home if same else ToolSet(tools)))
        kept: ToolSet = entry[1]
        if isinstance(present, tuple):
            self._by_tuple.put(id(present), (present, kept))
        return kept


def _is_same(one: ToolLike, other: ToolLike) -> bool:
    return one is other or (isinstance(one, str) and isinstance(other, str) and one == other)

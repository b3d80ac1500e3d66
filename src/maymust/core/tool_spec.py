"""What the core has to know of a tool, and how rules refer to one."""

from __future__ import annotations

import difflib
import inspect
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol, TypeAlias, runtime_checkable

from maymust.errors import PolicyError

FINAL_ANSWER = "final_answer"
"""Calling it ends the run. For the rules it is a tool like any other, registered last."""

RESERVED_NAMES = frozenset({FINAL_ANSWER, "auto", "required", "none"})
"""Names no tool of a user may have: the final answer, and the words of `tool_choice`."""


@runtime_checkable
class ToolSpec(Protocol):
    """What a policy needs of a tool. `parameters` is the JSON schema of an object."""

    @property
    def name(self) -> str: ...
    @property
    def description(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, Any]: ...


ToolLike: TypeAlias = str | ToolSpec
"""A tool of a policy: a bare name will do where nothing but the name matters."""


def tool_name(tool: ToolLike) -> str:
    """Return the name of a tool. Raises PolicyError for what has none."""
    if isinstance(tool, str):
        return tool
    name = getattr(tool, "name", None)
    if isinstance(name, str) and not isinstance(tool, type):
        return name
    raise PolicyError(f"{tool!r} is no tool: give a name, or an object with a name (a function becomes one with @tool)")


def match_target(target: Any, tools: Sequence[ToolLike]) -> tuple[str, ...]:
    """Return the names of the tools that `target` stands for, in the order of `tools`; empty when there is none.

    target   a name; a class (its instances); a tool object (itself, or of the same name); the function a tool was made from
    """
    if isinstance(target, str):
        return (target,) if target == FINAL_ANSWER or any(tool_name(tool) == target for tool in tools) else ()
    if isinstance(target, type):
        return tuple(tool_name(tool) for tool in tools if isinstance(tool, target))
    name = getattr(target, "name", None)
    if isinstance(name, str):
        return match_target(name, tools)
    if not callable(target):
        return ()
    # Bound methods are made anew at each access, so identity would miss them.
    same = (lambda function: function == target) if inspect.ismethod(target) else (lambda function: function is target)
    return tuple(tool_name(tool) for tool in tools if same(getattr(tool, "function", None)))


def target_text(target: Any) -> str:
    """Return how a target reads in an error or a default name."""
    if isinstance(target, str):
        return target
    if isinstance(target, type):
        return target.__name__
    name = getattr(target, "name", None)
    return name if isinstance(name, str) else str(getattr(target, "__name__", repr(target)))


def closest(name: object, names: Iterable[str]) -> tuple[str, ...]:
    """Return the names most like `name`, best first, at most three: for "did you mean". Nothing is like what is no text."""
    if not isinstance(name, str):
        return ()
    return tuple(difflib.get_close_matches(name, list(dict.fromkeys(names)), n=3, cutoff=0.6))


def did_you_mean(name: object, names: Iterable[str]) -> str:
    """Return `; did you mean a or b?`, or an empty text when nothing is close."""
    near = closest(name, names)
    return f"; did you mean {' or '.join(near)}?" if near else ""

"""From what an author wrote (a name, a class, an object, a function) to the names of tools."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from maymust.core.tool_spec import FINAL_ANSWER, ToolLike, did_you_mean, match_target, target_text, tool_name
from maymust.errors import PolicyError


def resolve(target: Any, tools: Sequence[ToolLike], *, where: str) -> tuple[str, ...]:
    """Return the names of the tools that `target` stands for, in the order of `tools`; never empty.

    target   a name, a Tool class (every instance), a Tool object (itself, or of the same name), or the decorated function
    where    what to call the place in an error, e.g. `limit: only_after`

    Raises PolicyError with "did you mean" when there is no such tool.
    """
    found = match_target(target, tools)
    if found:
        return found
    text = target_text(target)
    if isinstance(target, type):
        raise PolicyError(f"{where}: no tool of the policy is a {text}")
    names = (*(tool_name(tool) for tool in tools), FINAL_ANSWER)
    raise PolicyError(f"{where}: there is no tool called {text}{did_you_mean(text, names) or f'; the tools are {_listed(names)}'}")


def resolve_one(target: Any, tools: Sequence[ToolLike], *, where: str) -> str:
    """Return the name of the one tool that `target` stands for. Raises PolicyError for none and for several."""
    found = resolve(target, tools, where=where)
    if len(found) > 1:
        raise PolicyError(f"{where}: {target_text(target)} stands for {' and '.join(found)}; name the one that is meant")
    return found[0]


def as_targets(value: Any) -> tuple[Any, ...]:
    """Return a list of targets as a tuple; None is none, and a single target is a list of one."""
    if value is None:
        return ()
    if isinstance(value, str | type) or callable(value) or hasattr(value, "name") or not isinstance(value, Iterable):
        return (value,)
    return tuple(value)


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names) if len(names) <= 12 else f"{', '.join(names[:12])} and {len(names) - 12} more"

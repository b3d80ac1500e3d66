"""Tools that come and go during a run: checked when a call asks for it, in force from the next turn on (design 3.7)."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maymust.agent.present import Present
from maymust.agent.state import RunState
from maymust.core.permit import Permit
from maymust.core.tool_spec import FINAL_ANSWER, RESERVED_NAMES
from maymust.errors import RunError
from maymust.tools.function_tool import Tool, as_tool
from maymust.tools.parameters import same_function

log: logging.Logger = logging.getLogger(__name__)


def flatten(things: Iterable[Any]) -> list[Any]:
    """Tools and iterables of tools, as one list. Text is one thing."""
    flat: list[Any] = []
    for thing in things:
        is_group = isinstance(thing, Iterable) and not isinstance(thing, str | bytes | Mapping | Tool) and not callable(thing)
        flat.extend(thing if is_group else [thing])
    return flat


def check_added(things: Iterable[Any], taken: Mapping[str, Tool]) -> list[Tool]:
    """The tools to add, without those that are there already.

    `taken` are the names that are in use or reserved. Raises TypeError for what is no tool, ValueError for another tool of a taken name.
    """
    new: dict[str, Tool] = {}
    by_body: dict[tuple[int, int], list[Tool]] = {}
    for other in taken.values():
        by_body.setdefault(_body_key(other), []).append(other)
    for thing in flatten(things):
        tool = as_tool(thing)
        if tool.name in RESERVED_NAMES:
            raise ValueError(f"the name {tool.name!r} is reserved; give the tool another one")
        alike = by_body.setdefault(_body_key(tool), [])
        there = next((other for other in alike if tool.same_as(other)), None)
        if there is not None:
            # Loadable tools reserve their name for themselves.
            new.setdefault(there.name, there)
            continue
        if tool.name in taken or tool.name in new:
            raise ValueError(f"another tool has the name {tool.name!r} in this run; remove it first, or give this one another name")
        new[tool.name] = tool
        alike.append(tool)
    return list(new.values())


def _body_key(tool: Tool) -> tuple[int, int]:
    """Equal for tools that may be the same one: those of one function, or of one method of one object."""
    function: Any = tool.function
    if function is None:
        return id(tool), 0
    inner = getattr(function, "__func__", None)
    return (id(function), 0) if inner is None else (id(inner), id(function.__self__))


def check_removed(things: Iterable[Any], present: Sequence[Tool], permit: Permit | None) -> list[str]:
    """The names to remove; what is not there is ignored. Raises ValueError for `final_answer` and for a tool that is owed."""
    names: list[str] = []
    for thing in flatten(things):
        name = _name_of(thing, present)
        if name == FINAL_ANSWER:
            raise ValueError("final_answer cannot be removed: without it the run could not end; deny it by a requirement instead")
        if name is None or name in names:
            continue
        said = permit.why(name) if permit is not None and name in permit.tools else ()
        # Of a withheld tool the rule that forces another one is a part of why.
        owing = [spoken.requirement for spoken in said if spoken.rule.prevent_stop and spoken.rule.target == name]
        if owing:
            raise ValueError(f"{name!r} cannot be removed: {', '.join(owing)} still asks for a call of it")
        names.append(name)
    return names


def _name_of(thing: Any, present: Sequence[Tool]) -> str | None:
    if isinstance(thing, str):
        return thing if thing == FINAL_ANSWER or any(tool.name == thing for tool in present) else None
    if isinstance(thing, Tool):
        return (
            thing.name if thing.name == FINAL_ANSWER or any(tool.name == thing.name and thing.same_as(tool) for tool in present) else None
        )
    # Compared as functions: what could be no tool, such as an unknown lambda, is simply not there.
    found = (tool.name for tool in present if tool.function is not None and same_function(tool.function, thing))
    return next(found, None) if callable(thing) else None


def apply_changes(state: RunState) -> None:
    """Put the changes of the calls that succeeded into force, in the model's order."""
    if not state.exposure:
        return
    order = {call_id: place for place, call_id in enumerate(state.turns[-1].call_ids)} if len(state.turns) else {}
    tools = {tool.name: tool for tool in state.tools}
    for _, added, removed in sorted(state.exposure, key=lambda change: order.get(change[0], -1)):
        for name in removed:
            tools.pop(name, None)
        for name in added:
            tools.setdefault(name, state.arriving[name])
    state.tools, state.tool_names = tuple(tools.values()), tuple(tools)
    state.present = Present(state.tools)
    state.exposure, state.arriving, state.standing = (), {}, None
    log.debug("run %s: tools are now %s", state.run_id, ", ".join(tools))


def restore_tools(state: RunState, known: Mapping[str, Tool], given: Iterable[Any]) -> None:
    """Find the tools of a state that was loaded, among the agent's, the loadable and the given ones.

    Raises RunError naming what is missing.
    """
    own = {tool.name: tool for tool in (*state.tools, *state.arriving.values())}
    extra = {tool.name: tool for tool in (as_tool(thing) for thing in flatten(given))}
    found = {**own, **known, **extra}
    waiting = [name for _, added, _ in state.exposure for name in added]
    missing = [name for name in (*state.tool_names, *waiting) if name not in found]
    if missing:
        raise RunError(
            f"the run has the tool {missing[0]!r}, which is neither in the agent's tools nor in loadable; "
            f"give it again: resume(..., tools=[{missing[0]}])"
        )
    state.tools = tuple(found[name] for name in state.tool_names)
    state.present = Present(state.tools)
    state.arriving = {name: found[name] for name in waiting}
    state.standing = None

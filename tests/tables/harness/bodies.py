"""Scripted tools, and the record that their bodies keep of one run."""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from pydantic import Field

from maymust import FunctionInvocationContext, Tool, ToolError, tool
from tests.tables.harness.rows import RowFault, only

TOOL_KEYS = {
    "name", "returns", "returns_each", "empty", "echoes", "raises", "fails_times", "sleeps_ms", "overlaps", "adds", "removes", "reports",
    "writes_tools", "params",
}  # fmt: skip
TYPES: dict[str, Any] = {"string": str, "integer": int, "number": float, "boolean": bool, "array": list, "object": dict}
BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "minLength": "min_length",
    "maxLength": "max_length",
}
Waits = Generator[float, None, Any]
"""A body: it yields seconds to sleep, and returns its value."""


@dataclass
class Recorder:
    """What the bodies, the middleware and the handler of one run have seen. It reaches them as `deps`, so it is never part of a state."""

    lock: threading.Lock = field(default_factory=threading.Lock)
    bodies: dict[str, list[tuple[str, dict[str, Any]]]] = field(default_factory=dict)
    counts: Counter[str] = field(default_factory=Counter)
    running: int = 0
    overlapped: bool = False
    gathered: dict[str, list[list[bool]]] = field(default_factory=dict)
    trail: list[str] = field(default_factory=list)
    asked: list[tuple[str, dict[str, Any]]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    last_context: FunctionInvocationContext | None = None

    def start(self, name: str, context: FunctionInvocationContext, arguments: dict[str, Any]) -> int:
        """A body starts; how many of this tool have, this one included."""
        with self.lock:
            self.bodies.setdefault(context.call_id, []).append((name, dict(arguments)))
            self.counts[name] += 1
            self.trail.append(name)
            self.last_context = context
            self.overlapped = self.overlapped or self.running > 0
            self.running += 1
            return self.counts[name]

    def stop(self) -> None:
        """A body is done."""
        with self.lock:
            self.running -= 1


@dataclass
class ScriptedTool:
    """A tool of the row: the `Tool` and the function it was made from."""

    name: str
    tool: Tool
    function: Callable[..., Any]


class Cast:
    """Every scripted tool of a row, by name. `threads` makes the bodies sync functions."""

    def __init__(self, row: Mapping[str, Any], *, threads: bool) -> None:
        self._threads = threads
        self._others: dict[str, Callable[..., Any]] = {}
        self._tools: dict[str, ScriptedTool] = {}
        specs = [_spec(given) for given in [*row.get("tools", ()), *row.get("later", ())]]
        by_function = {name for spec in specs for name in _added_as_function(spec)}
        by_function |= {name for mw in [*row.get("middleware", ()), *row.get("run_middleware", ())] for name in _middleware_adds(mw)}
        for spec in specs:
            self._tools.setdefault(spec["name"], self._make(spec, own_name=spec["name"] not in by_function))

    def __getitem__(self, name: str) -> ScriptedTool:
        if name not in self._tools:
            raise RowFault(f"no tool {name} in this row")
        return self._tools[name]

    def added(self, entry: Any) -> Any:
        """What an entry of `adds` stands for."""
        if isinstance(entry, str):
            return self[entry].tool
        only(entry, {"function", "other", "garbage"}, "adds")
        if "function" in entry:
            return self[entry["function"]].function
        if "other" in entry:
            return self._others.setdefault(entry["other"], self._function(entry["other"], None, _other))
        return entry["garbage"]

    def removed(self, entry: Any) -> Any:
        """What an entry of `removes` stands for."""
        if isinstance(entry, str):
            return entry
        only(entry, {"object", "function"}, "removes")
        return self[entry["object"]].tool if "object" in entry else self[entry["function"]].function

    def _make(self, spec: Mapping[str, Any], *, own_name: bool) -> ScriptedTool:
        name = spec["name"]

        def body(context: FunctionInvocationContext, arguments: dict[str, Any]) -> Waits:
            recorder: Recorder = context.deps
            number = recorder.start(name, context, arguments)
            try:
                return (yield from _perform(self, spec, recorder, number, context, arguments))
            finally:
                recorder.stop()

        # A function with a name of its own shows that a tool is found by what it is and not by how its function is called.
        function = self._function(f"body_of_{name}" if own_name else name, spec.get("params"), body)
        return ScriptedTool(name, tool(name=name, description=f"The scripted tool {name}.")(function), function)

    def _function(self, name: str, params: Mapping[str, Any] | None, body: Callable[..., Waits]) -> Callable[..., Any]:
        names: dict[str, Any] = {
            "FunctionInvocationContext": FunctionInvocationContext,
            "Any": Any,
            "_perform": _sleeping if self._threads else _awaiting,
            "_body": body,
        }
        if params is None:
            rest, given = "**arguments: Any", "arguments"
        else:
            declared = []
            for number, (parameter, fragment) in enumerate(params.items()):
                names[f"_type{number}"], default = annotation(fragment)
                declared.append(f"{parameter}: _type{number}" + (f" = {default!r}" if default is not ... else ""))
            rest = "*, " + ", ".join(declared) if declared else ""
            given = "{" + ", ".join(f"{parameter!r}: {parameter}" for parameter in params) + "}"
        kind, wait = ("", "") if self._threads else ("async ", "await ")
        source = (
            f"{kind}def {name}(the_context: FunctionInvocationContext, {rest}):\n    return {wait}_perform(_body(the_context, {given}))\n"
        )
        exec(compile(source, f"<scripted tool {name}>", "exec", dont_inherit=True), names)
        function: Callable[..., Any] = names[name]
        return function


def _spec(given: Any) -> dict[str, Any]:
    spec = {"name": given} if isinstance(given, str) else dict(given)
    only(spec, TOOL_KEYS, f"tool {spec.get('name')}")
    return spec


def _added_as_function(spec: Mapping[str, Any]) -> set[str]:
    return {entry["function"] for entry in spec.get("adds", ()) if isinstance(entry, dict) and "function" in entry}


def _middleware_adds(middleware: Mapping[str, Any]) -> set[str]:
    return {name for done in middleware.get("does", ()) if isinstance(done, dict) for name in _added_as_function(done)}


def annotation(fragment: Any) -> tuple[Any, Any]:
    """Type and default (`...` for none) of a parameter written as a JSON Schema type or fragment."""
    fragment = {"type": fragment} if isinstance(fragment, str) else dict(fragment)
    only(fragment, {"type", "default", *BOUNDS}, "params")
    default = fragment.get("default", ...)
    kind = TYPES[fragment["type"]]
    bounds = {BOUNDS[key]: value for key, value in fragment.items() if key in BOUNDS}
    return (Annotated[kind, Field(**bounds)] if bounds else kind), default


def _perform(
    cast: Cast, spec: Mapping[str, Any], recorder: Recorder, number: int, context: FunctionInvocationContext, arguments: dict[str, Any]
) -> Waits:
    if "sleeps_ms" in spec:
        yield spec["sleeps_ms"] / 1000
    if "overlaps" in spec:
        yield from _gather(recorder, "overlaps", spec["overlaps"])
    if "adds" in spec:
        context.add_tools([cast.added(entry) for entry in spec["adds"]])
    if "removes" in spec:
        context.remove_tools([cast.removed(entry) for entry in spec["removes"]])
    if number <= spec.get("fails_times", 0):
        raise RuntimeError(f"attempt {number} failed")
    if "raises" in spec:
        raise error_of(spec["raises"])
    return _value(spec, number, context, arguments)


def _value(spec: Mapping[str, Any], number: int, context: FunctionInvocationContext, arguments: dict[str, Any]) -> Any:
    if spec.get("empty"):
        return None
    if spec.get("echoes"):
        return dict(arguments)
    if "returns_each" in spec:
        return spec["returns_each"][number - 1]
    if "reports" in spec:
        return ",".join(item.name for item in context.tools)
    if spec.get("writes_tools"):
        tools: Any = context.tools
        problems = []
        try:
            tools.append(tools[0])
        except Exception as error:
            problems.append(error)
        try:
            context.tools = ()  # type: ignore[misc]
        except Exception as error:
            problems.append(error)
        if problems:
            raise problems[0]
        return "written"
    return spec.get("returns", "ok")


def _gather(recorder: Recorder, key: str, needed: int) -> Waits:
    """Wait until `needed` bodies are here at once."""
    mine = [False]
    with recorder.lock:
        here = recorder.gathered.setdefault(key, [])
        here.append(mine)
        if len(here) >= needed:
            for flag in here:
                flag[0] = True
    try:
        end = time.monotonic() + 5
        while not mine[0]:
            if time.monotonic() > end:
                raise RuntimeError(f"waited 5 seconds for {needed} bodies at once")
            yield 0.001
    finally:
        with recorder.lock:
            here.remove(mine)


def _other(context: FunctionInvocationContext, arguments: dict[str, Any]) -> Waits:
    yield 0
    return "the other one"


def error_of(given: Any) -> Exception:
    """The error that `raises` stands for."""
    if isinstance(given, dict):
        only(given, {"ToolError"}, "raises")
        return ToolError(given["ToolError"])
    return RuntimeError(given)


async def _awaiting(body: Waits) -> Any:
    try:
        while True:
            await asyncio.sleep(next(body))
    except StopIteration as stop:
        return stop.value


def _sleeping(body: Waits) -> Any:
    try:
        while True:
            time.sleep(next(body))
    except StopIteration as stop:
        return stop.value

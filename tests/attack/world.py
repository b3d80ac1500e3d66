"""What happens outside of the run: bodies, which end as they like and change the list of tools, and a log of it all."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, Literal

from maymust import FunctionInvocationContext, Tool, tool
from tests.attack.scenario import CHILD


@dataclass
class World:
    """The world of one run. It reaches bodies, middleware and handlers as `deps`, so it is never part of a state.

    bodies     each body that was started: the call, its arguments, how it ended, what it changed
    questions  each question put to a handler, with the answer
    around     by call: what middleware did about it
    """

    scenario: dict[str, Any]
    rng: Random
    replies: list[Any]
    child: Tool | None = None
    bodies: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    around: dict[str, dict[str, Any]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        given, child = self.scenario["world"], self.scenario["child"]
        self.fails, self.yes, self.same = given["fails"], given["yes"], given["same"]
        specs = [*self.scenario["tools"], *self.scenario["later"], *(child["tools"] if child is not None else ())]
        self.tools = {spec["name"]: spec for spec in specs}

    async def body(self, name: str, context: FunctionInvocationContext, arguments: dict[str, Any]) -> Any:
        """A body: it changes the tools, yields to others a few times, then succeeds or fails."""
        run_id = context.state.run_id
        entry: dict[str, Any] = {"run": run_id, "call_id": context.call_id, "tool": name, "arguments": dict(arguments), "ended": "failed"}
        self.bodies.append(entry)
        rounds, fails, same = self.rng.choice((0, 0, 1, 2, 5)), self.rng.random() < self.fails, self.rng.random() < self.same
        self._change(self.tools[name], context, entry)
        for _ in range(rounds):
            await asyncio.sleep(0)
        if fails:
            raise RuntimeError("broken" if same else f"broken {len(self.bodies)}")
        entry["ended"] = "ok"
        return "fine" if same else {"number": len(self.bodies)}

    def tool(self, name: str) -> Tool:
        """The tool of that name."""
        return self.child if name == CHILD and self.child is not None else tool_of(self.tools[name])

    def _change(self, spec: dict[str, Any], context: FunctionInvocationContext, entry: dict[str, Any]) -> None:
        if spec.get("adds_other"):
            # Another tool of a taken name: this has to raise, and then the call has failed.
            context.add_tools(_another(spec["name"]))
            entry["added_another"] = True
        if "adds" in spec:
            context.add_tools([self.tool(name) for name in spec["adds"]])
            entry["added"] = list(spec["adds"])
        if "removes" in spec:
            context.remove_tools(*spec["removes"])
            entry["removed"] = list(spec["removes"])


def tool_of(spec: dict[str, Any]) -> Tool:
    """The tool that the dict declares."""
    return _scripted(spec["name"], spec["typed"], spec["repeatable"], spec["approval"])


@cache
def _scripted(name: str, typed: bool, repeatable: bool, approval: bool) -> Tool:
    """One object serves all runs."""
    mode: Literal["always_require", "never_require"] = "always_require" if approval else "never_require"
    decorate = tool(name=name, description=f"Does {name}.", repeatable=repeatable, approval_mode=mode, effect="idempotent")
    if typed:

        async def with_parameters(context: FunctionInvocationContext, amount: int, tag: str = "x") -> Any:
            return await context.deps.body(name, context, {"amount": amount, "tag": tag})

        return decorate(with_parameters)

    async def with_anything(context: FunctionInvocationContext, **arguments: Any) -> Any:
        return await context.deps.body(name, context, arguments)

    return decorate(with_anything)


@cache
def _another(name: str) -> Tool:
    async def another() -> str:
        return "another one"

    return tool(name=name)(another)

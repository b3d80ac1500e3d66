"""A scenario made real through the public API: tools, requirements, handlers, an agent."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from functools import cache
from random import Random
from typing import Any, Literal

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    FunctionInvocationContext,
    LoopGuard,
    Rule,
    Tool,
    requirement,
    tool,
)
from tests.attack.scenario import FINAL


@dataclass
class World:
    """What happens outside of the run: it decides how bodies end and what people say, and logs both. It reaches them as `deps`."""

    rng: Random
    fails: float
    yes: float
    same: float
    bodies: list[dict[str, Any]] = field(default_factory=list)
    questions: list[dict[str, Any]] = field(default_factory=list)
    running: int = 0

    async def body(self, name: str, context: FunctionInvocationContext, arguments: dict[str, Any]) -> Any:
        """A body: it yields to others a few times, then it succeeds or fails."""
        entry: dict[str, Any] = {"call_id": context.call_id, "tool": name, "arguments": dict(arguments), "ended": None}
        self.bodies.append(entry)
        rounds, fails, same = self.rng.choice((0, 0, 1, 2, 5)), self.rng.random() < self.fails, self.rng.random() < self.same
        for _ in range(rounds):
            await asyncio.sleep(0)
        entry["ended"] = "failed" if fails else "ok"
        if fails:
            raise RuntimeError("broken" if same else f"broken {len(self.bodies)}")
        return "fine" if same else {"number": len(self.bodies)}


PLAIN, TYPED = False, True


@cache
def scripted_tool(name: str, typed: bool, repeatable: bool, approval: bool) -> Tool:
    """The tool of that shape; one object serves all runs."""
    mode: Literal["always_require", "never_require"] = "always_require" if approval else "never_require"
    decorate = tool(name=name, description=f"Does {name}.", repeatable=repeatable, approval_mode=mode)
    if typed:

        async def with_parameters(context: FunctionInvocationContext, amount: int, tag: str = "x") -> Any:
            return await context.deps.body(name, context, {"amount": amount, "tag": tag})

        return decorate(with_parameters)

    async def with_anything(context: FunctionInvocationContext, **arguments: Any) -> Any:
        return await context.deps.body(name, context, arguments)

    return decorate(with_anything)


class CustomRules:
    """A requirement of a user's own class, made of declared conditions."""

    enabled = True

    def __init__(self, declared: dict[str, Any]) -> None:
        self.declared = declared
        self.name, self.priority = declared["name"], declared["priority"]
        self.depends_on: frozenset[str] | None = frozenset(_mentioned(declared)) if declared["depends"] == "exactly" else None

    def bind(self, tools: Any) -> CustomRules:
        """Nothing to look up."""
        return self

    def rules(self, history: Any, run: Any) -> list[Rule]:
        """The rules whose conditions hold."""
        return [_rule(given) for given in self.declared["rules"] if condition(given["when"])(history)]


def _mentioned(declared: dict[str, Any]) -> set[str]:
    values = [value for given in declared["rules"] for word, value in given["when"].items() if word != "always"]
    if any("last" in given["when"] for given in declared["rules"]):
        return {FINAL, "read", "write", "pay", "note", "look"}
    return {value if isinstance(value, str) else value[0] for value in values}


def _rule(given: dict[str, Any]) -> Rule:
    switches = {key: value for key, value in given.items() if key not in ("when", "target")}
    return Rule(given["target"], reason=f"declared about {given['target']}", **switches)


def condition(given: dict[str, Any]) -> Callable[[Any], bool]:
    """A predicate over the history."""
    (word, value), *_ = given.items()
    if word == "always":
        return lambda history: bool(value)
    if word == "seen":
        return lambda history: bool(history.seen(value))
    if word == "unseen":
        return lambda history: not history.seen(value)
    if word == "last":
        return lambda history: bool(history.last == value)
    return lambda history: bool(history.count(value[0]) >= value[1])


def _asynchronous(declared: dict[str, Any]) -> Any:
    live = CustomRules(declared)
    targets = [given["target"] for given in declared["rules"]]

    async def rules(history: Any) -> list[Rule]:
        await asyncio.sleep(0)
        return live.rules(history, None)

    depends = sorted(live.depends_on) if live.depends_on is not None else None
    return requirement(name=live.name, targets=targets, priority=live.priority, depends_on=depends)(rules)


def live_requirement(declared: dict[str, Any], world: World) -> Any:
    """The requirement that the dict declares."""
    kind = declared["kind"]
    if kind == "custom":
        return _asynchronous(declared) if declared["asynchronous"] else CustomRules(declared)
    parameters = {key: value for key, value in declared.items() if key not in ("kind", "target", "custom_checks", "include", "handler")}
    if kind == "conditional":
        if "custom_checks" in declared:
            parameters["custom_checks"] = [condition(check) for check in declared["custom_checks"]]
        return ConditionalRequirement(declared["target"], **parameters)
    if declared["handler"]:
        parameters["handler"] = _handler(declared["name"], world)
    return (
        AskPermissionRequirement(**parameters)
        if declared["include"] is None
        else AskPermissionRequirement(declared["include"], **parameters)
    )


def _handler(name: str, world: World) -> Callable[[Any], Awaitable[bool]]:
    async def handler(call: Any) -> bool:
        answer = world.rng.random() < world.yes
        world.questions.append(
            {"by": name, "call_id": call.call_id, "tool": call.tool, "arguments": dict(call.arguments), "answer": answer}
        )
        for _ in range(world.rng.choice((0, 1, 2))):
            await asyncio.sleep(0)
        return answer

    return handler


def build_agent(scenario: dict[str, Any], world: World, model: Any) -> Agent[Any]:
    """The agent of the scenario."""
    settings = scenario["settings"]
    guard = settings["guard"]
    return Agent(
        model,
        tools=[scripted_tool(given["name"], given["typed"], given["repeatable"], given["approval"]) for given in scenario["tools"]],
        requirements=[live_requirement(declared, world) for declared in scenario["requirements"]],
        final_answer_as_tool=not settings["text_agent"],
        budget=Budget(turns=settings["turns"], steps=settings["steps"], errors=settings["errors"], tokens=settings["tokens"]),
        loop_guard=None if guard is None else LoopGuard(repeats=guard[0], window=tuple(guard[1])),
        on_stall=settings["on_stall"],
        tool_choice=settings["choice"],
    )

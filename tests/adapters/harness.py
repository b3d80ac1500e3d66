"""One table of runs for the own loop and every adapter: policies, scripted turns, and what may have run in the end.

A runner of a framework is a function of a `Scenario` that plays its script through that framework's own model protocol and returns
`Played`. The tools are `think()`, `search(q)` and `refund(amount)`; their bodies call `Scenario.execute`.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from maymust import AskPermissionRequirement, ConditionalRequirement, History, Policy, Rule, requirement

TOOLS = ("think", "search", "refund")


class Broken(Exception):
    """What a tool raises that is scripted to fail."""


@requirement(name="veil", targets=["refund"], depends_on=[])
def veil(history: History) -> Rule:
    return Rule("refund", hidden=True)


@requirement(name="bounds", targets=["refund"], depends_on=[])
def bounds(history: History) -> Rule:
    return Rule("refund", arguments={"amount": {"type": "number", "maximum": 100}})


def policy(name: str, says: Callable[[Any], Any] | None = None) -> Policy:
    """A policy of the table. `says` is the handler of questions."""
    rules: dict[str, list[Any]] = {
        "think_first": [ConditionalRequirement("think", force_at_step=1)],
        "search_after_think": [ConditionalRequirement("search", only_after=["think"])],
        "two_searches": [ConditionalRequirement("search", max_invocations=2)],
        "answer_after_search": [ConditionalRequirement("final_answer", only_after=["search"])],
        "refund_asks": [AskPermissionRequirement("refund", handler=says)],
        "refund_bounds": [bounds],
        "refund_hidden": [veil],
        "think_after_search": [ConditionalRequirement("think", force_after=["search"])],
        "owes_search": [ConditionalRequirement("search", min_invocations=1)],
        "not_twice": [ConditionalRequirement("search", consecutive_allowed=False)],
    }
    return Policy(rules[name], tools=TOOLS, final_answer_as_tool=False)


@dataclass
class Scenario:
    """A row of scenarios.yaml, and what its run did."""

    id: str
    policy: str
    script: list[Any]
    executed: list[str]
    answer: str | None
    about: str = ""
    fails: list[int] = field(default_factory=list)
    says: bool | None = None
    ran: list[str] = field(default_factory=list)
    asked: list[Any] = field(default_factory=list)

    def execute(self, tool: str) -> str:
        """The body of every tool."""
        self.ran.append(tool)
        if len(self.ran) in self.fails:
            raise Broken(f"{tool} is broken")
        return f"{tool} went well"

    def handler(self, call: Any) -> bool:
        """The person."""
        self.asked.append(call.tool)
        return bool(self.says)

    def built_policy(self) -> Policy:
        """The policy of the row; questions go to the scripted person."""
        return policy(self.policy, self.handler)

    def turns(self) -> list[str | list[tuple[str, dict[str, Any]]]]:
        """The script: a text, or calls as (name, arguments)."""
        made: list[str | list[tuple[str, dict[str, Any]]]] = []
        for turn in self.script:
            if isinstance(turn, str):
                made.append(turn)
                continue
            calls = [next(iter(one.items())) if isinstance(one, dict) else (one, {}) for one in turn["calls"]]
            made.append([(name, arguments or ({"q": "x"} if name == "search" else {})) for name, arguments in calls])
        return made


def noting(ran: list[str]) -> Callable[[str], str]:
    """The body of every tool, which notes that it ran."""

    def execute(name: str) -> str:
        ran.append(name)
        return f"{name} went well"

    return execute


def scenarios() -> list[Any]:
    """The rows, as parameters of a test."""
    yaml = pytest.importorskip("yaml")
    rows = yaml.safe_load((Path(__file__).parent / "scenarios.yaml").read_text(encoding="utf-8"))["scenarios"]
    return [pytest.param(row, id=row["id"]) for row in rows]


def check(row: dict[str, Any], play: Callable[[Scenario], str | None]) -> None:
    """Play a row; the framework's runner returns the final text, None for a run that was ended as stalled."""
    scenario = Scenario(**json.loads(json.dumps(row)))
    answer = play(scenario)
    assert (scenario.ran, answer) == (row["executed"], row["answer"]), row["about"]


def both(sync: Callable[[Scenario], str | None], asynchronous: Callable[[Scenario], Any]) -> list[Any]:
    """The two ways to run, as parameters."""
    return [pytest.param(sync, id="sync"), pytest.param(lambda scenario: asyncio.run(asynchronous(scenario)), id="async")]

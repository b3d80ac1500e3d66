"""Every witness, replayed through the agent's loop, ends as the finding claims."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pytest
import yaml

from maymust import (
    Agent,
    AskPermissionRequirement,
    Budget,
    ConditionalRequirement,
    ConflictError,
    DeadEndError,
    Decision,
    ForceUnmetError,
    RunResult,
    ToolError,
    tool,
)
from maymust.models import Capabilities, ScriptedModel, call
from maymust.verify import Finding, verify
from tests.verify.random_rows import policy_of, random_row

RAISES: dict[str, type[Exception]] = {"force_closed": ConflictError, "force_unmet": ForceUnmetError, "dead_end": DeadEndError}
COUNT = 150
AFTERWARDS = 12


class Playing:
    """The agent of a row, whose tools come back as a witness says, and whose model calls what it says."""

    def __init__(self, row: dict[str, Any], witness: Iterable[str]) -> None:
        self.steps = [(word.partition("!")[0], word.partition("!")[2] or "ok") for word in witness]
        self.ends = [outcome for _, outcome in self.steps]
        requirements: list[Any] = []
        for name, params in row["rules"].items():
            rest = dict(params)
            if "conditional" in rest:
                requirements.append(ConditionalRequirement(rest.pop("conditional"), name=name, **rest))
            else:
                requirements.append(AskPermissionRequirement(rest.pop("ask"), name=name, handler=self._decide, **rest))
        self.tools = [self._tool(name) for name in row["tools"]]
        self.requirements = requirements

    def _tool(self, name: str) -> Any:
        @tool(name=name, description="does it", repeatable=True)
        def body() -> str:
            if self.ends and self.ends.pop(0) == "failed":
                raise ToolError("it failed")
            return "done"

        return body

    def _decide(self, pending: Any) -> Decision:
        if self.ends and self.ends[0] == "denied":
            self.ends.pop(0)
            return Decision(allow=False)
        return Decision(allow=True)

    def run(self, model: Any, turns: int) -> RunResult[str]:
        agent = Agent(
            model,
            tools=self.tools,
            requirements=self.requirements,
            loop_guard=None,
            budget=Budget(turns=turns, errors=None),
            on_stall="stop",
        )
        return agent.run_sync("go")


class Wanderer:
    """A model that follows a script and then calls whatever it may, at random."""

    name = "wanderer"
    capabilities = Capabilities()

    def __init__(self, script: Iterable[str], random: Random) -> None:
        self._script = list(script)
        self._random = random

    async def complete(self, request: Any) -> Any:
        wanted = self._script.pop(0) if self._script else self._random.choice(sorted(request.allowed))
        arguments = {"answer": "done"} if wanted == "final_answer" else {}
        return await ScriptedModel([call(wanted, **arguments)]).complete(request)

    async def stream(self, request: Any) -> AsyncIterator[Any]:
        yield await self.complete(request)


def replay(row: dict[str, Any], finding: Finding) -> None:
    playing = Playing(row, finding.witness)
    script = [name for name, _ in playing.steps]
    if finding.name in RAISES:
        with pytest.raises(RAISES[finding.name]) as raised:
            playing.run(ScriptedModel([call(name) for name in script]), len(script) + 2)
        steps = raised.value.state.steps  # type: ignore[attr-defined]
        assert [(step.tool, step.outcome.value) for step in steps] == playing.steps
    elif finding.name in ("livelock", "unreachable"):
        for seed in range(3):
            playing = Playing(row, finding.witness)
            try:
                result = playing.run(Wanderer(script, Random(seed)), len(script) + AFTERWARDS)
            except (ConflictError, DeadEndError, ForceUnmetError):
                assert finding.name == "unreachable"
                continue
            assert result.stop_reason == "budget"
            assert result.answer is None
            assert [(step.tool, step.outcome.value) for step in result.steps][: len(script)] == playing.steps
    elif finding.name == "equal_forces":
        result = playing.run(Wanderer(script, Random(0)), len(script) + 2)
        assert result.permits[len(script)].outranked
    elif finding.name == "obligation_overridden":
        result = playing.run(Wanderer([*script, "final_answer"], Random(0)), len(script) + 3)
        assert result.stop_reason == "final_answer"
        assert set(finding.rules) & set(result.unmet)


def replayable(row: dict[str, Any], findings: Iterable[Finding]) -> Iterator[Finding]:
    asked = {name for rule in row["rules"].values() for name in rule.get("ask", ())}
    for finding in findings:
        denied = {word.partition("!")[0] for word in finding.witness if word.endswith("!denied")}
        # Somebody has to be there to say no.
        if denied <= asked:
            yield finding


ROWS = yaml.safe_load((Path(__file__).parent / "acceptance.yaml").read_text(encoding="utf-8"))["policies"]


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ROWS if "refused_at" not in row])
def test_the_witnesses_of_the_table(row: dict[str, Any]) -> None:
    for finding in verify(policy_of(row), may_fail=row.get("may_fail", ())).findings:
        replay(row, finding)


def test_the_witnesses_of_random_policies() -> None:
    replayed: dict[str, int] = {}
    for seed in range(COUNT):
        random = Random(seed)
        row = random_row(random, tools=random.randint(1, 5), rules=random.randint(1, 7))
        row.pop("max_turns", None)
        report = verify(policy_of(row), may_fail=row["may_fail"], may_be_denied=row["may_be_denied"])
        for finding in replayable(row, report.findings):
            try:
                replay(row, finding)
            except BaseException as error:
                error.add_note(f"seed {seed}: {row}\n{finding}")
                raise
            replayed[finding.name] = replayed.get(finding.name, 0) + 1
    assert {"force_closed", "force_unmet", "dead_end", "livelock", "unreachable", "equal_forces"} <= replayed.keys()

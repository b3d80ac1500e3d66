"""Runs one row. Everything goes through the public names; an error of construction, of the run or of a resume is an observation too."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from pydantic import create_model

from maymust import Agent, Budget, RunState
from maymust.models import ScriptedModel
from tests.tables.harness.bodies import Cast, Recorder, annotation
from tests.tables.harness.errors import error_problems
from tests.tables.harness.peers import ModelOfManyRuns, scripted_model
from tests.tables.harness.policies import decision_of, middleware_of, requirements_of
from tests.tables.harness.rows import RowFault, ScriptedTurn, only, script_of

LIMIT_SECONDS = 20
SETTINGS = (
    "tools",
    "loadable",
    "requirements",
    "policy",
    "middleware",
    "tool_choice",
    "output_type",
    "budget",
    "loop_guard",
    "instructions",
    "name",
)


@dataclass
class Observed:
    """What one run did: its record, what the bodies saw, and the error that ended it, if one did."""

    script: Sequence[ScriptedTurn]
    model: ScriptedModel
    recorder: Recorder
    result: Any = None
    state: Any = None
    error: BaseException | None = None
    pauses: list[dict[str, Any]] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    settings: tuple[Any, Any] = (None, None)

    @property
    def steps(self) -> list[Any]:
        """The steps of the run, of the state that the error carries if there is one."""
        return list(self.state.steps) if self.state is not None else []

    @property
    def permits(self) -> list[Any]:
        """The permit of each turn."""
        return list(self.state.permits) if self.state is not None else []

    @property
    def messages(self) -> list[Any]:
        """The messages of the run."""
        return list(self.state.messages) if self.state is not None else []

    @property
    def counters(self) -> dict[str, int]:
        """The counters by name."""
        return dict(self.state.counters.to_dict()) if self.state is not None else {}

    @property
    def results(self) -> dict[str, list[str]]:
        """The results that the model got, by call id."""
        results: dict[str, list[str]] = {}
        for message in self.messages:
            if message.role == "tool":
                results.setdefault(message.call_id, []).append(message.text)
        return results

    @property
    def call_order(self) -> list[str]:
        """The ids of all calls that the script has made so far, in the order of the model."""
        return [call.call_id for turn in self.script[: len(self.model.requests)] for call in turn.calls]

    def executed(self) -> list[tuple[str, dict[str, Any]]]:
        """All bodies that were started, in the order of the model's calls."""
        order = self.call_order
        ids = [call_id for call_id in order if call_id in self.recorder.bodies]
        ids += [call_id for call_id in self.recorder.bodies if call_id not in order]
        return [body for call_id in ids for body in self.recorder.bodies[call_id]]


def run_row(row: Mapping[str, Any], *, threads: bool = False, elsewhere: bool = False) -> list[Observed]:
    """Run a row, and give what was observed of each of its runs in order.

    threads    the tools' bodies are sync functions
    elsewhere  each resume is given to another agent, made of the same row
    """
    return asyncio.run(asyncio.wait_for(_run_row(row, threads=threads, elsewhere=elsewhere), LIMIT_SECONDS))


async def _run_row(row: Mapping[str, Any], *, threads: bool, elsewhere: bool) -> list[Observed]:
    runs = row.get("runs") or [row]
    inputs = [f"run {number}" for number in range(1, len(runs) + 1)]
    observed = []
    for run in runs:
        script = script_of(run.get("script", ()))
        observed.append(Observed(script, scripted_model(script), Recorder()))
    cast = Cast(row, threads=threads)
    model: Any = observed[0].model if len(runs) == 1 else ModelOfManyRuns(dict(zip(inputs, (item.model for item in observed), strict=True)))
    try:
        agent = _agent(row, cast, model, observed)
    except RowFault:
        raise
    except Exception as error:
        for item in observed:
            item.error, item.state = error, getattr(error, "state", None)
        return observed
    before = _settings(agent)

    def another() -> Agent[Any]:
        return _agent(row, cast, model, observed) if elsewhere else agent

    drives = [_drive(row, run, agent, another, cast, text, item) for run, text, item in zip(runs, inputs, observed, strict=True)]
    if row.get("at_once"):
        await asyncio.gather(*drives)
    else:
        for drive in drives:
            await drive
    for item in observed:
        item.settings = (before, _settings(agent))
    return observed


def _agent(row: Mapping[str, Any], cast: Cast, model: Any, observed: Sequence[Observed]) -> Agent[Any]:
    given = dict(row.get("agent", {}))
    if "budget" in given:
        only(given["budget"], {"turns", "steps", "errors", "tokens", "seconds"}, "budget")
        given["budget"] = Budget(**given["budget"])
    if "loadable" in given:
        given["loadable"] = [cast[name].tool for name in given["loadable"]]
    if "output_type" in given:
        fields: dict[str, Any] = {name: annotation(fragment) for name, fragment in given["output_type"].items()}
        given["output_type"] = create_model("Output", **fields)

    def recorder() -> Recorder:
        if row.get("at_once"):
            raise RowFault("a handler cannot tell runs at once apart")
        return next((item.recorder for item in observed if item.state is None and item.error is None), observed[-1].recorder)

    return Agent(
        model,
        tools=[cast[_name(tool)].tool for tool in row.get("tools", ())],
        requirements=requirements_of(row, cast, recorder),
        middleware=middleware_of(row.get("middleware", ()), cast),
        **given,
    )


def _name(tool: Any) -> str:
    return str(tool if isinstance(tool, str) else tool["name"])


def _settings(agent: Agent[Any]) -> dict[str, Any]:
    """What of the agent's settings can be read."""
    settings = {}
    for name in SETTINGS:
        value = getattr(agent, name, None)
        settings[name] = tuple(value) if isinstance(value, list | tuple) else value
    return settings


async def _drive(
    row: Mapping[str, Any],
    run: Mapping[str, Any],
    agent: Agent[Any],
    another: Callable[[], Agent[Any]],
    cast: Cast,
    text: str,
    seen: Observed,
) -> None:
    around: dict[str, Any] = {"middleware": middleware_of(row["run_middleware"], cast)} if "run_middleware" in row else {}
    try:
        result = await agent.run(text, deps=seen.recorder, **row.get("run", {}), **around)
        entries = list(run.get("resume", ()))
        while result.stop_reason == "paused":
            _note_pause(seen, result)
            if not entries:
                break
            text_of_state = result.state.to_json()
            while True:
                if not entries:
                    raise RowFault("a resume that raises is followed by no other")
                decisions, expected = _resume_entry(entries.pop(0), result)
                resumed = another().resume(RunState.from_json(text_of_state), decisions, deps=seen.recorder, **around)
                if expected is None:
                    result = await resumed
                    break
                await _expect_resume_error(resumed, expected, seen)
        if entries:
            seen.faults.append(f"{len(entries)} entries of resume were not used: the run did not pause for them")
        seen.result, seen.state = result, result.state
    except RowFault:
        raise
    except Exception as error:
        seen.error, seen.state = error, getattr(error, "state", None)


def _note_pause(seen: Observed, result: Any) -> None:
    seen.pauses.append({"pending": [call.call_id for call in result.pending], "executed": seen.executed()})


def _resume_entry(entry: Mapping[str, Any], result: Any) -> tuple[dict[str, Any], Mapping[str, Any] | None]:
    if "decisions" not in entry:
        return {call_id: decision_of(answer) for call_id, answer in entry.items()}, None
    only(entry, {"decisions", "edits", "error"}, "resume")
    for call_id, changes in entry.get("edits", {}).items():
        pending = next(call for call in result.pending if call.call_id == call_id)
        # The caller's own copy: what it does to it is nobody's business.
        pending.arguments.update(changes)
    return {call_id: decision_of(answer) for call_id, answer in entry["decisions"].items()}, entry.get("error")


async def _expect_resume_error(resumed: Any, expected: Mapping[str, Any], seen: Observed) -> None:
    before = seen.executed()
    try:
        await resumed
    except Exception as error:
        seen.faults += error_problems(error, expected)
    else:
        seen.faults.append(f"this resume had to raise: {expected}")
    if seen.executed() != before:
        seen.faults.append("a resume that raised has run a body")

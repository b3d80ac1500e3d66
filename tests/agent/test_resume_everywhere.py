"""A run resumed from any of its snapshots ends with the record of the run that was never interrupted."""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from typing import Any

from maymust import (
    Agent,
    AskPermissionRequirement,
    ConditionalRequirement,
    FunctionInvocationContext,
    LoopGuard,
    RunResult,
    RunState,
    Tool,
    tool,
)
from maymust.events import RunEvent
from maymust.models import ScriptedModel, call, reply

SCRIPT: tuple[Any, ...] = (
    "I need no tools for that",
    call("search", call_id="id1", q="a"),
    [
        call("search", call_id="id2", q="b"),
        call("slow", call_id="id3", q="c"),
        call("broken", call_id="id4", q="d"),
        call("pay", call_id="id5", amount=5),
    ],
    reply(),
    [call("pay", call_id="id6", amount=7), call("search", call_id="id7", q="e"), call("unheard_of", call_id="id8")],
    call("load", call_id="id9"),
    [call("fetch", call_id="id10", q="f"), call("slow", call_id="id11", q="g")],
    call("search", call_id="id12", raw_arguments='{"q": '),
    [call("fetch", call_id="id13", q="h"), call("final_answer", call_id="id14", answer="too early")],
    call("receipt", call_id="id15"),
    [call("slow", call_id="id16", q="i"), call("final_answer", call_id="id17", answer="done")],
)
DECISIONS = {5: True, 7: False}
STEPS = 17


@dataclass
class Snapshots:
    """The texts of all states that could be seen of a run, each once."""

    texts: dict[str, None] = field(default_factory=dict)

    def take(self, state: RunState) -> None:
        """Note a state."""
        self.texts[state.to_json()] = None


@tool(effect="idempotent")
async def search(context: FunctionInvocationContext, q: str) -> str:
    """Search."""
    context.deps.take(context.state)
    return f"found {q}"


@tool(effect="idempotent")
async def slow(context: FunctionInvocationContext, q: str) -> dict[str, str]:
    """Search for long."""
    for _ in range(4):
        context.deps.take(context.state)
        await asyncio.sleep(0)
    return {"slow": q}


@tool(effect="idempotent")
async def broken(context: FunctionInvocationContext, q: str) -> str:
    """Fail."""
    context.deps.take(context.state)
    raise RuntimeError(f"no {q}")


@tool(effect="idempotent")
def pay(amount: int) -> str:
    """Pay, in a thread."""
    return f"paid {amount}"


@tool(effect="idempotent")
async def receipt() -> None:
    """Write a receipt."""


@tool(effect="idempotent")
async def fetch(q: str) -> str:
    """Fetch; it is loaded during the run."""
    return f"fetched {q}"


@tool(effect="idempotent")
async def load(context: FunctionInvocationContext) -> str:
    """Load fetch."""
    context.add_tools(fetch)
    context.deps.take(context.state)
    return "loaded"


def _agent(turns_done: int) -> Agent[str]:
    tools: list[Tool] = [search, slow, broken, pay, load, receipt]
    return Agent(
        ScriptedModel(list(SCRIPT[turns_done:])),
        tools=tools,
        loadable=[fetch],
        requirements=[
            ConditionalRequirement("search", min_invocations=2, max_invocations=3),
            ConditionalRequirement("receipt", only_after=["pay"], min_invocations=1),
            ConditionalRequirement("slow", only_after=["search"]),
            AskPermissionRequirement(["pay"]),
        ],
        loop_guard=LoopGuard(repeats=3),
    )


async def _to_the_end(snapshots: Snapshots, state: RunState | None) -> RunResult[str]:
    """Run, or go on from a state, deciding about payments as it comes to them."""
    agent = _agent(0 if state is None else len(state.turns))
    run = agent.start("go", deps=snapshots) if state is None else agent.start_resume(state, deps=snapshots)
    while True:
        # Listening to all events takes a snapshot at every one of them.
        current = run
        current.on(RunEvent, lambda event, current=current: snapshots.take(current.state))  # type: ignore[misc]
        result = await run
        snapshots.take(result.state)
        if result.stop_reason != "paused":
            return result
        state = RunState.from_json(result.state.to_json())
        decisions = {pending.call_id: DECISIONS[pending.arguments["amount"]] for pending in result.pending}
        run = _agent(len(state.turns)).start_resume(state, decisions, deps=snapshots)


def _record(state: RunState) -> dict[str, Any]:
    return {
        "steps": [step.to_dict() for step in state.steps],
        "messages": [message.to_dict() for message in state.messages],
        "permits": [permit.to_dict() for permit in state.permits],
        "counters": state.counters.to_dict(),
        "usage": state.usage.to_dict(),
        "answer": state.answer,
        "stop_reason": state.stop_reason,
        "run_id": state.run_id,
    }


def test_a_run_can_be_resumed_from_every_point_between_two_events() -> None:
    snapshots = Snapshots()
    whole = asyncio.run(_to_the_end(snapshots, None))
    assert whole.answer == "done"
    assert len(whole.steps) == STEPS
    assert {str(step.outcome.value) for step in whole.steps} == {"ok", "failed", "denied", "refused"}
    taken = [text for text in snapshots.texts if json.loads(text)["stop_reason"] is None]
    assert len(taken) >= 40
    expected = _record(whole.state)
    for text in taken:
        again = asyncio.run(_to_the_end(Snapshots(), RunState.from_json(text)))
        got = _record(again.state)
        assert got == expected, _where(text)


def test_a_state_survives_its_text_unchanged() -> None:
    snapshots = Snapshots()
    asyncio.run(_to_the_end(snapshots, None))
    for text in snapshots.texts:
        assert json.loads(RunState.from_json(text).to_json()) == json.loads(text)


def test_a_state_is_a_value() -> None:
    # Resuming twice from one state object gives the same twice: the first resume has left nothing in it.
    snapshots = Snapshots()
    whole = asyncio.run(_to_the_end(snapshots, None))
    text = sorted(snapshots.texts, key=len)[len(snapshots.texts) // 2]
    state = RunState.from_json(text)
    results = [asyncio.run(_to_the_end(Snapshots(), state)) for _ in range(2)]
    assert _record(results[0].state) == _record(results[1].state) == _record(whole.state)
    assert json.loads(state.to_json()) == json.loads(text)


def _where(text: str) -> str:
    data = json.loads(text)
    calls = [(one["name"], one["status"], one["started"]) for one in data["calls"]]
    return f"resumed in turn {len(data['turns'])}, phase {data['phase']}, calls {calls}"

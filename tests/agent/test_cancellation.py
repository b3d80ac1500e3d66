"""A run that is cancelled anywhere leaves no task behind and no call without a result, and it can be resumed."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from random import Random
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, Decision, FunctionInvocationContext, RunState, tool
from maymust.models import ScriptedModel, call

ROUNDS = 60
SCRIPT: tuple[Any, ...] = (
    [call("slow", k=1), call("quick", k=1), call("slow", k=2)],
    [call("quick", k=2), call("asked", k=3), call("slow", k=3)],
    [call("slow", k=4), call("final_answer", answer="done")],
    # For a run that was cancelled while that answer waited for its sibling.
    call("final_answer", answer="done"),
)


@tool(effect="idempotent")
async def slow(k: int) -> str:
    """Take some rounds of the loop."""
    for _ in range(5):
        await asyncio.sleep(0)
    return f"slow {k}"


@tool(effect="idempotent")
async def quick(k: int) -> str:
    """Take none."""
    return f"quick {k}"


@tool(effect="idempotent")
async def asked(k: int) -> str:
    """Is asked about."""
    return f"asked {k}"


class SlowModel:
    """A scripted peer that thinks for a few rounds. It goes by the number of replies in the conversation, so it needs no memory."""

    name = "slow"

    def __init__(self) -> None:
        self._inner = ScriptedModel(list(SCRIPT))
        self.capabilities = self._inner.capabilities

    async def complete(self, request: Any) -> Any:
        """The next turn."""
        for _ in range(3):
            await asyncio.sleep(0)
        done = sum(message.role == "assistant" for message in request.messages)
        return await ScriptedModel(list(SCRIPT[done:])).complete(request)

    async def stream(self, request: Any) -> Any:
        """The same in one piece."""
        yield await self.complete(request)


async def _yes(pending: Any) -> Decision:
    await asyncio.sleep(0)
    return Decision(allow=True)


def _agent() -> Agent[str]:
    return Agent(SlowModel(), tools=[slow, quick, asked], requirements=[AskPermissionRequirement(["asked"], handler=_yes)])


def _check_record(state: RunState) -> None:
    made = [one.call_id for message in state.messages for one in message.calls]
    given = [message.call_id for message in state.messages if message.role == "tool"]
    assert [step.call_id for step in state.steps] == made
    assert given == made


async def _others() -> set[asyncio.Task[Any]]:
    await asyncio.sleep(0)
    return asyncio.all_tasks() - {task for task in [asyncio.current_task()] if task is not None}


async def _goes_on(state: RunState) -> None:
    result = await _agent().resume(RunState.from_json(state.to_json()))
    assert result.answer == "done"
    _check_record(result.state)


@pytest.mark.parametrize("rounds", range(ROUNDS))
def test_a_run_cancelled_after_some_rounds_is_whole_and_goes_on(rounds: int) -> None:
    async def scenario() -> None:
        run = _agent().start("go")
        for _ in range(rounds):
            await asyncio.sleep(0)
        run.cancel()
        result = await run
        assert result.stop_reason in ("aborted", "final_answer")
        assert not await _others()
        _check_record(result.state)
        if result.stop_reason == "aborted":
            await _goes_on(result.state)

    asyncio.run(scenario())


@pytest.mark.parametrize("rounds", range(1, ROUNDS))
def test_cancelling_whoever_waits_passes_unchanged_and_leaves_the_run_whole(rounds: int) -> None:
    async def scenario() -> None:
        run = _agent().start("go")

        async def wait() -> Any:
            return await run

        waiting = asyncio.ensure_future(wait())
        for _ in range(rounds):
            await asyncio.sleep(0)
        waiting.cancel()
        try:
            result = await waiting
        except asyncio.CancelledError:
            assert run.state.stop_reason in ("aborted", "final_answer")
        else:
            assert result.answer == "done"
        assert not await _others()
        _check_record(run.state)
        if run.state.stop_reason == "aborted":
            await _goes_on(run.state)

    asyncio.run(scenario())


def test_a_tool_in_a_thread_learns_that_nobody_waits() -> None:
    noticed, started = threading.Event(), threading.Event()

    @tool
    def stubborn(context: FunctionInvocationContext) -> str:
        """Work until nobody waits."""
        started.set()
        for _ in range(500):
            if context.cancelled:
                noticed.set()
                return "noticed"
            threading.Event().wait(0.01)
        return "never noticed"

    async def scenario() -> None:
        agent: Agent[str] = Agent(ScriptedModel([call("stubborn"), call("final_answer", answer="no")]), tools=[stubborn])
        run = agent.start("go")
        while not started.is_set():
            await asyncio.sleep(0.001)
        run.cancel()
        result = await run
        assert result.stop_reason == "aborted"
        _check_record(result.state)
        assert [str(step.outcome.value) for step in result.steps] == ["failed"]
        assert "effect" in (result.steps[0].text or "")

    asyncio.run(scenario())
    assert noticed.wait(5)


CHILD = '''
import asyncio, json, sys, threading, time
from maymust import Agent, FunctionInvocationContext, tool
from maymust.models import ScriptedModel, call

seen = []

@tool
async def slow(context: FunctionInvocationContext, k: int) -> str:
    """Wait."""
    seen.append(context)
    await asyncio.sleep(0.05)
    return "slow"

@tool
def in_thread(context: FunctionInvocationContext, k: int) -> str:
    """Wait in a thread."""
    seen.append(context)
    for _ in range(5):
        if context.cancelled:
            break
        time.sleep(0.01)
    return "thread"

turns = [[call("slow", k=n), call("in_thread", k=n)] for n in range(100)]
agent = Agent(ScriptedModel([*turns, call("final_answer", answer="done")]), tools=[slow, in_thread], loop_guard=None)
print("ready", flush=True)
try:
    agent.run_sync("go")
except KeyboardInterrupt:
    state = seen[-1].state
    made = [one.call_id for message in state.messages for one in message.calls]
    given = [message.call_id for message in state.messages if message.role == "tool"]
    print(json.dumps({"made": made, "given": given, "steps": [step.call_id for step in state.steps], "state": state.to_json()}), flush=True)
'''


@pytest.mark.skipif(os.name == "nt", reason="sends SIGINT")
@pytest.mark.parametrize("seed", range(4))
def test_control_c_leaves_a_whole_record(seed: int) -> None:
    import json

    source = str(Path(sys.modules["maymust"].__file__ or "").resolve().parent.parent)
    environment = {**os.environ, "PYTHONPATH": source}
    command = [sys.executable, "-W", "error", "-c", textwrap.dedent(CHILD)]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    assert child.stdout is not None
    assert child.stdout.readline() == "ready\n"
    threading.Event().wait(0.1 + Random(seed).random() * 0.3)
    child.send_signal(signal.SIGINT)
    out, err = child.communicate(timeout=20)
    assert child.returncode == 0, err
    assert "never retrieved" not in err
    assert "was destroyed" not in err
    told = json.loads(out)
    assert told["made"]
    assert told["made"] == told["given"] == told["steps"]
    assert RunState.from_json(told["state"]).stop_reason == "aborted"

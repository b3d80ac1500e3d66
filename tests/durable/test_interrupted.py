"""A call whose process ended while it ran: nobody repeats it blindly. Its tool finds out, or a person says what is to be done."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from maymust import Agent, Decision, FunctionInvocationContext, Happened, RunError, RunState, SqliteStore, tool
from maymust.models import call
from tests.durable.world import ByPlace

DONE: list[str] = []


@tool
def pay(amount: int) -> str:
    """Pay."""
    DONE.append(f"paid {amount}")
    return f"paid {amount}"


def interrupted(folder: Path, resolve: Any = None) -> tuple[Agent[str], str]:
    """An agent with a run whose process has ended while it paid."""
    DONE.clear()
    payer = tool(name="pay", resolve=resolve)(pay.function) if pay.function is not None else pay
    script = (call("pay", call_id="p1", amount=5), call("final_answer", answer="done"))
    agent: Agent[str] = Agent(ByPlace(script), tools=[payer], store=SqliteStore(folder / "runs.db"))

    async def main() -> str:
        run = agent.start("go")
        journal: Any = run._session._journal
        whole = journal._keep

        def die(new: Any, event: Any) -> None:
            whole(new, event)
            if type(event).__name__ == "ToolStarted":
                # As far as the store knows the process has ended here.
                journal._broken = True
                journal.release()

        journal._keep = die
        await run
        return run.id

    return agent, asyncio.run(main())


@pytest.mark.parametrize(
    ("answer", "outcome", "text", "times"),
    [
        (True, "ok", "paid 5", 2),
        (False, "failed", "the process ended while pay ran, so it may have taken effect; a person decided not to repeat it", 1),
        (Decision(False, "I am not sure", "Ada"), "failed", "Ada decided not to repeat it: I am not sure", 1),
        (Happened("paid 5, says the bank"), "ok", "paid 5, says the bank", 1),
        (Happened(), "ok", "what it returned is not known", 1),
    ],
)
def test_a_person_says_what_is_done_about_an_interrupted_call(tmp_path: Path, answer: Any, outcome: str, text: str, times: int) -> None:
    agent, run_id = interrupted(tmp_path)
    result = agent.resume_sync(run_id)
    (pending,) = result.pending
    assert (pending.interrupted, pending.arguments) == (True, {"amount": 5})
    assert pending.reasons == ("the process ended while pay ran, so it may have taken effect",)
    result = agent.resume_sync(run_id, {"p1": answer})
    assert result.answer == "done"
    assert str(result.steps[0].outcome) == outcome
    assert text in (result.steps[0].text or "")
    assert len(DONE) == times


def raises(context: FunctionInvocationContext) -> Any:
    """Fail to find out."""
    raise OSError("the bank does not answer")


async def happened(context: FunctionInvocationContext) -> Any:
    """Find out."""
    assert context.idempotency_key.endswith("/1/p1")
    assert context.arguments == {"amount": 5}
    return Happened("the bank has it")


@pytest.mark.parametrize(
    ("resolve", "stops", "times"),
    [(happened, "final_answer", 1), (lambda context: False, "final_answer", 2), (lambda context: None, "paused", 1), (raises, "paused", 1)],
)
def test_a_tool_that_can_find_out_is_asked_first(tmp_path: Path, resolve: Any, stops: str, times: int) -> None:
    agent, run_id = interrupted(tmp_path, resolve)
    assert agent.resume_sync(run_id).stop_reason == stops
    assert len(DONE) == times


def test_an_answer_of_resolve_that_is_none_stops_the_run(tmp_path: Path) -> None:
    agent, run_id = interrupted(tmp_path, lambda context: "yes")
    with pytest.raises(RunError, match=r"resolve of pay gave str; give Happened\(output\), False"):
        agent.resume_sync(run_id)


def test_a_state_kept_by_hand_is_no_excuse_for_a_blind_repeat() -> None:
    kept: list[str] = []

    @tool
    async def charge(context: FunctionInvocationContext) -> str:
        """Charge."""
        kept.append(context.state.to_json())
        return "charged"

    agent = Agent(ByPlace((call("charge", call_id="c1"), call("final_answer", answer="done"))), tools=[charge])
    assert agent.run_sync("go").answer == "done"
    result = agent.resume_sync(RunState.from_json(kept[0]))
    assert [(pending.call_id, pending.interrupted) for pending in result.pending] == [("c1", True)]
    assert len(kept) == 1
    result = agent.resume_sync(RunState.from_json(result.state.to_json()), {"c1": Happened("charged")})
    assert (result.answer, len(kept)) == ("done", 1)

"""Questions that wait for a person: the first decision counts, whoever comes later is told, and the trail says who and when."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pytest

from maymust import Agent, AskPermissionRequirement, Decision, Happened, RunError, SqliteStore, tool
from maymust.durable.store import DecisionError
from maymust.models import ScriptedModel, call
from tests.durable.person import faults, finish
from tests.durable.world import ByPlace
from tests.durable.zygote import Zygote


@tool
def refund(amount: int) -> str:
    """Refund."""
    return f"refunded {amount}"


SCRIPT: tuple[Any, ...] = (
    [call("refund", call_id="r1", amount=1), call("refund", call_id="r2", amount=2)],
    call("final_answer", answer="done"),
)


class Clock:
    """A clock that a test sets."""

    now = 1_000_000.0

    def __call__(self) -> float:
        return self.now


def desk(folder: Path, **settings: Any) -> Agent[str]:
    store = SqliteStore(folder / "runs.db", **settings)
    return Agent(ByPlace(SCRIPT), tools=[refund], requirements=[AskPermissionRequirement(["refund"])], store=store)


def paused(agent: Agent[str]) -> str:
    result = agent.run_sync("go")
    assert [pending.call_id for pending in result.pending] == ["r1", "r2"]
    return result.state.run_id


def test_decisions_are_noted_one_by_one_and_the_run_goes_on_with_what_there_is(tmp_path: Path) -> None:
    agent = desk(tmp_path)
    run_id = paused(agent)
    agent.decide(run_id, {"r1": True}, by="Ada")
    result = desk(tmp_path).resume_sync(run_id)
    assert [pending.call_id for pending in result.pending] == ["r2"]
    assert result.state.calls[0].text == "refunded 1"
    result = desk(tmp_path).resume_sync(run_id, {"r2": Decision(False, "too much", "Bob")})
    assert [step.text for step in result.steps][:2] == ["refunded 1", "Bob said no: too much; it was not run"]
    assert result.answer == "done"


def test_the_first_decision_counts_and_the_loser_is_told(tmp_path: Path) -> None:
    agent = desk(tmp_path)
    run_id = paused(agent)
    agent.decide(run_id, {"r1": Decision(False, "not due")}, by="Ada")
    with pytest.raises(DecisionError, match=r"\(yes\) does not count: Ada decided no at .*, not due; the first decision") as told:
        agent.decide(run_id, {"r2": True, "r1": True}, by="Bob")
    assert told.value.first is not None
    assert (told.value.call_id, told.value.first.by) == ("r1", "Ada")
    assert isinstance(agent.store, SqliteStore)
    # All or nothing: the other decision of the loser is not noted either.
    assert [question.call_id for question in agent.store.questions(run_id)] == ["r2"]
    with pytest.raises(DecisionError, match="Ada decided no"):
        agent.resume_sync(run_id, {"r1": True})
    assert [(entry.kind, entry.by, entry.call_id) for entry in agent.store.audit(run_id) if entry.by] == [
        ("decided", "Ada", "r1"),
        ("too late", "Bob", "r2"),
        ("too late", "Bob", "r1"),
    ]
    result = agent.resume_sync(run_id, {"r2": True})
    assert [str(step.outcome) for step in result.steps] == ["denied", "ok", "ok"]
    with pytest.raises(DecisionError, match="Ada decided no"):
        agent.decide(run_id, {"r1": True})


def test_the_same_decision_twice_is_no_error_and_stays_with_its_author(tmp_path: Path) -> None:
    agent = desk(tmp_path)
    run_id = paused(agent)
    assert isinstance(agent.store, SqliteStore)
    agent.store.decide(run_id, {"r1": True}, by="Ada")
    (question,) = agent.store.decide(run_id, {"r1": True}, by="Bob")
    assert (question.answer, question.by) == ("yes", "Ada")


def test_of_many_decisions_at_once_exactly_one_counts(tmp_path: Path) -> None:
    run_id = paused(desk(tmp_path))
    outcomes: list[str] = []

    def decide(number: int) -> None:
        store = SqliteStore(tmp_path / "runs.db")
        try:
            (question,) = store.decide(run_id, {"r1": number % 2 == 0}, by=str(number))
            outcomes.append(f"{question.answer} {question.by}")
        except DecisionError as fault:
            first = fault.first
            outcomes.append("?" if first is None else f"{first.answer} {first.by}")
        store.close()

    threads = [threading.Thread(target=decide, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(outcomes) == 8
    assert len(set(outcomes)) == 1


@pytest.mark.parametrize("answer", [Happened("x"), None, 1])
def test_what_is_no_decision_about_the_call_is_refused(tmp_path: Path, answer: Any) -> None:
    agent = desk(tmp_path)
    run_id = paused(agent)
    with pytest.raises(RunError, match=r"has not run yet|give True, False or a Decision"):
        agent.decide(run_id, {"r1": answer})


def test_unknown_runs_and_calls_are_named(tmp_path: Path) -> None:
    agent = desk(tmp_path)
    run_id = paused(agent)
    with pytest.raises(DecisionError, match=r"no question about call 'r9' of run .*; waiting: r1, r2"):
        agent.decide(run_id, {"r9": True})
    with pytest.raises(RunError, match="there is no run 'nobody'"):
        agent.decide("nobody", {})
    with pytest.raises(RunError, match="there is no run 'nobody'"):
        agent.resume_sync("nobody")
    with pytest.raises(RunError, match="this agent has no store"):
        Agent(ScriptedModel([]), tools=[refund]).resume_sync(run_id)


def test_a_question_that_nobody_answers_in_time_is_a_no(tmp_path: Path) -> None:
    clock = Clock()
    agent = desk(tmp_path, question_timeout=60, clock=clock)
    run_id = paused(agent)
    agent.decide(run_id, {"r1": True}, by="Ada")
    clock.now += 61
    assert isinstance(agent.store, SqliteStore)
    assert agent.store.questions(run_id) == []
    with pytest.raises(DecisionError, match=r"the time limit decided no .* nobody answered within 60 seconds"):
        agent.decide(run_id, {"r2": True})
    result = agent.resume_sync(run_id)
    assert [str(step.outcome) for step in result.steps] == ["ok", "denied", "ok"]
    assert result.steps[1].text == "the time limit said no: nobody answered within 60 seconds; it was not run"


def test_a_cancelled_run_takes_no_decisions(tmp_path: Path) -> None:
    agent = desk(tmp_path)
    run_id = paused(agent)
    agent.decide(run_id, {"r1": True}, by="Ada")
    agent.cancel(run_id, by="Eve", reason="a mistake")
    with pytest.raises(DecisionError, match="ended before it was made"):
        agent.decide(run_id, {"r2": True})
    with pytest.raises(RunError, match="was cancelled by Eve at"):
        agent.resume_sync(run_id)
    with pytest.raises(RunError, match=r"was cancelled by Eve at .* already"):
        agent.cancel(run_id)
    assert isinstance(agent.store, SqliteStore)
    state = agent.store.state(run_id)
    assert [str(step.outcome) for step in state.steps] == ["refused", "refused"]
    assert agent.store.run(run_id).status == "cancelled"


def test_a_decision_that_comes_while_the_run_is_taken_up_is_kept_for_the_next_time(tmp_path: Path) -> None:
    agent = desk(tmp_path)
    run_id = paused(agent)
    store = agent.store
    assert isinstance(store, SqliteStore)
    claim = store.claim

    def slow_claim(run_id: str, answers: Any) -> Any:
        claimed = claim(run_id, answers)
        SqliteStore(tmp_path / "runs.db").decide(run_id, {"r2": False}, by="Ada")
        return claimed

    store.claim = slow_claim  # type: ignore[method-assign]
    assert [pending.call_id for pending in agent.resume_sync(run_id, {"r1": True}).pending] == ["r2"]
    store.claim = claim  # type: ignore[method-assign]
    result = agent.resume_sync(run_id)
    assert [str(step.outcome) for step in result.steps] == ["ok", "denied", "ok"]


def test_a_decision_may_come_while_others_of_the_turn_still_run(tmp_path: Path) -> None:
    async def main() -> None:
        asked, go_on = asyncio.Event(), asyncio.Event()

        @tool(effect="read")
        async def wait() -> str:
            """Wait."""
            asked.set()
            await go_on.wait()
            return "waited"

        script = ([call("wait", call_id="w"), call("refund", call_id="r1", amount=1)], call("final_answer", answer="done"))
        asks = AskPermissionRequirement(["refund"])
        agent = Agent(ByPlace(script), tools=[wait, refund], requirements=[asks], store=SqliteStore(tmp_path / "runs.db"))
        run = agent.start("go")
        await asked.wait()
        store = SqliteStore(tmp_path / "runs.db")
        while not store.questions(run.id):
            await asyncio.sleep(0.01)
        store.decide(run.id, {"r1": True}, by="Ada")
        go_on.set()
        assert (await run).stop_reason == "paused"
        assert (await agent.resume(run.id)).answer == "done"

    asyncio.run(main())


@pytest.mark.parametrize("when", ["before the kill", "after the kill"])
def test_a_decision_outlives_a_kill(zygote: Zygote, tmp_path: Path, when: str, undisturbed: dict[str, Any]) -> None:
    assert zygote.run(tmp_path)["stop_reason"] == "paused"
    store = SqliteStore(tmp_path / "runs.db")
    (row,) = store.runs()
    if when == "before the kill":
        store.decide(row.run_id, {"refund1": True}, by="Ada")
        assert zygote.run(tmp_path, run_id=row.run_id, kill={"call_id": "refund1", "point": "before intent"})["signal"] == 9
        # It is used, not asked again.
        assert store.questions(row.run_id) == []
    else:
        # Killed as soon as it has claimed the run: there is nothing to decide yet but the old question.
        assert zygote.run(tmp_path, run_id=row.run_id, kill={"after": -1})["signal"] in (0, 9)
        store.decide(row.run_id, {"refund1": True}, by="Ada")
    assert not faults(tmp_path, finish(zygote, tmp_path), undisturbed)

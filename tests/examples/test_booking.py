"""The booking: a person's yes to this room at this price, in whatever process, and one booking for it."""

from __future__ import annotations

import asyncio
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples.booking.__main__ import main, make_agent, model_for
from examples.booking.script import SCRIPT
from examples.booking.tools import House
from maymust import Decision, RunResult, SqliteStore
from maymust.models import ScriptedModel, call

ROOT = Path(__file__).resolve().parent.parent.parent
GARDEN = {"room": "garden", "nights": 3, "cents": 26700}


def run(folder: Path, *, yes: bool) -> RunResult[str]:
    """The script, with one answer to every question, each given by a new agent over the store."""

    async def through() -> RunResult[str]:
        store, house = SqliteStore(folder / "runs.db"), House(folder)
        result = await make_agent(ScriptedModel(SCRIPT), store).run("A room, please.", deps=house)
        while result.pending:
            decisions = {pending.call_id: Decision(yes) for pending in result.pending}
            agent = make_agent(model_for("script", store, result.state.run_id), store)
            result = await agent.resume(result.state.run_id, decisions, deps=house)
        return result

    return asyncio.run(through())


def outcomes(result: RunResult[str], tool: str) -> list[str]:
    return [str(step.outcome) for step in result.steps if step.tool == tool]


def test_a_yes_books_what_was_asked_about_and_nothing_else(tmp_path: Path) -> None:
    result = run(tmp_path, yes=True)
    assert outcomes(result, "book") == ["refused", "refused", "refused", "ok", "refused"]
    assert House(tmp_path).bookings() == [(1, "garden", 3, 26700)]
    assert outcomes(result, "cancel_booking") == ["refused"]  # not the one of this run


def test_a_no_books_nothing_and_the_next_room_is_asked_about_again(tmp_path: Path) -> None:
    result = run(tmp_path, yes=False)
    assert outcomes(result, "book") == ["refused", "refused", "refused", "denied", "denied"]
    assert House(tmp_path).bookings() == []


def test_a_yes_does_not_make_a_wrong_price_right(tmp_path: Path) -> None:
    async def through() -> RunResult[str]:
        store, house = SqliteStore(tmp_path / "runs.db"), House(tmp_path)
        cheap = [call("search_rooms", beds=2, nights=3), call("book", room="tower", nights=3, cents=1), call("final_answer", answer="No.")]
        agent = make_agent(ScriptedModel(cheap), store)
        result = await agent.run("?", deps=house)
        return await agent.resume(result, {result.pending[0].call_id: True}, deps=house)

    result = asyncio.run(through())
    assert outcomes(result, "book") == ["failed"]
    assert House(tmp_path).bookings() == []


def test_the_same_call_books_once_and_can_be_found_out_about(tmp_path: Path) -> None:
    house = House(tmp_path)
    assert house.booked_by("run/3/c5") is None
    assert house.book("garden", 3, 26700, "run/3/c5") == house.book("garden", 3, 26700, "run/3/c5") == house.booked_by("run/3/c5")
    assert len(house.bookings()) == 1


def command(*arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "examples.booking", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONUTF8": "1"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_answer_may_come_in_another_process(tmp_path: Path) -> None:
    folder = str(tmp_path / "trip")
    waits = command("--folder", folder)
    assert f"waits for a person: book {GARDEN}" in waits
    found = re.search(r"--resume (\w+)", waits)
    assert found is not None
    assert "That is all I could do" in command("--folder", folder, "--resume", found[1], "--answer", "yes")
    # Asked again, the run that has ended gives its answer, and nothing is booked again.
    again = command("--folder", folder, "--resume", found[1])
    assert again.count("booked: ") == 1
    assert "That is all I could do" in again


@pytest.mark.parametrize(("wrong", "told"), [("--resume", "needs the --folder"), ("--answer", "needs the run")])
def test_an_option_that_needs_another_one_says_so(
    wrong: str, told: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["booking", wrong, "yes"])
    with pytest.raises(SystemExit):
        main()
    assert told in capsys.readouterr().err

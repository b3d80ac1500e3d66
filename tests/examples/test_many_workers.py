"""Many workers on a real Postgres: one is killed, and every ticket is settled once all the same."""

from __future__ import annotations

import argparse
import asyncio
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.many_workers.__main__ import LARGEST, work
from examples.many_workers.agents import PRICES, Ledger, make_agent
from scripts.postgres import NoPostgresError, Postgres, install


@pytest.fixture
def url() -> Iterator[str]:
    """A database of its own. In CI Postgres is installed when it is missing, and never skipped."""
    try:
        install()
    except NoPostgresError as fault:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(fault))
    with Postgres() as server:
        yield server.database("workers")


def test_every_ticket_is_settled_once_though_a_worker_is_killed(url: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    ledger = tmp_path / "ledger.db"
    asked = argparse.Namespace(workers=2, tickets=9, model="script")
    assert work(url, ledger, make_agent(), asked) == 0, capfd.readouterr()
    told = capfd.readouterr().out
    assert "killed worker" in told
    assert "9 of 9 runs have an answer" in told
    # Large sums were asked about, and the person said no to the largest.
    assert [(ticket, cents) for ticket, cents, _ in Ledger(ledger).rows()] == [
        (ticket, PRICES[ticket]) for ticket in range(1, 10) if PRICES[ticket] <= LARGEST
    ]


def test_the_scripted_clerk_misbehaves_in_every_run_at_once_and_nothing_comes_of_it(tmp_path: Path) -> None:
    ledger = Ledger(tmp_path / "ledger.db")
    agent = make_agent()

    async def all_at_once() -> list[list[str]]:
        results = await asyncio.gather(*(agent.run(f"Settle ticket {ticket}.", deps=ledger) for ticket in (1, 2, 3)))
        return [[f"{step.tool} {step.outcome}" for step in result.steps] for result in results]

    for steps in asyncio.run(all_at_once()):
        assert steps == [
            "refund refused",  # before looking
            "look_up ok",
            "refund refused",  # not on offer yet in the turn of the look
            "refund refused",  # another ticket
            "refund ok",
            "refund refused",  # once
            "final_answer ok",
        ]
    assert [row[:2] for row in ledger.rows()] == [(1, 3000), (2, 4500), (3, 6000)]

"""Many runs by many worker processes, one of which is killed: every ticket is settled once.

python -m examples.many_workers [--store URL] [--workers N] [--tickets N] [--model script|local|openai:NAME|anthropic:NAME]

URL is postgresql://USER:PASSWORD@HOST/DATABASE; without it the runs are kept in a temporary SQLite file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from maymust import Agent, MaymustError

from .agents import LEDGER, MODEL, PRICES, Ledger, make_agent

if TYPE_CHECKING:
    from maymust.durable import DbosStore

LARGEST = 12_000
"""The person who is asked about large sums agrees up to so many cents."""


def start_worker(url: str, ledger: Path, model: str) -> subprocess.Popen[bytes]:
    """A worker, as `maymust worker` on any host."""
    here = f"{__package__}.agents"
    command = [sys.executable, "-m", "maymust", "worker", "--store", url, "--agent", f"{here}:desk", "--deps", f"{here}:ledger"]
    return subprocess.Popen([*command, "--concurrency", "4"], env={**os.environ, LEDGER: str(ledger), MODEL: model})


@contextlib.contextmanager
def workers(count: int, url: str, ledger: Path, model: str) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many workers, ended at the end."""
    started = [start_worker(url, ledger, model) for _ in range(count)]
    try:
        yield started
    finally:
        for worker in started:
            worker.terminate()
        for worker in started:
            worker.wait(30)


def settle(store: DbosStore, run_ids: list[str]) -> None:
    """Wait for the runs, and be the person who is asked about large sums."""
    for run_id in run_ids:
        while store.wait(run_id, timeout=120).status == "paused":
            for question in store.questions(run_id):
                yes = (question.arguments or {}).get("cents", 0) <= LARGEST
                store.decide(run_id, {question.call_id: yes}, by="the person at the desk")


def file_store(folder: str) -> str:
    """The address of a store in a SQLite file. Raises ValueError where DBOS cannot use the SQLite of this Python."""
    if sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
        raise ValueError(f"with this Python DBOS needs SQLite 3.42, and there is {sqlite3.sqlite_version}; give --store postgresql://...")
    return f"sqlite:///{folder}/runs.db"


def work(url: str, ledger: Path, agent: Agent[str], asked: argparse.Namespace) -> int:
    """Submit the tickets, let the workers settle them, kill one of them meanwhile, and look at the ledger. 0 when it is as it should be."""
    from maymust.durable import DbosStore  # says what to install where DBOS is missing, and main prints it

    store = DbosStore(url)
    tickets = list(PRICES)[: asked.tickets]
    try:
        run_ids = [store.submit(agent, f"Settle ticket {ticket}.", tenant=f"branch {ticket % 3}") for ticket in tickets]
        with workers(asked.workers, url, ledger, asked.model) as started:
            store.wait(run_ids[0], timeout=120)
            if len(started) > 1:
                started[0].kill()
                print(f"killed worker {started[0].pid}")
            settle(store, run_ids)
        answers = sum(store.state(run_id).answer is not None for run_id in run_ids)
    finally:
        store.close()
    rows = Ledger(ledger).rows()
    paid = [ticket for ticket, _, _ in rows]
    print(f"{answers} of {len(tickets)} runs have an answer; {len(rows)} refunds by {len({pid for _, _, pid in rows})} processes")
    wrong = [row for row in rows if paid.count(row[0]) > 1 or row[1] > min(PRICES[row[0]], LARGEST)]
    for row in wrong:
        print(f"NOT ALLOWED: {row}")
    return 0 if answers == len(tickets) and not wrong else 1


def main() -> int:
    """0 when every ticket was settled once."""
    parser = argparse.ArgumentParser(prog="python -m examples.many_workers", description="Many runs by many worker processes.")
    parser.add_argument("--store", metavar="URL", help="postgresql://USER:PASSWORD@HOST/DATABASE (default: a temporary SQLite file)")
    parser.add_argument("--workers", type=int, default=2, help="worker processes (default: 2)")
    parser.add_argument("--tickets", type=int, default=9, help="runs, at most 100 (default: 9)")
    parser.add_argument("--model", default="script", help="script (default), local, openai:NAME or anthropic:NAME")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="maymust-workers-", ignore_cleanup_errors=True) as folder:
        try:
            agent = make_agent(asked.model)
            return work(asked.store or file_store(folder), Path(folder) / "ledger.db", agent, asked)
        except (MaymustError, ImportError, TimeoutError, ValueError) as error:
            print(error, file=sys.stderr)
            return 1


if __name__ == "__main__":
    sys.exit(main())

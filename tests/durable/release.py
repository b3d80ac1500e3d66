"""Write the database that stands for a released version: `python -m tests.durable.release NAME`, before that version is released.

It goes to `released/NAME.sql` and is never written anew after that. What is in it: a run that waits, one that was interrupted, one that has
its answer, and one that was cancelled; with a child agent, a long text, a secret and a remembered choice on the way.
"""

from __future__ import annotations

import asyncio
import contextlib
import sqlite3
import sys
import tempfile
from pathlib import Path
from typing import Any

from pydantic import SecretStr

from maymust import Agent, AskPermissionRequirement, SqliteStore, tool
from maymust.models import call
from tests.durable.world import ByPlace

HERE = Path(__file__).parent / "released"
KEY = "dGhpcyBrZXkgaXMgaW4gdGhlIHRlc3RzLCBoYSBoYSE="


@tool
def pay(amount: int) -> str:
    """Pay."""
    return f"paid {amount}"


@tool
def log_in(password: SecretStr) -> str:
    """Log in."""
    return f"logged in, {len(password.get_secret_value())} letters"


@tool(effect="read")
def read() -> dict[str, Any]:
    """Read something long."""
    return {"text": "all work and no play " * 200}


WAITS: tuple[Any, ...] = (
    call("read", call_id="w1"),
    call("helper", call_id="w2", task="pay three"),
    [call("pay", call_id="w3", amount=1), call("log_in", call_id="w4", password="open sesame")],
    call("final_answer", call_id="w5", answer="waited"),
)
INNER: tuple[Any, ...] = (call("pay", call_id="i1", amount=3), call("final_answer", call_id="i2", answer="paid three"))


def desk(store: SqliteStore) -> Agent[str]:
    """The agent of all runs in it."""
    helper: Agent[str] = Agent(ByPlace(INNER), name="helper", description="Pays.", tools=[pay])
    asks = AskPermissionRequirement(["log_in"])
    once = AskPermissionRequirement(["pay"], remember_choices=True)
    return Agent(ByPlace(WAITS), name="desk", tools=[read, pay, log_in, helper.as_tool()], requirements=[asks, once], store=store)


async def make(store: SqliteStore) -> None:
    """The four runs."""
    agent = desk(store)
    await agent.run("run that waits")
    ended = await agent.run("run that has ended")
    await agent.resume(ended, {"w3": True, "w4": True})
    cancelled = await agent.run("run that was cancelled")
    agent.cancel(cancelled.state.run_id, by="Eve")
    broken = await agent.run("run that was interrupted")
    run = agent.start_resume(broken, {"w3": True})
    journal: Any = run._session._journal
    whole = journal._keep

    def die(new: Any, event: Any) -> None:
        whole(new, event)
        if type(event).__name__ == "ToolStarted":
            journal._broken = True
            journal.release()

    journal._keep = die
    await run


def main() -> None:
    """Write the file."""
    with tempfile.TemporaryDirectory() as folder:
        store = SqliteStore(Path(folder) / "runs.db", key=KEY)
        asyncio.run(make(store))
        store.close()
        with contextlib.closing(sqlite3.connect(Path(folder) / "runs.db")) as connection, connection:
            version = connection.execute("PRAGMA user_version").fetchone()[0]
            text = "\n".join([f"PRAGMA user_version={version};", *connection.iterdump()]) + "\n"
        (HERE / f"{sys.argv[1]}.sql").write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

"""Threads of sync tools: taken up again, never starved, and gone when the run is over."""

from __future__ import annotations

import asyncio
import threading
import time

from maymust import Agent, tool
from maymust.models import ScriptedModel, call

SEEN: list[int] = []


@tool
def note() -> str:
    """Note which thread this is."""
    SEEN.append(threading.get_ident())
    return str(len(SEEN))


def threads() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "maymust tool"]


def all_gone() -> bool:
    deadline = time.monotonic() + 10
    while threads() and time.monotonic() < deadline:
        time.sleep(0.01)
    return not threads()


def test_calls_one_after_another_share_a_thread_that_ends_with_the_run() -> None:
    SEEN.clear()
    asyncio.run(Agent(ScriptedModel([call("note"), call("note"), call("note"), "done"]), tools=[note]).run("go"))
    assert len(SEEN) == 3
    assert len(set(SEEN)) == 1
    assert all_gone()


def test_a_body_that_hangs_starves_no_other_and_its_thread_ends_after_it() -> None:
    release = threading.Event()

    @tool(timeout=0.05)
    def hang() -> str:
        """Hang."""
        release.wait(30)
        return "late"

    SEEN.clear()
    result = asyncio.run(Agent(ScriptedModel([[call("hang"), call("hang")], call("note"), "done"]), tools=[hang, note]).run("go"))
    assert [str(step.outcome) for step in result.steps] == ["failed", "failed", "ok"]
    release.set()
    assert all_gone()

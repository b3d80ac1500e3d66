"""Workers in forks of the zygote, agents for them, and a person who attends to what they ask."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from maymust import Agent, AskPermissionRequirement, Budget, ConditionalRequirement, FunctionInvocationContext, Happened, tool
from maymust.durable import DbosStore
from maymust.durable.dbos.worker import DbosWorker
from maymust.models import call
from tests.durable.stores import address
from tests.durable.world import OUTPUTS, ByPlace, Deps, KillingDbosStore, KillPlan, Oracle, agent, effect

LEASE = 1.0


@tool(effect="once", repeatable=True)
async def work(context: FunctionInvocationContext, number: int) -> str:
    """Do a piece of work that takes a moment."""
    await asyncio.sleep(0.05)
    await effect(context)
    return f"done {number}"


@tool(effect="read")
async def linger(context: FunctionInvocationContext) -> str:
    """Take long, the first time."""
    context.deps.oracle.note(context.call_id, context.idempotency_key)
    if len(context.deps.oracle.effects) == 1:
        await asyncio.sleep(60)
    return "lingered"


@tool(effect="once")
async def sign(context: FunctionInvocationContext, what: str) -> str:
    """Sign something, as the first version of the agent does it."""
    await effect(context)
    return f"signed {what}"


@tool(name="sign", effect="once")
async def sign_better(context: FunctionInvocationContext, what: str) -> str:
    """Sign something, as the first version of the agent does it."""
    await effect(context)
    return f"signed {what} in a better way"


def agent_called(name: str) -> Agent[Any]:
    """The agents of these tests."""
    if name == "shop":
        return agent(None)
    if name == "lingerer":
        return Agent(ByPlace((call("linger", call_id="l1"), call("final_answer", answer="done"))), name=name, tools=[linger])
    if name.startswith("worker"):
        turns = int(name.removeprefix("worker "))
        script = tuple(call("work", call_id=f"w{number}", number=number) for number in range(turns))
        last = call("final_answer", answer="done")
        return Agent(ByPlace((*script, last)), name=name, tools=[work], budget=Budget(turns=None), loop_guard=None)
    script = (call("sign", call_id="s1", what="it"), call("final_answer", answer="done"))
    rules: list[Any] = [AskPermissionRequirement(["sign"])]
    if name == "signer 3":
        rules.append(ConditionalRequirement("sign", max_invocations=2))
    return Agent(ByPlace(script), name="signer", tools=[sign if name == "signer 1" else sign_better], requirements=rules)


def serve(order: dict[str, Any]) -> dict[str, Any]:
    """What a fork does that is a worker: until SIGTERM."""
    folder, plan = Path(order["folder"]), KillPlan(**order.get("kill", {}))
    url = address(folder)
    assert url is not None
    store = KillingDbosStore(url, lease=order.get("lease", LEASE))
    store.plan = plan
    settings = {"concurrency": 4, "poll": 0.1, **order["worker"]}
    agents = [agent_called(name) for name in settings.pop("agents")]
    grace = settings.pop("grace", 5)
    worker = DbosWorker(store, agents, deps=lambda: Deps(Oracle(folder / "oracle"), plan), **settings)
    done = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: done.set())
    worker.start()
    done.wait()
    worker.stop(grace)
    store.close()
    return {"executor": worker.executor}


class Shift:
    """Workers of one folder; they are ended with it."""

    def __init__(self, zygote: Any, folder: Path) -> None:
        self.zygote, self.folder = zygote, folder
        self._pids: list[int] = []

    def begin(self, *agents: str, count: int = 1, kill: dict[str, Any] | None = None, **settings: Any) -> list[int]:
        """Start workers; gives their process ids."""
        order = {"worker": {"agents": agents, **settings}, "kill": kill or {}}
        pids = [self.zygote.spawn(self.folder, **order) for _ in range(count)]
        self._pids += pids
        return pids

    def end(self, pid: int, how: int = signal.SIGTERM) -> dict[str, Any]:
        """End a worker, and wait for that."""
        os.kill(pid, how)
        self._pids.remove(pid)
        return dict(self.zygote.wait(pid))

    def close(self) -> None:
        """End all of them."""
        for pid in list(self._pids):
            os.kill(pid, signal.SIGCONT)
            self.end(pid, signal.SIGKILL)


def attend(store: DbosStore, oracle: Oracle, run_ids: Iterable[str], seconds: float = 60) -> None:
    """Answer what is asked, as a person who can look at what really happened, until all runs have ended."""
    waiting, end = list(run_ids), time.monotonic() + seconds
    while waiting:
        for question in store.questions():
            name = question.call_id.rpartition("/")[2]
            done = any(known == name and key.startswith(question.run_id) for known, key in zip(oracle.effects, oracle.keys, strict=True))
            answer = Happened(OUTPUTS.get(name, "done")) if question.interrupted and done else True
            store.decide(question.run_id, {question.call_id: answer}, by="Ada")
        waiting = [run_id for run_id in waiting if store.run(run_id).status != "ended"]
        assert time.monotonic() < end, [(run_id, store.run(run_id), store.questions(run_id)) for run_id in waiting]
        time.sleep(0.05)


def until(happens: Any, seconds: float = 30) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end
        time.sleep(0.02)


def double(oracle: Oracle) -> Iterator[str]:
    """Effects that came twice, reads left out."""
    seen = set()
    for name, key in zip(oracle.effects, oracle.keys, strict=True):
        if key in seen and name not in ("look1", "l1"):
            yield key
        seen.add(key)

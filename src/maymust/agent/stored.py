"""Going on with a run, be it in a store or not."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from maymust.agent.blocking import running_loop
from maymust.agent.budget import Budget
from maymust.agent.inputs import readable
from maymust.agent.journal import Answer, Journal, Store
from maymust.agent.plan import LoopPlan
from maymust.agent.result import RunResult
from maymust.agent.resuming import checked, prepare_resume
from maymust.agent.state import RunState
from maymust.errors import RunError
from maymust.models.chat_model import ChatModel


def store_of(store: Store | None) -> Store:
    """The store of an agent. Raises RunError when it has none."""
    if store is None:
        raise RunError("this agent has no store, so it knows no runs by their id; make it with Agent(store=SqliteStore(path))")
    return store


def begin(store: Store | None, state: RunState) -> Journal | None:
    """The journal of a new run; None without a store. Raises RuntimeError without an event loop: a run that is kept has to run."""
    if store is None:
        return None
    running_loop()
    return store.begin(state)


def resume(
    store: Store | None,
    plan: LoopPlan,
    model: ChatModel,
    run: RunState | RunResult[Any] | str,
    decisions: Mapping[str, bool | Answer],
    *,
    budget: Budget | None = None,
    tools: Iterable[Any] = (),
    deps: Any = None,
    allow_policy_change: bool = False,
) -> tuple[RunState, Journal | None]:
    """The state to go on from, and the journal that keeps it where there is a store. Raises RunError, and leaves the run as it was then."""
    settings: dict[str, Any] = {"budget": budget, "tools": tools, "deps": deps, "allow_policy_change": allow_policy_change}
    given = run.state if isinstance(run, RunResult) else run
    if not isinstance(given, RunState | str):
        raise TypeError(f"resume() takes a RunState, a RunResult or the id of a run in the store, not {type(given).__name__}")
    if not isinstance(decisions, Mapping):
        raise TypeError(f"decisions={decisions!r}: give them by the ids of the calls, {{call_id: True}}")
    if isinstance(given, RunState) and (store is None or not store.knows(given.run_id)):
        # Made without the store; from here on it is kept, and this store counts its messages anew.
        state = prepare_resume(given, plan, decisions, **settings)
        state.received = 0
        return state, begin(store, state)
    store = store_of(store)
    running_loop()
    run_id = given if isinstance(given, str) else given.run_id
    claimed = store.claim(run_id, {call_id: checked(call_id, answer) for call_id, answer in decisions.items()})
    try:
        said = [replace(event, message=readable(event.message, model)) for event in claimed.said]
        state = prepare_resume(claimed.state, plan, claimed.answers, may_be_over=True, said=said, **settings)
        claimed.journal.take(state)
    except BaseException:
        claimed.journal.release()
        raise
    return state, claimed.journal

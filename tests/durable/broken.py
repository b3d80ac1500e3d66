"""Drivers that are wrong on purpose: the suite has to notice."""

from __future__ import annotations

import importlib
from typing import Any

from maymust.agent.actions import Event, ToolFinished, ToolStarted
from maymust.agent.reducer import apply
from maymust.agent.state import RunState
from maymust.core.step import Outcome
from maymust.durable.claim import SqliteJournal

NAMES = ("no intent", "result before effect", "blind repeat")


def install(name: str | None) -> None:
    """Break this process in the way of that name."""
    whole: Any = SqliteJournal.fold
    if name == "no intent":

        def without_intent(self: SqliteJournal, state: RunState, event: Event) -> RunState:
            if isinstance(event, ToolStarted):
                return apply(state, event)
            return whole(self, state, event)  # type: ignore[no-any-return]

        SqliteJournal.fold = without_intent  # type: ignore[method-assign]
        journal: Any = importlib.import_module("maymust.durable.dbos.journal")
        can_wait = journal._can_wait
        journal._can_wait = lambda event: isinstance(event, ToolStarted) or can_wait(event)
    elif name == "result before effect":

        def too_early(self: SqliteJournal, state: RunState, event: Event) -> RunState:
            if isinstance(event, ToolStarted):
                started = apply(state, event)
                self._keep(apply(started, ToolFinished(event.call_id, Outcome.OK, "ok", arguments=event.arguments)), event)
                return started
            return whole(self, state, event)  # type: ignore[no-any-return]

        SqliteJournal.fold = too_early  # type: ignore[method-assign]
    elif name == "blind repeat":
        driver: Any = importlib.import_module("maymust.agent.driver")

        async def nothing(session: Any) -> None: ...

        driver.recover = nothing

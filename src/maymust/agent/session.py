"""One run in progress: its state, and what drivers need beside it. Nothing of it is stored or shared."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from maymust.agent.actions import Event, MessageSent, ToolsChanged
from maymust.agent.call_record import PendingCall
from maymust.agent.exposure import check_added, check_removed
from maymust.agent.journal import Journal
from maymust.agent.lent_history import LentHistory
from maymust.agent.listeners import Listeners
from maymust.agent.middleware import Middleware
from maymust.agent.plan import LoopPlan
from maymust.agent.reducer import apply
from maymust.agent.state import RunState
from maymust.agent.workers import Workers
from maymust.core.history import History
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.models.chat_model import ChatModel
from maymust.tools.function_tool import Tool

log: logging.Logger = logging.getLogger(__name__)


class Session:
    """What belongs to one run while it runs. It is also the seam (`RunSeam`) that tool contexts reach the run by.

    `fold` is how an event gets into the state; that of a child agent is a part of its parent's.
    `journal` keeps the run in a store. `recovers` when it goes on from there: calls may have been under way when its process ended.
    """

    def __init__(
        self,
        *,
        plan: LoopPlan,
        model: ChatModel,
        state: RunState,
        middleware: tuple[Middleware, ...] = (),
        show_errors: bool = True,
        fold: Callable[[RunState, Event], RunState] = apply,
        journal: Journal | None = None,
        recovers: bool = False,
    ) -> None:
        self.plan: LoopPlan = plan
        self.model: ChatModel = model
        self.state: RunState = state
        self.middleware: tuple[Middleware, ...] = middleware
        self.show_errors: bool = show_errors
        self.listeners: Listeners = Listeners()
        self.workers: Workers = Workers()
        self.pending: tuple[PendingCall, ...] = ()
        self.over: bool = False
        self.told_tools: tuple[Tool, ...] = state.tools
        # Seconds that the coming turn's plan took to make.
        self.deciding: float | None = None
        # Pieces of an answer were shown that is neither committed nor withdrawn; before a pause, perhaps.
        self.tentative: bool = any(record.name == FINAL_ANSWER and record.status != "done" for record in state.calls)
        self._fold = fold if journal is None else journal.fold
        self._journal = journal
        self._closed = False
        self.recovers: bool = recovers
        self._clock = time.monotonic() - state.seconds
        self._lock = threading.Lock()
        self._changes: dict[str, tuple[dict[str, Tool], dict[str, None]]] = {}
        self._given_up: set[str] = set()

    @property
    def seconds(self) -> float:
        """Running time of the run so far, pauses left out."""
        return time.monotonic() - self._clock

    def apply(self, event: Event) -> None:
        """Fold an event into the state."""
        if not self.listeners.any:
            self.state = self._fold(self.state, event)
            return
        begun, before = time.perf_counter(), self.state.coming
        self.state = self._fold(self.state, event)
        if self.state.coming is not before:
            self.deciding = time.perf_counter() - begun

    def hear_cancel(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` when somebody cancels the run from outside."""
        if self._journal is not None:
            self._journal.on_cancel(cancel)

    def hear_messages(self, hear: Callable[[MessageSent], None]) -> None:
        """Call `hear` when somebody says something to the run from outside."""
        if self._journal is not None:
            self._journal.on_message(hear)

    # --- what a tool's context sees ---
    @property
    def tools(self) -> Sequence[Tool]:
        """The tools that are present this turn."""
        return self.state.tools

    @property
    def history(self) -> History:
        """The steps so far, to look at."""
        return LentHistory(self.state.history)

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The run's metadata."""
        return self.state.metadata

    @property
    def deps(self) -> Any:
        """The run's deps."""
        return self.state.deps

    def add_tools(self, call_id: str, tools: tuple[Any, ...]) -> None:
        """Note tools that a call adds; they count if the call succeeds."""
        with self._lock:
            self._check_alive(call_id)
            taken = {tool.name: tool for tool in (*self.plan.loadable, *self.state.tools, *self.state.arriving.values())}
            for added, _ in self._changes.values():
                taken.update(added)
            present = {tool.name for tool in self.state.tools}
            mine_added, mine_removed = self._changes.setdefault(call_id, ({}, {}))
            for tool in check_added(tools, taken):
                if tool.name not in present or tool.name in mine_removed:
                    mine_added[tool.name] = tool

    def remove_tools(self, call_id: str, tools: tuple[Any, ...]) -> None:
        """Note tools that a call removes; it counts if the call succeeds."""
        with self._lock:
            self._check_alive(call_id)
            # That of the turn, so that it does not depend on which sibling is the first to end.
            permit = self.state.turns[-1].permit
            mine_added, mine_removed = self._changes.setdefault(call_id, ({}, {}))
            for name in check_removed(tools, (*self.state.tools, *mine_added.values()), permit):
                mine_added.pop(name, None)
                mine_removed[name] = None

    def change_tools(self, added: Iterable[Tool], removed: Iterable[str]) -> None:
        """Tools came or went by themselves; in force from the next turn on. A name that another tool has stays with that one."""
        with self._lock:
            there = {tool.name: tool for tool in (*self.state.tools, *self.state.arriving.values())}
            gone = tuple(name for name in removed if name in there)
            taken = {name: tool for name, tool in there.items() if name not in gone}
            new: list[Tool] = []
            for tool in added:
                try:
                    new += [one for one in check_added([tool], taken) if one.name not in taken]
                except ValueError as fault:
                    log.warning("run %s: a tool that came by itself is left out: %s", self.state.run_id, fault)
            if new or gone:
                self.apply(ToolsChanged(tuple(new), gone))

    def take_changes(self, call_id: str) -> tuple[tuple[Tool, ...], tuple[str, ...]]:
        """The changes a call has made; they are forgotten here."""
        if not self._changes:
            return (), ()
        with self._lock:
            added, removed = self._changes.pop(call_id, ({}, {}))
        return tuple(added.values()), tuple(removed)

    def give_up(self, call_id: str) -> None:
        """Nobody waits for this call any more."""
        self._given_up.add(call_id)

    def is_cancelled(self, call_id: str) -> bool:
        """Whether nobody waits for this call any more."""
        return self.over or call_id in self._given_up

    def close(self) -> None:
        """The run is over: contexts that were kept can change nothing any more."""
        self.workers.close()
        with self._lock:
            self.over = True
            self._changes.clear()
        if self._journal is not None and not self._closed:
            self._closed = True
            self._journal.close(self.state, self.pending)

    def _check_alive(self, call_id: str) -> None:
        if self.over:
            raise RuntimeError("this run is over; tools can be added or removed only while it runs")
        # A change counts when its call succeeds, so later ones would be lost without a word.
        if self.is_cancelled(call_id) or not any(one.call_id == call_id and one.status != "done" for one in self.state.calls):
            raise RuntimeError(f"call {call_id!r} is over; tools can be added or removed only while it runs")

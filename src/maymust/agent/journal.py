"""The seam to a store: what keeps a run while it runs, so that it outlives its process. `maymust.durable` has the stores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from maymust.agent.actions import Event, MessageSent
from maymust.agent.call_record import PendingCall
from maymust.agent.state import RunState
from maymust.requirements.permission import Decision
from maymust.tools.happened import Happened

Answer = Decision | Happened
"""What a person has decided about a call. `Happened` is only for calls that were interrupted."""


class Journal(Protocol):
    """What is kept of one run that is under way. Nobody else writes to that run meanwhile."""

    def fold(self, state: RunState, event: Event) -> RunState:
        """The state after the event, kept before this returns. Raises RunError when it cannot be kept: then nothing may come of it."""
        ...

    def take(self, state: RunState) -> None:
        """Keep the state from which a resumed run goes on; the decisions it was given are used up with it."""
        ...

    def on_cancel(self, cancel: Callable[[], None]) -> None:
        """Call `cancel` when somebody cancels the run from outside, in whatever thread."""
        ...

    def on_message(self, hear: Callable[[MessageSent], None]) -> None:
        """Call `hear` with what somebody says to the run from outside, in whatever thread; it is kept when it is folded."""
        ...

    def release(self) -> None:
        """Give the run back unchanged."""
        ...

    def close(self, state: RunState, pending: Sequence[PendingCall]) -> None:
        """The run is over, or waits for a person: others may go on with it. Does not raise."""
        ...


@dataclass(frozen=True, slots=True)
class Claimed:
    """A stored run that is ours to go on with, what was decided about its calls since it stopped, and what was said to it."""

    state: RunState
    answers: Mapping[str, Answer]
    journal: Journal
    said: Sequence[MessageSent] = ()


@runtime_checkable
class Store(Protocol):
    """Keeps runs."""

    def begin(self, state: RunState) -> Journal:
        """Keep a new run. Raises RunError when it cannot be kept, or is there already."""
        ...

    def knows(self, run_id: str) -> bool:
        """Whether the run is there."""
        ...

    def claim(self, run_id: str, answers: Mapping[str, Answer]) -> Claimed:
        """Take over a run that nobody works on, with further decisions. Raises RunError, and changes nothing then."""
        ...

    def decide(self, run_id: str, answers: Mapping[str, bool | Answer], *, by: str | None = None) -> Sequence[Any]:
        """Note decisions about calls that wait; the first one counts. Raises RunError."""
        ...

    def cancel(self, run_id: str, *, by: str | None = None, reason: str | None = None) -> None:
        """End a run for good, wherever it is. Raises RunError when it has ended already."""
        ...

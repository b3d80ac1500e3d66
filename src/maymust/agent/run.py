"""`Run`: one run that is under way. Await it for its result, or iterate over its events."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Generator
from typing import Generic

from typing_extensions import TypeVar

from maymust.agent.actions import Cancelled, MessageSent
from maymust.agent.driver import drive
from maymust.agent.events import MessageReceived, RunEvent
from maymust.agent.result import RunResult
from maymust.agent.session import Session
from maymust.agent.state import RunState, StopReason
from maymust.errors import RunError
from maymust.models.message import Message

T = TypeVar("T", default=str)
E = TypeVar("E", bound=RunEvent)


class Run(Generic[T]):
    """A run that is under way. It starts when the running event loop gets to it, so listeners added at once miss nothing.

    `await run` gives the `RunResult`; `async for event in run` gives its events, and leaving the iteration early cancels the run.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stopped = False
        self._task: asyncio.Task[RunResult[T]] = asyncio.get_running_loop().create_task(
            self._main(), name=f"maymust run {session.state.run_id}"
        )

    @property
    def id(self) -> str:
        """The run's id."""
        return self._session.state.run_id

    @property
    def state(self) -> RunState:
        """The state as it is now. A value: it does not change when the run goes on."""
        return self._session.state

    @property
    def done(self) -> bool:
        """Whether the run has ended or waits for a person."""
        return self._task.done()

    def cancel(self) -> None:
        """Stop the run. Awaiting it then gives a result with stop reason "aborted"; what was done is kept, and it can be resumed."""
        if not self._task.done():
            self._stopped = True
            self._task.cancel()

    def send(self, message: str | Message) -> None:
        """Say something to the running run; the model reads it in its next turn. Raises RunError after the end."""
        if self._task.done():
            raise RunError(f"run {self.id} is over; continue the conversation with agent.start(..., previous=result)")
        said = message if isinstance(message, Message) else Message("user", message)
        self._session.apply(MessageSent(said))
        if self._session.listeners.wants(MessageReceived):
            self._session.listeners.emit(MessageReceived(self.id, said.text))

    def on(self, kind: type[E], handler: Callable[[E], Awaitable[None] | None], blocking: bool = False) -> Run[T]:
        """Call `handler` (sync or async) with each event of this kind.

        An observer that raises is logged. A blocking listener to the start of a call or a model call is awaited and may answer or
        refuse it; one that raises stops the run before anything is done. Returns the run.
        """
        self._session.listeners.on(kind, handler, blocking=blocking)
        return self

    async def _main(self) -> RunResult[T]:
        session = self._session
        try:
            await drive(session)
        except asyncio.CancelledError:
            if not self._stopped:
                raise
        finally:
            await session.listeners.close()
        return self._result()

    def _result(self) -> RunResult[T]:
        session = self._session
        reason: StopReason = "paused" if session.pending else session.state.stop_reason or "aborted"
        return RunResult(session.state, reason, session.pending, session.plan.final)

    def __await__(self) -> Generator[object, None, RunResult[T]]:
        return self._wait().__await__()

    async def _wait(self) -> RunResult[T]:
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._stopped and self._task.cancelled():
                # Stopped before it began.
                if self._session.state.stop_reason is None:
                    self._session.apply(Cancelled())
                return self._result()
            if not self._task.done():
                # Whoever waits is cancelled: the run is theirs, so it ends too, and is waited for.
                self._task.cancel()
                await asyncio.wait([self._task])
            raise

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        stream = self._session.listeners.stream()
        if self._task.done():
            stream.end()
        return self._iterate(stream.events(), stream)

    async def _iterate(self, source: AsyncIterator[RunEvent], stream: object) -> AsyncIterator[RunEvent]:
        try:
            async for event in source:
                yield event
        finally:
            self._session.listeners.drop(stream)  # type: ignore[arg-type]  # it came from there
            self.cancel()

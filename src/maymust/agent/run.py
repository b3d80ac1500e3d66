"""`Run`: one run that is under way. Await it for its result, or iterate over its events."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Generator, Sequence
from dataclasses import replace
from typing import Any, Generic, Protocol

from typing_extensions import TypeVar

from maymust.agent.actions import Cancelled, MessageSent
from maymust.agent.blocking import running_loop
from maymust.agent.driver import drive
from maymust.agent.events import MessageReceived, RunEvent, RunFinished
from maymust.agent.inputs import check_parts, from_user, readable
from maymust.agent.listeners import EventStream
from maymust.agent.result import RunResult
from maymust.agent.session import Session
from maymust.agent.state import RunState
from maymust.agent.turn import StopReason
from maymust.errors import MaymustError, RunError
from maymust.models.message import Message
from maymust.tools.function_tool import Tool

T = TypeVar("T", default=str)
E = TypeVar("E", bound=RunEvent)


class ToolsChange(Protocol):
    """Tools that came and went."""

    @property
    def added(self) -> Sequence[Tool]: ...
    @property
    def removed(self) -> Sequence[Tool]: ...


class ToolSource(Protocol):
    """Tools that change by themselves. `on_change` gives a function that ends the listening; listeners may be called in any thread."""

    @property
    def tools(self) -> Sequence[Tool]: ...
    def on_change(self, listener: Callable[[Any], None]) -> Callable[[], None]:
        """Call `listener` with what came and went (a `ToolsChange`), from now on until the function that is returned is called."""
        ...


class Run(Generic[T]):
    """A run that is under way. It starts when the running event loop gets to it, so listeners added at once miss nothing.

    `await run` gives the `RunResult`, as often as it is awaited. `async for event in run` gives its events; the run goes no further
    than whoever iterates, and leaving the iteration early cancels it. What ends the run in error is raised in both.
    """

    def __init__(self, session: Session) -> None:
        self._session = session
        self._stopped = False
        self._broken: Exception | None = None
        self._loop = running_loop()
        self._task: asyncio.Task[RunResult[T]] = self._loop.create_task(self._main(), name=f"maymust run {session.state.run_id}")
        self._task.add_done_callback(self._over)
        session.hear_cancel(self.cancel)
        session.hear_messages(self._sent)

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
        """Stop the run; also from another thread. Awaiting it then gives a result with stop reason "aborted".

        What was done is kept, and the run can be resumed. After the end this does nothing.
        """
        self._in_loop(self._cancel)

    def send(self, message: str | Message) -> None:
        """Say something to the running run, also from another thread; the model reads it in its next turn.

        Raises RunError while the run is paused, after its end, for a message that is empty or not the user's, and for parts the model
        does not take.
        """
        said = from_user(message, "run.send()")
        check_parts([said], self._session.model)
        if self._session.pending:
            waiting = ", ".join(call.call_id for call in self._session.pending)
            raise RunError(f"run {self.id} is paused: {waiting} waits for a person; go on with agent.start_resume(...), and send then")
        if self._session.over:
            raise RunError(f"run {self.id} is over; continue the conversation with agent.start(..., previous=result)")
        self._in_loop(self._receive, MessageSent(said))

    def on(
        self, kind: type[E], handler: Callable[[E], Awaitable[None] | None], blocking: bool = False, *, children: bool = False
    ) -> Run[T]:
        """Call `handler` (sync or async) with each event of this kind; with `children` also with those of child agents, at any depth.

        The `run_id` of a child's events is that of the run that called it, "/", and the id of the call.
        An observer that raises is logged. A blocking listener to the start of a call or a model call is awaited and may answer or
        refuse it; one that raises stops the run before anything is done. Returns the run.
        """
        self._session.listeners.on(kind, handler, blocking=blocking, children=children)
        return self

    def follow(self, source: ToolSource) -> Run[T]:
        """Let the run's tools follow a source whose list changes, such as `mcp_tools`: what comes or goes does so from the next turn on.

        Tools that have come to the source since the agent was made are added at once. Returns the run.
        """
        session = self._session

        def changed(change: ToolsChange) -> None:
            self._in_loop(session.change_tools, change.added, tuple(tool.name for tool in change.removed))

        end = source.on_change(changed)
        self._task.add_done_callback(lambda _: end())
        session.change_tools(source.tools, ())
        return self

    def _in_loop(self, action: Callable[..., None], *arguments: object) -> None:
        try:
            here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            here = False
        if here:
            action(*arguments)
        else:
            self._loop.call_soon_threadsafe(action, *arguments)

    def _cancel(self) -> None:
        # What is over is only waiting for its observers.
        if not self._task.done() and not self._session.over:
            self._stopped = True
            self._task.cancel()

    def _receive(self, event: MessageSent) -> None:
        self._session.apply(event)
        if self._session.listeners.wants(MessageReceived):
            self._session.listeners.emit(MessageReceived(self.id, event.message.text))

    def _sent(self, event: MessageSent) -> None:
        """A message has come to the store, in whatever thread. One that comes too late for this loop stays there."""
        with contextlib.suppress(RuntimeError):
            self._in_loop(self._hear, replace(event, message=readable(event.message, self._session.model)))

    def _hear(self, event: MessageSent) -> None:
        if self._session.over or self._task.done() or self._broken is not None:
            return
        try:
            self._receive(event)
        except Exception as fault:
            # What cannot be kept breaks the run off, wherever it is.
            self._broken = fault
            self._task.cancel()

    async def _main(self) -> RunResult[T]:
        session = self._session
        try:
            await drive(session)
        except asyncio.CancelledError:
            if self._broken is not None:
                if isinstance(self._broken, MaymustError):
                    self._broken.state = session.state
                raise self._broken from None
            if not self._stopped:
                raise
        finally:
            await session.listeners.close()
        return self._result()

    def _over(self, task: asyncio.Task[RunResult[T]]) -> None:
        session = self._session
        if not session.over:
            # Cancelled before it began.
            session.apply(Cancelled())
            session.close()
            if session.listeners.wants(RunFinished):
                session.listeners.emit(RunFinished(self.id, "aborted"))
        session.listeners.end_streams()

    def _result(self) -> RunResult[T]:
        session = self._session
        reason: StopReason = "paused" if session.pending else session.state.stop_reason or "aborted"
        return RunResult(session.state, reason, session.pending, session.plan.final)

    def __await__(self) -> Generator[object, None, RunResult[T]]:
        return self._wait().__await__()

    async def _wait(self) -> RunResult[T]:
        self._session.listeners.hurry()
        try:
            return await asyncio.shield(self._task)
        except asyncio.CancelledError:
            if self._stopped and self._task.cancelled():
                return self._result()
            if not self._task.done():
                # Whoever waits is cancelled: the run is theirs, so it ends too, and is waited for.
                self._task.cancel()
                await asyncio.wait([self._task])
            raise

    def __aiter__(self) -> AsyncIterator[RunEvent]:
        stream = self._session.listeners.stream()
        if self._session.over:
            stream.end()
        return _Reader(self, stream)

    def _left(self, stream: EventStream) -> None:
        self._session.listeners.drop(stream)
        if not self._task.done():
            self.cancel()

    async def _fault(self) -> BaseException | None:
        """What broke the run, once it is over."""
        await asyncio.wait([self._task])
        return None if self._task.cancelled() else self._task.exception()


class _Reader(AsyncIterator[RunEvent]):
    """Somebody who iterates over a run. No generator: leaving a loop drops this object, and that is noticed at once."""

    def __init__(self, run: Run[Any], stream: EventStream) -> None:
        self._run, self._stream, self._ended = run, stream, False

    async def __anext__(self) -> RunEvent:
        event = None if self._ended else await self._stream.take()
        if event is not None:
            return event
        if not self._ended:
            self._ended = True
            fault = await self._run._fault()
            if fault is not None:
                raise fault
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Leave the iteration; that cancels the run."""
        self._leave()

    def _leave(self) -> None:
        if not self._ended:
            self._ended = True
            self._run._left(self._stream)

    def __del__(self) -> None:
        self._leave()

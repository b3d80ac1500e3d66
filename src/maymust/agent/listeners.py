"""Who listens to a run, and how events reach them."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any, TypeVar

from maymust.agent.events import BLOCKING, CallStarted, ModelCallStarted, RunEvent
from maymust.errors import PolicyError
from maymust.tools.output import own_json

log: logging.Logger = logging.getLogger(__name__)

E = TypeVar("E", bound=RunEvent)
Handler = Callable[[Any], Awaitable[None] | None]


class Listeners:
    """The listeners of one run.

    Observers are isolated: one that raises is logged. Blocking listeners are awaited, and one that raises stops what it listens to.
    """

    def __init__(self) -> None:
        self._observers: list[tuple[type[RunEvent], Handler]] = []
        self._blocking: list[tuple[type[RunEvent], Handler]] = []
        self._handed_down: list[tuple[type[RunEvent], Handler, bool]] = []
        self._streams: list[EventStream] = []
        self._tasks: set[asyncio.Task[None]] = set()
        self.any: bool = False
        self.paced: bool = False

    def on(self, kind: type[E], handler: Callable[[E], Awaitable[None] | None], *, blocking: bool = False, children: bool = False) -> None:
        """Call `handler` with each event of this kind.

        Raises PolicyError for what is no event or no function, and for a blocking listener to an event that cannot be answered.
        """
        if not _is_event_class(kind):
            raise PolicyError(f"run.on({kind!r}): give a class of maymust.events")
        if not callable(handler):
            raise PolicyError(f"run.on({kind.__name__}, {handler!r}): a listener is a function of the event")
        if blocking and not issubclass(kind, BLOCKING):
            names = ", ".join(sorted(one.__name__ for one in BLOCKING))
            raise PolicyError(f"a blocking listener can answer {names}, and {kind.__name__} is neither; leave out blocking=True")
        (self._blocking if blocking else self._observers).append((kind, handler))
        if children:
            self._handed_down.append((kind, handler, blocking))
        self.any = True

    def hand_down(self, child: Listeners) -> None:
        """Let the listeners that asked for it hear a child agent's run as well."""
        for kind, handler, blocking in self._handed_down:
            child.on(kind, handler, blocking=blocking, children=True)

    def stream(self) -> EventStream:
        """A new stream of all events from now on."""
        stream = EventStream()
        self._streams.append(stream)
        self.any = self.paced = True
        return stream

    def drop(self, stream: EventStream) -> None:
        """Stop feeding this stream."""
        if stream in self._streams:
            self._streams.remove(stream)
        stream.drained.set()

    async def caught_up(self) -> None:
        """Wait until whoever iterates has taken all events, so that leaving the iteration stops the run right there."""
        for stream in tuple(self._streams):
            if self.paced:
                await stream.drained.wait()

    def hurry(self) -> None:
        """Wait for nobody any more: whoever iterated waits for the result now."""
        self.paced = False
        for stream in self._streams:
            stream.drained.set()

    def emit(self, event: RunEvent) -> None:
        """Tell the observers."""
        for stream in self._streams:
            stream.put(event)
        for kind, handler in self._observers:
            if isinstance(event, kind):
                self._notify(handler, event)

    def wants(self, kind: type[RunEvent]) -> bool:
        """Whether anybody would hear an event of this kind."""
        return self.any and (bool(self._streams) or any(issubclass(kind, listened) for listened, _ in (*self._observers, *self._blocking)))

    async def ask(self, event: CallStarted | ModelCallStarted) -> None:
        """Tell the observers, then await the blocking listeners in their order. What these raise comes out.

        Observers have an event of their own: whatever they do to it answers nothing, and hides nothing from those who may answer.
        """
        told = replace(event)
        if isinstance(told, CallStarted):
            told.arguments = own_json(told.arguments)
        self.emit(told)
        for kind, handler in self._blocking:
            if isinstance(event, kind):
                answer = handler(event)
                if inspect.isawaitable(answer):
                    await answer
        told.output, told.refusal = event.output, event.refusal

    async def close(self) -> None:
        """End all streams and wait for async observers."""
        self.end_streams()
        if self._tasks:
            await asyncio.gather(*self._tasks, return_exceptions=True)

    def end_streams(self) -> None:
        """Let everybody who iterates come to the end."""
        for stream in self._streams:
            stream.end()
        self._streams = []

    def _notify(self, handler: Handler, event: RunEvent) -> None:
        try:
            answer = handler(event)
        except Exception:
            log.exception("a listener to %s raised; the run goes on", type(event).__name__)
            return
        if inspect.isawaitable(answer):
            task = asyncio.ensure_future(_isolated(answer, type(event).__name__))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)


async def _isolated(answer: Awaitable[None], kind: str) -> None:
    try:
        await answer
    except Exception:
        log.exception("a listener to %s raised; the run goes on", kind)


def _is_event_class(kind: Any) -> bool:
    return inspect.isclass(kind) and issubclass(kind, RunEvent)


class EventStream:
    """Events waiting for somebody who iterates."""

    def __init__(self) -> None:
        self._events: deque[RunEvent] = deque()
        self._ended = False
        self._wake = asyncio.Event()
        self.drained: asyncio.Event = asyncio.Event()

    def put(self, event: RunEvent) -> None:
        self._events.append(event)
        self.drained.clear()
        self._wake.set()

    def end(self) -> None:
        self._ended = True
        self._wake.set()

    async def take(self) -> RunEvent | None:
        """The next event, None at the end."""
        while not self._events:
            self.drained.set()
            if self._ended:
                return None
            self._wake.clear()
            await self._wake.wait()
        return self._events.popleft()

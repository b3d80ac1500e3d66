"""Replies as streams: text goes on at once where a text may be the answer; calls are held until all of them are there and judged."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from maymust.gateway import replies
from maymust.gateway.checkpoint import Checkpoint
from maymust.gateway.client import Client
from maymust.gateway.dialect import StreamForm
from maymust.gateway.rejected import Rejected
from maymust.gateway.sse import Splitter, events_of, object_of

_ESCAPE = b"\\u00"
"""Any text may be written with escapes."""

Head = tuple[int, Sequence[tuple[bytes, bytes]]]


class Streaming:
    """The stream that one client gets, made of one reply or, where text was out before calls were refused, of several.

    changed  the client got something else than the upstream sent
    """

    def __init__(self, form: StreamForm, client: Client, most: int) -> None:
        self.changed: bool = False
        self._form = form
        self._client = client
        self._most = most
        self._goes_on = False

    async def take(self, response: httpx.Response, checkpoint: Checkpoint, head: Head) -> bool:
        """Read one reply. True when the client has it; else the model has to be asked again. Raises Rejected."""
        splitter = Splitter()
        passed: list[bytes] = []
        delivered: list[bytes] = []
        held: list[bytes] = []
        holding = not checkpoint.may_stop
        async for piece in replies.pieces(response, self._most):
            if holding:
                held += splitter.feed(piece)
                continue
            ready, late = self._parted(splitter.take(piece))
            if late:
                holding = True
                held += late
            if ready:
                passed.append(ready)
                delivered += await self._pass(ready, head)
        if splitter.rest:
            # The last event, without the empty line after it.
            last = _whole(splitter.rest)
            holding = holding or self._begins_call(last)
            (held if holding else passed).append(last)
            if not holding:
                await self._pass(last, head)
        if not holding:
            await self._finish([], head)
            return True
        return await self._judge(checkpoint, passed, delivered, held, head)

    async def _judge(self, checkpoint: Checkpoint, passed: list[bytes], delivered: list[bytes], held: list[bytes], head: Head) -> bool:
        """The word on a reply that was held, or a part of it. `held` are events, the others are pieces with some events each."""
        try:
            # Text that is out already need not be read to judge the calls after it.
            told = self._form.read_calls(held) if passed and held else None
            reply, whole = told if told is not None and told[0].calls else self._form.read([*events_of(passed), *held])
            if not whole:
                if held and b'"error"' in held[-1] and not self._form.begins_call(held[-1]):
                    await self._finish(held[-1:], head)
                    return True
                raise Rejected(502, "upstream", "the stream ended before the reply did")
            verdict = await checkpoint.judge(reply)
            if not verdict.legal:
                if told is not None:
                    reply, _ = self._form.read([*events_of(passed), *held])
                if delivered:
                    self._form.sent(events_of(delivered))
                    self._goes_on = self.changed = True
                checkpoint.again(reply, verdict)
                return False
            if verdict.refused:
                self.changed = True
                await self._finish(self._form.rewritten(held, verdict.refused), head, as_they_are=True)
            else:
                await self._finish(held, head)
        except ValueError as error:
            raise Rejected(502, "upstream", f"the reply cannot be judged: {error}") from error
        return True

    def _parted(self, whole: bytes) -> tuple[bytes, list[bytes]]:
        """What comes before the first call, in one piece, and the events from there on."""
        marked = self._marked(whole)
        if marked < 0:
            return whole, []
        before = whole.rfind(b"\n\n", 0, marked)
        # Where there are other ends, or more empty lines than one, it takes all that comes before to tell where an event begins.
        at = 0 if before < 0 or b"\r" in whole or whole[before - 1 : before] == b"\n" else before + 2
        events = events_of([whole[at:]])
        for place, event in enumerate(events):
            if self._begins_call(event):
                return whole[:at], events[place:]
            at += len(event)
        return whole, []

    def _marked(self, events: bytes) -> int:
        """Where the first thing is without which no event begins a call; -1 when there is none."""
        first, end = -1, len(events)
        for mark in self._form.marks:
            place = events.find(mark, 0, end)
            if place >= 0:
                first = end = place
        # Most texts have no escapes at all, and what comes after a mark does not matter.
        escaped = events.find(_ESCAPE, 0, end) if events.find(b"\\", 0, end) >= 0 else -1
        return escaped if escaped >= 0 else first

    def _begins_call(self, event: bytes) -> bool:
        try:
            return self._marked(event) >= 0 and self._form.begins_call(event)
        except ValueError as error:
            raise Rejected(502, "upstream", f"the reply cannot be judged: {error}") from error

    async def _pass(self, piece: bytes, head: Head) -> list[bytes]:
        """Send some events; what was sent."""
        await self._begin(head)
        sent = self._continued([piece])
        await self._client.write(b"".join(sent))
        return sent

    async def _finish(self, pieces: list[bytes], head: Head, *, as_they_are: bool = False) -> None:
        """Send the last events."""
        await self._begin(head)
        await self._client.end(b"".join(pieces if as_they_are else self._continued(pieces)))

    async def _begin(self, head: Head) -> None:
        if not self._client.started:
            await self._client.start(*head)

    def _continued(self, pieces: list[bytes]) -> list[bytes]:
        """The events in these pieces as they go on from what is out."""
        return self._form.rewritten(events_of(pieces), ()) if self._goes_on else pieces

    async def fail(self, rejected: Rejected) -> None:
        """Tell an error in the middle of the stream."""
        await self._client.end(self._form.error(rejected))


def _whole(event: bytes) -> bytes:
    """An event after which nothing came, if it is one. Raises Rejected for a part of one."""
    try:
        object_of(event)
    except ValueError:
        raise Rejected(502, "upstream", "the stream ended before the reply did") from None
    return event

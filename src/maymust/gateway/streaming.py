"""Replies as streams: text goes on at once where a text may be the answer; calls are held until all of them are there and judged."""

from __future__ import annotations

from collections.abc import Sequence

import httpx

from maymust.gateway import replies
from maymust.gateway.checkpoint import Checkpoint
from maymust.gateway.client import Client
from maymust.gateway.dialect import StreamForm
from maymust.gateway.rejected import Rejected
from maymust.gateway.sse import Splitter, object_of

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
        may_hold_a_call = self._form.may_hold_a_call
        async for piece in replies.pieces(response, self._most):
            ready: list[bytes] = []
            for event in splitter.feed(piece):
                if not holding and may_hold_a_call(event):
                    holding = self._begins_call(event)
                (held if holding else ready).append(event)
            if ready:
                passed += ready
                delivered += await self._pass(ready, head)
        if splitter.rest:
            # The last event, without the empty line after it.
            last = _whole(splitter.rest)
            holding = holding or (may_hold_a_call(last) and self._begins_call(last))
            (held if holding else passed).append(last)
            if not holding:
                await self._pass([last], head)
        if not holding:
            await self._finish([], head)
            return True
        return await self._judge(checkpoint, passed, delivered, held, head)

    async def _judge(self, checkpoint: Checkpoint, passed: list[bytes], delivered: list[bytes], held: list[bytes], head: Head) -> bool:
        """The word on a reply that was held, or a part of it."""
        try:
            # Text that is out already need not be read to judge the calls after it.
            told = self._form.read_calls(held) if passed and held else None
            reply, whole = told if told is not None and told[0].calls else self._form.read([*passed, *held])
            if not whole:
                if held and b'"error"' in held[-1] and not self._form.begins_call(held[-1]):
                    await self._finish([held[-1]], head)
                    return True
                raise Rejected(502, "upstream", "the stream ended before the reply did")
            verdict = await checkpoint.judge(reply)
            if not verdict.legal:
                if told is not None:
                    reply, _ = self._form.read([*passed, *held])
                if delivered:
                    self._form.sent(delivered)
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

    def _begins_call(self, event: bytes) -> bool:
        try:
            return self._form.begins_call(event)
        except ValueError as error:
            raise Rejected(502, "upstream", f"the reply cannot be judged: {error}") from error

    async def _pass(self, events: list[bytes], head: Head) -> list[bytes]:
        """Send events; what was sent."""
        await self._begin(head)
        sent = self._continued(events)
        await self._client.write(b"".join(sent))
        return sent

    async def _finish(self, events: list[bytes], head: Head, *, as_they_are: bool = False) -> None:
        """Send the last events."""
        await self._begin(head)
        await self._client.end(b"".join(events if as_they_are else self._continued(events)))

    async def _begin(self, head: Head) -> None:
        if not self._client.started:
            await self._client.start(*head)

    def _continued(self, events: list[bytes]) -> list[bytes]:
        """The events as they go on from what is out."""
        return self._form.rewritten(events, ()) if self._goes_on else events

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

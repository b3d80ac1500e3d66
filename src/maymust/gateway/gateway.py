"""The gateway as an ASGI application."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from functools import partial
from time import perf_counter
from typing import Any

from maymust.gateway import replies
from maymust.gateway.chat import Chat
from maymust.gateway.client import Client, Receive, Send
from maymust.gateway.deadline import Deadline
from maymust.gateway.dialect import Dialect
from maymust.gateway.exchange import Exchange
from maymust.gateway.intake import Gone, check_headers, check_host, path_of, read_body
from maymust.gateway.messages import Messages
from maymust.gateway.parts import Incoming, Parts
from maymust.gateway.protocol import LEAVING
from maymust.gateway.raw_json import read_object
from maymust.gateway.rejected import Rejected
from maymust.gateway.responses import Responses
from maymust.gateway.shadow import Shadow
from maymust.gateway.upstream import returned_headers, sent_headers

log: logging.Logger = logging.getLogger(__name__)

DIALECTS: tuple[Dialect, ...] = (Chat(), Responses(), Messages())

BESIDE = (
    ("POST", "/messages/count_tokens"),
    ("POST", "/responses/input_tokens"),
    ("POST", "/embeddings"),
    ("POST", "/moderations"),
    ("GET", "/models"),
)
"""What is handed on unchecked, by the end of its path: nothing of it makes a model act."""


class Gateway:
    """Answers requests. `under_way` is how many there are right now."""

    def __init__(self, parts: Parts) -> None:
        self.under_way: int = 0
        self._parts = parts

    async def __call__(self, scope: MutableMapping[str, Any], receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008, "reason": "not spoken here"})
            return
        client, request, metrics = Client(send), _Request(self._parts), self._parts.metrics
        began = perf_counter()
        self.under_way += 1
        metrics.began()
        try:
            await self._answer(request, scope, receive, client)
        finally:
            self.under_way -= 1
            seconds = perf_counter() - began
            metrics.finished(request.protocol, request.policy, request.outcome, seconds)
            log.info("%s %s %s %s %d %.3f", scope["method"], request.protocol, request.policy, request.outcome, client.status, seconds)

    async def _answer(self, request: _Request, scope: MutableMapping[str, Any], receive: Receive, client: Client) -> None:
        options = self._parts.options
        try:
            if self.under_way > options.max_requests:
                raise Rejected(503, "busy", f"{options.max_requests} requests are under way; try again")
            with Deadline(options.body_timeout, self._slow_body) as deadline:
                incoming = await request.take(scope, receive)
                deadline.renew(options.timeout, self._slow_reply)
                stop_watching = _watch(scope, receive, partial(_left, client, deadline))
                try:
                    await request.serve(incoming, client)
                finally:
                    stop_watching()
        except Gone:
            request.outcome = "disconnected"
        except Rejected as rejected:
            await request.fail(client, rejected)
        except Exception:
            # The text of an unknown error may hold anything; the client gets none of it.
            log.exception("a request could not be answered")
            await request.fail(client, Rejected(500, "policy_fault", "the gateway could not answer; its log says why"))

    def _slow_body(self) -> Rejected:
        # Not 408, which SDKs try again.
        return Rejected(400, "too_slow", f"the body was not there after {self._parts.options.body_timeout:g} seconds")

    def _slow_reply(self) -> Rejected:
        return Rejected(504, "too_slow", f"it took longer than {self._parts.options.timeout:g} seconds")


def _left(client: Client, deadline: Deadline) -> None:
    # A server says the same when the response is out.
    if not client.ended:
        deadline.stop(Gone())


def _watch(scope: MutableMapping[str, Any], receive: Receive, left: Callable[[], None]) -> Callable[[], object]:
    """Call `left` when the client leaves: our own server tells of it, others are asked. Gives what ends the watching."""
    when_leaving: Callable[[Callable[[], None]], Callable[[], object]] | None = scope.get("extensions", {}).get(LEAVING)
    if when_leaving is not None:
        return when_leaving(left)

    async def watch() -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        left()

    return asyncio.create_task(watch()).cancel


class _Request:
    """One request: which protocol it speaks, under which policy it falls, how it ended."""

    def __init__(self, parts: Parts) -> None:
        self.protocol = self.policy = "-"
        self.outcome = "passed"
        self._parts = parts
        self._dialect: Dialect | None = None
        self._exchange: Exchange | None = None

    async def take(self, scope: MutableMapping[str, Any], receive: Receive) -> Incoming:
        """Take it in. Raises Rejected, and Gone."""
        options = self._parts.options
        headers = scope["headers"]
        check_host(headers, options.host, options.allow_hosts)
        whole = path_of(scope)
        path = self._parts.routes.stripped(whole)
        method = scope["method"]
        self._whole = whole
        if method == "POST":
            self._dialect = next((one for one in DIALECTS if path.endswith(one.ending)), None)
        if self._dialect is None and not any(method == verb and _is_at(path, ending) for verb, ending in BESIDE):
            told = ", ".join(one.ending for one in DIALECTS)
            why = f"only {told} and what goes with them are forwarded: other ways would lead past the policy"
            raise Rejected(404, "unknown_path", why)
        self.protocol = self._dialect.name if self._dialect is not None else "beside"
        body = b""
        if method == "POST":
            check_headers(headers, options.max_body)
            body = await read_body(receive, options.max_body)
        return Incoming(method, path, scope.get("query_string", b""), headers, body)

    async def serve(self, incoming: Incoming, client: Client) -> None:
        """Answer it. Raises Rejected."""
        dialect = self._dialect
        if dialect is None:
            await self._beside(incoming, client)
            return
        if self._parts.options.shadow:
            await self._in_shadow(dialect, incoming, client)
            return
        raw = read_object(incoming.body, dialect.tools)
        model = raw.values.get("model")
        served = self._parts.routes.find(self._whole, incoming.headers, model if isinstance(model, str) else "")
        self.policy = served.name
        asked = dialect.ask(raw, served.known)
        exchange = self._exchange = Exchange(self._parts, served, dialect, incoming, asked, client)
        try:
            await exchange.run()
        finally:
            self.outcome = exchange.outcome
            done = exchange.checkpoint
            if done is not None:
                metrics = self._parts.metrics
                metrics.judged(served.name, asks=done.asks, refused=done.refusals, nudges=done.nudges, unmet=bool(done.unmet))

    async def _in_shadow(self, dialect: Dialect, incoming: Incoming, client: Client) -> None:
        try:
            model = read_object(incoming.body).values.get("model")
        except Rejected:
            model = None
        served = self._parts.routes.find(self._whole, incoming.headers, model if isinstance(model, str) else "")
        self.policy = served.name
        shadow = Shadow(self._parts, served, dialect, incoming, client)
        await shadow.run()
        self.outcome = shadow.outcome

    async def _beside(self, incoming: Incoming, client: Client) -> None:
        """Hand on what no policy speaks of."""
        headers = sent_headers(incoming.headers)
        asked = self._parts.upstream.asked(incoming.method, incoming.path, incoming.query, headers, incoming.body)
        async with asked as response:
            if 300 <= response.status_code < 400:
                raise Rejected(502, "upstream", "the upstream redirects")
            data = await replies.body(response, self._parts.options.max_reply)
            await client.whole(response.status_code, returned_headers(response.headers.raw), data)

    async def fail(self, client: Client, rejected: Rejected) -> None:
        """Tell an error, in the form of the protocol, in the stream where that has begun."""
        self.outcome = rejected.fault
        if client.ended:
            return
        if client.started:
            if self._exchange is not None:
                await self._exchange.streaming.fail(rejected)
            return
        more = [(b"retry-after", b"1")] if rejected.fault == "busy" else []
        await client.json(rejected.status, (self._dialect or DIALECTS[0]).error(rejected), more)


def _is_at(path: str, ending: str) -> bool:
    return path.endswith(ending) or (ending == "/models" and path.rpartition("/")[0].endswith(ending))

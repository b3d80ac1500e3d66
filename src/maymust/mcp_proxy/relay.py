"""The proxy itself: two streams of messages, and a word in those that concern tools."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Callable, Coroutine
from typing import Any

import anyio
from mcp.types import (
    CONNECTION_CLOSED,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    PARSE_ERROR,
    JSONRPCError,
    JSONRPCMessage,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

from maymust.core.policy import Policy
from maymust.errors import MaymustError
from maymust.mcp_proxy import messages
from maymust.mcp_proxy.calls import Calls, place_of
from maymust.mcp_proxy.catalog import Catalog
from maymust.mcp_proxy.messages import envelope_of, failure, response
from maymust.mcp_proxy.peer import Faulted, Gone, Peer
from maymust.mcp_proxy.session import Session
from maymust.mcp_proxy.subscriptions import Subscriptions, with_list_changed

log: logging.Logger = logging.getLogger(__name__)

_MOST_COMPLAINTS = 3
_BREATH = 0.2
"""So many seconds go by before a list is read again that changes all the time."""


class Relay:
    """One client, one server, one session of the policy.

    unlisted   whether tools that no rule speaks of are let through
    closed     whether tools that may not be called now stay in the list, with the reason
    lenient    whether the policy may speak of tools that the server does not have
    """

    def __init__(
        self, policy: Policy, client: Any, server: Any, *, unlisted: bool = True, closed: bool = False, lenient: bool = False
    ) -> None:
        self._from_client, to_client = client
        self._from_server, to_server = server
        self.client: Peer = Peer("the client", to_client)
        self.server: Peer = Peer("the server", to_server)
        self.session: Session = Session(policy)
        self.catalog: Catalog = Catalog(self.server, policy.tools, unlisted=unlisted, lenient=lenient)
        self.subscriptions: Subscriptions = Subscriptions(self.client)
        self.capabilities: Any = {}
        self._calls = Calls(self)
        self._closed = closed
        self._envelope: dict[str, Any] = {}
        self._waiting: dict[RequestId, tuple[str, asyncio.Future[JSONRPCResponse | JSONRPCError] | None]] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._lists: dict[RequestId, asyncio.Task[None]] = {}
        self._loading: asyncio.Future[None] | None = None
        self._following: asyncio.Task[None] | None = None
        self._is_stale = False
        self._told: object = None
        self._complaints = 0

    async def run(self) -> bool:
        """Relay until one of the two is gone. True when it was the client that went."""
        pumps = {asyncio.create_task(self._pump_client()): True, asyncio.create_task(self._pump_server()): False}
        try:
            done, _ = await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
            client_went = any(pumps[pump] for pump in done)
            for pump in done:
                pump.result()
            if not client_went:
                await self._tell_that_the_server_is_gone()
            return client_went
        finally:
            await self._end([*pumps, *self._tasks])

    async def _end(self, tasks: list[asyncio.Task[Any]]) -> None:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _tell_that_the_server_is_gone(self) -> None:
        log.error("the MCP server has ended")
        waiting = dict.fromkeys((*self._waiting, *self._lists, *self._calls.ids))
        await self._end([*self._tasks])
        with contextlib.suppress(Gone):
            for one in waiting:
                await self.client.send(failure(one, "the MCP server has ended", CONNECTION_CLOSED))

    # --- from the client ---
    async def _pump_client(self) -> None:
        with contextlib.suppress(Gone, anyio.ClosedResourceError):
            async for item in self._from_client:
                if isinstance(item, Exception):
                    log.warning("the client has sent something that is no message of the protocol; it is left out")
                    await self.client.send(failure(None, "this is no message of JSON-RPC", PARSE_ERROR))
                else:
                    await self._client_said(item.message)

    async def _client_said(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCRequest):
            await self._client_asked(message)
        elif isinstance(message, JSONRPCNotification):
            if message.method in (messages.CALL, messages.LIST):
                # Nobody could answer it, but a server that does not look at ids might run it.
                log.warning("a %s of the client's has no id that it could be answered by; it is left out", message.method)
                await self.client.send(failure(None, f"{message.method} needs an id, a text or a whole number"))
                return
            if message.method == messages.CANCELLED and not self._cancels(message):
                return
            await self.server.send(message)
        elif not self.client.took(message):
            await self.server.send(message)

    async def _client_asked(self, request: JSONRPCRequest) -> None:
        if request.id in self._waiting or request.id in self._lists or self._calls.knows(request.id):
            await self.client.send(failure(request.id, "a request with this id is under way"))
            return
        self._envelope = envelope_of(request) or self._envelope
        match request.method:
            case messages.LIST:
                self._lists[request.id] = self.spawn(self._list, request)
                return
            case messages.CALL:
                self._calls.begin(request)
                return
            case messages.INITIALIZE:
                self.capabilities = (request.params or {}).get("capabilities")
                self.subscriptions.shook_hands()
            case messages.LISTEN:
                self.subscriptions.open(request)
        self._waiting[request.id] = request.method, None
        await self.server.send(request)

    def _cancels(self, message: JSONRPCNotification) -> bool:
        """Take note of a request that is taken back. True when the server has to know."""
        key = (message.params or {}).get("requestId")
        if not isinstance(key, str | int):
            return True
        self.subscriptions.close(key)
        if key in self._waiting and self._waiting[key][1] is None:
            # It may never be answered.
            del self._waiting[key]
        listing = self._lists.get(key)
        if listing is not None:
            listing.cancel()
            return False
        if self._calls.knows(key):
            return self._calls.cancel(key)
        return True

    async def forward(self, request: JSONRPCRequest) -> JSONRPCResponse | JSONRPCError:
        """Send a request of the client's to the server, and wait for the answer. Raises Gone."""
        answer: asyncio.Future[JSONRPCResponse | JSONRPCError] = asyncio.get_running_loop().create_future()
        self._waiting[request.id] = request.method, answer
        try:
            await self.server.send(request)
            return await answer
        finally:
            self._waiting.pop(request.id, None)

    # --- from the server ---
    async def _pump_server(self) -> None:
        with contextlib.suppress(Gone, anyio.ClosedResourceError):
            async for item in self._from_server:
                if isinstance(item, Exception):
                    self._complaints += 1
                    if self._complaints <= _MOST_COMPLAINTS:
                        # What it was may hold secrets.
                        log.warning("the server has written a line that is no message of the protocol; it is left out")
                else:
                    await self._server_said(item.message)

    async def _server_said(self, message: JSONRPCMessage) -> None:
        if isinstance(message, JSONRPCNotification):
            if message.method == messages.LIST_CHANGED:
                self._is_stale = True
                if self._following is None:
                    self._following = self.spawn(self._follow)
                return
            if message.method == messages.ACKNOWLEDGED:
                message = self.subscriptions.acknowledged(message)
            await self.client.send(message)
        elif isinstance(message, JSONRPCRequest):
            await self.client.send(message)
        elif not self.server.took(message) and not self.answered(message) and not self._is_held(message.id):
            await self._answer(message)

    def _is_held(self, id: RequestId | None) -> bool:
        """Whether a request is the proxy's to answer: the server has not heard of it, or not yet."""
        return id is not None and (id in self._lists or self._calls.knows(id))

    def answered(self, message: JSONRPCResponse | JSONRPCError) -> bool:
        """Give an answer to the task that waits for it; False when there is none."""
        waiting = self._waiting.get(message.id) if message.id is not None else None
        if waiting is None or waiting[1] is None:
            return False
        if not waiting[1].done():
            waiting[1].set_result(message)
        return True

    async def _answer(self, message: JSONRPCResponse | JSONRPCError) -> None:
        method, _ = self._waiting.pop(message.id, ("", None)) if message.id is not None else ("", None)
        if method in (messages.INITIALIZE, messages.DISCOVER) and isinstance(message, JSONRPCResponse):
            message = with_list_changed(message)
        if method == messages.LISTEN and message.id is not None:
            unknown = isinstance(message, JSONRPCError) and message.error.code == METHOD_NOT_FOUND
            if unknown and await self.subscriptions.serve(message.id):
                return
            self.subscriptions.close(message.id)
        await self.client.send(message)

    # --- the list of tools ---
    async def ready(self, request: JSONRPCRequest) -> None:
        """Wait until the server's tools are known. Raises what `Catalog.load` raises."""
        if self.catalog.is_known:
            return
        if self._loading is None:
            self._loading = asyncio.ensure_future(self.catalog.load(envelope_of(request) or self._envelope))
            self._loading.add_done_callback(self._loaded)
        await asyncio.shield(self._loading)

    def _loaded(self, loading: asyncio.Future[None]) -> None:
        self._loading = None
        if not loading.cancelled():
            loading.exception()

    async def _list(self, request: JSONRPCRequest) -> None:
        try:
            await self.catalog.load(envelope_of(request))
        except Faulted as fault:
            await self.client.send(JSONRPCError(jsonrpc="2.0", id=request.id, error=fault.error))
            return
        except MaymustError as error:
            log.error("%s", error)
            await self.client.send(failure(request.id, str(error), INVALID_PARAMS))
            return
        finally:
            self._lists.pop(request.id, None)
        self.session.begin(self.catalog.present)
        tools = self.catalog.shown(self.session.permit, closed=self._closed)
        self._told = self.catalog.fingerprint(tools)
        fresh = {"ttlMs": 0, "cacheScope": "private"} if "ttlMs" in self.catalog.rest or envelope_of(request) else {}
        await self.client.send(response(request.id, {**self.catalog.rest, **fresh, "tools": tools}))

    async def announce(self) -> None:
        """Begin the next turn if this one is over, and tell the client if the list it was given is not right any more. Raises Gone."""
        self.session.begin(self.catalog.present)
        if self._told is None:
            return
        now = self.catalog.fingerprint(self.catalog.shown(self.session.permit, closed=self._closed))
        if now != self._told:
            self._told = now
            await self.subscriptions.tell()

    async def _follow(self) -> None:
        """The server's list has changed. Changes that come in the meantime are one."""
        try:
            while self._is_stale and self.catalog.is_known:
                self._is_stale = False
                try:
                    await self.catalog.load(self._envelope)
                except (Faulted, MaymustError):
                    log.warning("the server's list has changed, and could not be read")
                else:
                    await self.announce()
                await asyncio.sleep(_BREATH)
        finally:
            self._following = None

    # --- tasks ---
    def spawn(self, work: Callable[..., Coroutine[Any, Any, None]], *about: Any) -> asyncio.Task[None]:
        """Run something beside the relaying."""
        task = asyncio.create_task(self._contained(work, *about))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _contained(self, work: Callable[..., Coroutine[Any, Any, None]], *about: Any) -> None:
        try:
            await work(*about)
        except Gone:
            pass
        except Exception as fault:
            # Its text may hold what was sent.
            log.error("something went wrong in the proxy: %s%s", type(fault).__name__, place_of(fault))

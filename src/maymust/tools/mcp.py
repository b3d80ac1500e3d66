"""Tools from MCP servers, over the official SDK (extra `mcp`)."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import json
import logging
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from types import TracebackType
from typing import Any, Self

from maymust.errors import PolicyError, RunError, ToolError
from maymust.tools.function_tool import ApprovalMode, Effect, Tool
from maymust.tools.mcp_changes import Changes, ToolsChanged
from maymust.tools.mcp_connection import HereHome, Home, ThreadHome, background
from maymust.tools.mcp_results import cause, described, pages, safe_name, server_text, value_of

logger: logging.Logger = logging.getLogger(__name__)

_RETRY_SECONDS = (1, 2, 5, 15, 30)


def mcp_tools(
    server: Any,
    *,
    prefix: str = "",
    only: Collection[str] | None = None,
    trusted: bool = False,
    approval_mode: ApprovalMode | None = None,
    timeout: float | None = None,
    connect_timeout: float = 30.0,
) -> McpTools:
    """The tools of an MCP server, to be entered with `async with`; `source.tools` are tools like any others.

    server            a command with its arguments (stdio), an http(s) URL (streamable HTTP), anything else that the SDK's `Client`
                      takes (`StdioServerParameters`, a transport, an in-process server), or an entered `ClientSession`
    prefix            put before every tool's name, to tell servers apart
    only              names (the server's) of the tools to take; None takes all
    trusted           whether the server's word counts: its tools are `untrusted` otherwise, and its hints about effects are ignored
    approval_mode, timeout   settings of every tool, as in `Tool`
    connect_timeout   seconds until the connection must stand

    Raises PolicyError for what is no server, and RunError when entering for one that cannot be reached.
    """
    if isinstance(server, str) and not server.startswith(("http://", "https://")):
        raise PolicyError(f"{server!r} is no URL. Give an http(s) URL, or a command as a list: {server.split()!r}.")
    return McpTools(
        server,
        prefix=prefix,
        only=None if only is None else frozenset(only),
        settings={"approval_mode": approval_mode, "timeout": timeout, "untrusted": not trusted},
        trusted=trusted,
        connect_timeout=connect_timeout,
    )


class McpTools:
    """The tools of one connected server. `tools` is always the latest list; unchanged tools stay the same objects.

    The server's tools keep their settings when it changes its list. After the `async with` their calls fail.
    """

    def __init__(
        self, server: Any, *, prefix: str, only: frozenset[str] | None, settings: dict[str, Any], trusted: bool, connect_timeout: float
    ) -> None:
        self._server = server
        self._prefix = prefix
        self._only = only
        self._settings = settings
        self._trusted = trusted
        self._connect_timeout = connect_timeout
        self._home: Home | None = None
        self._known: dict[str, tuple[str, Tool]] = {}
        self._caller: Any = None
        self._session: Any = None
        self._stale: asyncio.Event | None = None
        self._changes = Changes()

    @property
    def tools(self) -> tuple[Tool, ...]:
        """The server's tools as far as known now, in its order."""
        return tuple(tool for _, tool in self._known.values())

    async def __aenter__(self) -> Self:
        if self._home is not None:
            raise RunError("This source of tools is entered already. Make another one with mcp_tools(...).")
        try:
            from mcp import ClientSession
        except ImportError as error:
            raise PolicyError("Tools from MCP servers need the SDK: pip install 'maymust[mcp]'.") from error
        here = isinstance(self._server, ClientSession)
        self._home = HereHome() if here else ThreadHome()
        try:
            await self._home.open(self._on_session if here else self._on_client)
        except Exception as error:
            raise RunError(f"The MCP server {server_text(self._server)} cannot be reached: {described(error)}.") from cause(error)
        return self

    async def __aexit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        assert self._home is not None
        try:
            await self._home.close()
        finally:
            self._changes.tell(None)

    def on_change(self, listener: Callable[[ToolsChanged], None]) -> Callable[[], None]:
        """Call `listener` at every change of the list, from whatever thread hears of it; gives a function that ends this."""

        def told(change: ToolsChanged | None) -> None:
            if change is not None:
                listener(change)

        return self._changes.listen(told)

    def changes(self) -> AsyncIterator[ToolsChanged]:
        """The changes of the list from now on, until the source is left."""
        return self._changes.iterate()

    async def refresh(self) -> None:
        """Ask the server for its list now. Raises RunError when it does not answer."""
        assert self._home is not None, "enter the source first"
        try:
            await self._home.run(self._relist)
        except Exception as error:
            raise RunError(f"The MCP server {server_text(self._server)} did not list its tools: {described(error)}.") from error

    @contextlib.asynccontextmanager
    async def _on_client(self) -> AsyncIterator[None]:
        from mcp import Client, StdioServerParameters

        server = self._server
        if isinstance(server, Sequence) and not isinstance(server, str):
            server = StdioServerParameters(command=server[0], args=list(server[1:]))
        self._stale = asyncio.Event()
        client = Client(server, message_handler=self._on_message)
        async with contextlib.AsyncExitStack() as stack:
            async with asyncio.timeout(self._connect_timeout):
                self._caller = await stack.enter_async_context(client)
                self._session = client.session
                await self._relist()
            await stack.enter_async_context(background(self._watch()))
            yield

    @contextlib.asynccontextmanager
    async def _on_session(self) -> AsyncIterator[None]:
        self._stale = None
        self._caller = self._session = self._server
        async with asyncio.timeout(self._connect_timeout):
            await self._relist()
        async with background(self._watch()):
            yield

    async def _on_message(self, message: Any) -> None:
        from mcp.types import ToolListChangedNotification

        if isinstance(message, ToolListChangedNotification) and self._stale is not None:
            # Asking for the list here would hold up the reader that has to bring the answer.
            self._stale.set()

    async def _watch(self) -> None:
        """Follow the server's list: by its notifications, or by a subscription where the protocol has them."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        modern = self._session.protocol_version in MODERN_PROTOCOL_VERSIONS
        failures = 0
        while modern or self._stale is not None:
            try:
                if not modern:
                    assert self._stale is not None
                    await self._stale.wait()
                    self._stale.clear()
                    await self._relist()
                elif not await self._subscribed():
                    return
                failures = 0
            except Exception as error:
                logger.warning("the list of tools of the MCP server %s cannot be followed: %s", server_text(self._server), described(error))
                await asyncio.sleep(_RETRY_SECONDS[min(failures, len(_RETRY_SECONDS) - 1)])
                failures += 1

    async def _subscribed(self) -> bool:
        """Follow one subscription to its end; False when the server has none to give."""
        from mcp.client.subscriptions import listen
        from mcp.shared.exceptions import MCPError

        async with contextlib.AsyncExitStack() as stack:
            try:
                subscription = await stack.enter_async_context(listen(self._session, tools_list_changed=True))
            except MCPError:
                return False
            if not subscription.honored.tools_list_changed:
                return False
            # What changed before it stood is not replayed.
            await self._relist()
            async for _ in subscription:
                await self._relist()
        return True

    async def _relist(self) -> None:
        from mcp.types import PaginatedRequestParams

        listed: list[Any] = []
        cursor: str | None = None
        while True:
            page = await self._session.list_tools(params=PaginatedRequestParams(cursor=cursor))
            listed += page.tools
            # A server that gives the same page for ever must not hold us.
            if page.next_cursor is None or page.next_cursor == cursor:
                break
            cursor = page.next_cursor
        before = self._known
        known: dict[str, tuple[str, Tool]] = {}
        for definition in pages(listed):
            if self._only is not None and definition.name not in self._only:
                continue
            text = json.dumps(definition.model_dump(mode="json", exclude={"icons", "meta"}), sort_keys=True)
            found = before.get(definition.name)
            taken = {tool.name for _, tool in known.values()} | {tool.name for name, (_, tool) in before.items() if name != definition.name}
            known[definition.name] = found if found is not None and found[0] == text else (text, self._tool(definition, taken))
        self._known = known
        old, new = {id(tool) for _, tool in before.values()}, {id(tool) for _, tool in known.values()}
        change = ToolsChanged(
            tuple(tool for _, tool in known.values() if id(tool) not in old),
            tuple(tool for _, tool in before.values() if id(tool) not in new),
        )
        if before and (change.added or change.removed):
            self._changes.tell(change)

    def _tool(self, definition: Any, taken: Collection[str]) -> Tool:
        hints = definition.annotations
        effect: Effect | None = None
        if self._trusted and hints is not None:
            effect = "read" if hints.read_only_hint else "idempotent" if hints.idempotent_hint else None
        make = functools.partial(
            Tool.from_schema,
            safe_name(definition.name, self._prefix, taken),
            definition.description or definition.title or "",
            {"type": "object", **definition.input_schema},
            functools.partial(self._call, definition.name, definition.output_schema),
            pass_as="dict",
            effect=effect,
            **self._settings,
        )
        try:
            return make()
        except PolicyError as error:
            # A newer dialect of JSON Schema, say. The server checks what it gets.
            logger.warning("the arguments of %s are left to the MCP server to check: %s", definition.name, error)
            return make(validate=False)

    async def _call(self, name: str, output_schema: Any, arguments: dict[str, Any]) -> Any:
        assert self._home is not None
        try:
            result = await self._home.run(lambda: self._caller.call_tool(name, arguments))
        except Exception as error:
            raise ToolError(f"The MCP server did not answer: {described(error)}") from error
        return value_of(result, output_schema)

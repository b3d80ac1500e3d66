"""Telling the client that its list of tools has changed, in both eras of the protocol."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from mcp.types import JSONRPCNotification, JSONRPCRequest, JSONRPCResponse, RequestId

from maymust.mcp_proxy.messages import ACKNOWLEDGED, LIST_CHANGED, SUBSCRIPTION_KEY, meta_of, notification
from maymust.mcp_proxy.peer import Peer

_FLAG = "toolsListChanged"


class Subscriptions:
    """Who wants to hear of changes: the client after its handshake, or the streams that it has opened."""

    def __init__(self, client: Peer) -> None:
        self._client = client
        self._streams: dict[RequestId, dict[str, Any]] = {}
        self._has_shaken_hands = False

    def shook_hands(self) -> None:
        """Changes are told without being asked for."""
        self._has_shaken_hands = True

    def open(self, request: JSONRPCRequest) -> None:
        """Take note of a stream that the client opens, if it is about tools."""
        wanted = (request.params or {}).get("notifications")
        if isinstance(wanted, Mapping) and wanted.get(_FLAG) is True:
            self._streams[request.id] = dict(wanted)

    def close(self, id: RequestId) -> None:
        """A stream has ended."""
        self._streams.pop(id, None)

    def acknowledged(self, message: JSONRPCNotification) -> JSONRPCNotification:
        """The server's word on a stream, with what the proxy adds: it tells of changes whether the server does or not."""
        stream = meta_of(message).get(SUBSCRIPTION_KEY)
        if not isinstance(stream, str | int) or stream not in self._streams:
            return message
        params = dict(message.params or {})
        honoured = params.get("notifications")
        params["notifications"] = {**(honoured if isinstance(honoured, Mapping) else {}), _FLAG: True}
        return notification(message.method, params)

    async def serve(self, id: RequestId) -> bool:
        """Take over a stream that the server does not know how to serve; False when it is not about tools. Raises Gone."""
        if id not in self._streams:
            return False
        await self._client.send(notification(ACKNOWLEDGED, {"notifications": {_FLAG: True}, "_meta": {SUBSCRIPTION_KEY: id}}))
        return True

    async def tell(self) -> None:
        """Tell of a change. Raises Gone."""
        if self._has_shaken_hands:
            await self._client.send(notification(LIST_CHANGED))
        for stream in tuple(self._streams):
            await self._client.send(notification(LIST_CHANGED, {"_meta": {SUBSCRIPTION_KEY: stream}}))


def with_list_changed(message: JSONRPCResponse) -> JSONRPCResponse:
    """The server's introduction of itself, which now says that its list of tools changes, and that calls are no tasks."""
    result = dict(message.result)
    capabilities = result.get("capabilities")
    if not isinstance(capabilities, Mapping):
        return message
    changed = dict(capabilities)
    if isinstance(changed.get("tools"), Mapping):
        changed["tools"] = {**changed["tools"], "listChanged": True}
    tasks = changed.get("tasks")
    if isinstance(tasks, Mapping) and isinstance(tasks.get("requests"), Mapping):
        changed["tasks"] = {**tasks, "requests": {key: value for key, value in tasks["requests"].items() if key != "tools"}}
    return JSONRPCResponse(jsonrpc="2.0", id=message.id, result={**result, "capabilities": changed})

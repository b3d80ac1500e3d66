"""Messages of the protocol that the proxy writes or reads itself, in both of its eras: with a handshake, and without (2026-07-28)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final

from mcp.types import (
    INVALID_REQUEST,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    RequestId,
)

CALL: Final = "tools/call"
LIST: Final = "tools/list"
INITIALIZE: Final = "initialize"
DISCOVER: Final = "server/discover"
LISTEN: Final = "subscriptions/listen"
ELICIT: Final = "elicitation/create"
CANCELLED: Final = "notifications/cancelled"
LIST_CHANGED: Final = "notifications/tools/list_changed"
ACKNOWLEDGED: Final = "notifications/subscriptions/acknowledged"

VERSION_KEY: Final = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY: Final = "io.modelcontextprotocol/clientCapabilities"
SUBSCRIPTION_KEY: Final = "io.modelcontextprotocol/subscriptionId"
_ENVELOPE: Final = (VERSION_KEY, CAPABILITIES_KEY, "io.modelcontextprotocol/clientInfo")

INPUT_REQUIRED: Final = "input_required"


_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


def plain(text: str) -> str:
    """A text of somebody else's that can be shown, or put into a log: nothing in it moves a cursor or turns the direction of writing."""
    return _CONTROL.sub("\N{REPLACEMENT CHARACTER}", text)


def meta_of(message: JSONRPCRequest | JSONRPCNotification) -> dict[str, Any]:
    """The `_meta` of a message; empty when there is none."""
    found = (message.params or {}).get("_meta")
    return found if isinstance(found, dict) else {}


def envelope_of(message: JSONRPCRequest) -> dict[str, Any]:
    """What every request has to carry in the era without a handshake; empty in the other one."""
    meta = meta_of(message)
    return {key: meta[key] for key in _ENVELOPE if key in meta} if VERSION_KEY in meta else {}


def request(id: RequestId, method: str, params: Mapping[str, Any] | None) -> JSONRPCRequest:
    """A request; without `params` where there are none, for null is not allowed there."""
    if params is None:
        return JSONRPCRequest(jsonrpc="2.0", id=id, method=method)
    return JSONRPCRequest(jsonrpc="2.0", id=id, method=method, params=dict(params))


def notification(method: str, params: Mapping[str, Any] | None = None) -> JSONRPCNotification:
    """A notification."""
    if params is None:
        return JSONRPCNotification(jsonrpc="2.0", method=method)
    return JSONRPCNotification(jsonrpc="2.0", method=method, params=dict(params))


def response(id: RequestId, result: Mapping[str, Any]) -> JSONRPCResponse:
    """A result."""
    return JSONRPCResponse(jsonrpc="2.0", id=id, result=dict(result))


def failure(id: RequestId | None, text: str, code: int = INVALID_REQUEST) -> JSONRPCError:
    """An error of the protocol."""
    return JSONRPCError(jsonrpc="2.0", id=id, error=ErrorData(code=code, message=text))


def refused(request: JSONRPCRequest, text: str) -> JSONRPCResponse:
    """The result of a call that was not let through: an error of the tool, which the model reads."""
    result: dict[str, Any] = {"content": [{"type": "text", "text": text}], "isError": True}
    if envelope_of(request):
        result["resultType"] = "complete"
    return response(request.id, result)

"""A server that speaks the protocol of 2025 by hand, with pages, notifications and whatever else a server may do."""

import json
import sys
from typing import Any

TOOLS = [
    {
        "name": "echo",
        "description": "Echo.",
        "inputSchema": {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]},
    },
    {"name": "final_answer", "description": "Not ours.", "inputSchema": {"type": "object"}},
    {"name": "odd", "inputSchema": {"type": "object", "properties": {"a": {"type": "string", "pattern": "\\p{L}+"}}}},
    {"name": "a b", "inputSchema": {"type": "object"}},
    {"name": "a.b", "inputSchema": {"type": "object"}},
]


def send(**message: Any) -> None:
    print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)


def answer(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    if method == "initialize":
        capabilities = {"tools": {"listChanged": True}}
        return {"protocolVersion": "2025-06-18", "capabilities": capabilities, "serverInfo": {"name": "old", "version": "1"}}
    if method == "tools/list":
        start = int(params.get("cursor") or 0)
        page: dict[str, Any] = {"tools": TOOLS[start : start + 2]}
        return page | ({"nextCursor": str(start + 2)} if start + 2 < len(TOOLS) else {})
    if method == "tools/call":
        if params["name"] == "echo" and params["arguments"]["text"] == "more":
            TOOLS.append({"name": "extra", "inputSchema": {"type": "object"}})
            send(method="notifications/tools/list_changed")
        link = {"type": "resource_link", "uri": "file:///x", "name": "x"}
        text = {"type": "resource", "resource": {"uri": "file:///y", "text": "inside"}}
        blob = {"type": "resource", "resource": {"uri": "file:///z", "blob": "aGVsbG8=", "mimeType": "a/b"}}
        if params["name"] == "odd":
            return {"content": [link, text, blob]}
        return {"content": [{"type": "text", "text": json.dumps(params)}]}
    return None


for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    result = answer(message["method"], message.get("params") or {})
    if result is None:
        send(id=message["id"], error={"code": -32601, "message": "no such method"})
    else:
        send(id=message["id"], result=result)

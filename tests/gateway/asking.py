"""Requests as bytes, for what no SDK would send."""

from __future__ import annotations

import json
import time
from typing import Any

import httpx

USER = {"role": "user", "content": "hi"}
TOOLS = [{"type": "function", "function": {"name": name, "parameters": {"type": "object"}}} for name in ("think", "search", "refund")]
CLAUDE_TOOLS = [{"name": name, "input_schema": {"type": "object"}} for name in ("think", "search", "refund")]
FLAT_TOOLS = [{"type": "function", "name": name, "parameters": {"type": "object"}} for name in ("think", "search", "refund")]

CHAT: dict[str, Any] = {"model": "m", "messages": [USER], "tools": TOOLS}
MESSAGES: dict[str, Any] = {"model": "m", "messages": [USER], "tools": CLAUDE_TOOLS, "max_tokens": 9}
RESPONSES: dict[str, Any] = {"model": "m", "input": [USER], "tools": FLAT_TOOLS, "store": False}

PATHS = {"chat": "/v1/chat/completions", "messages": "/v1/messages", "responses": "/v1/responses"}
BODIES = {"chat": CHAT, "messages": MESSAGES, "responses": RESPONSES}


def post(url: str, body: Any, path: str = PATHS["chat"], **headers: str) -> httpx.Response:
    """One request; a body that is no bytes is sent as JSON."""
    content = body if isinstance(body, bytes) else json.dumps(body).encode()
    kinds = {"content-type": "application/json", **{key.replace("_", "-"): value for key, value in headers.items()}}
    with httpx.Client(timeout=20, verify=False, trust_env=False) as client:
        return client.post(url + path, content=content, headers=kinds)


def called(name: str, arguments: Any = "{}", call_id: str = "c0") -> dict[str, Any]:
    """An assistant's message of Chat Completions with one call."""
    return {"role": "assistant", "tool_calls": [{"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}]}


def returned(text: str = "fine", call_id: str = "c0") -> dict[str, Any]:
    """A tool's message of Chat Completions."""
    return {"role": "tool", "tool_call_id": call_id, "content": text}


def said(response: httpx.Response) -> str:
    """The text of the error that a response is."""
    return str(response.json()["error"]["message"])


def fault(response: httpx.Response) -> str:
    """The word for the fault that a response tells."""
    error = response.json()["error"]
    return str(error.get("code") or error["type"].removeprefix("maymust_"))


def counts(url: str, line: str) -> str:
    """The metrics, as soon as this line is among them: what is counted at the end of a request may come after its response."""
    text, end = "", time.monotonic() + 20
    while time.monotonic() < end:
        text = httpx.get(url + "/metrics", trust_env=False).text
        if line in text:
            break
        time.sleep(0.02)
    return text

"""A message of Chat Completions as a reply."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maymust.gateway.conversation import Call, Reply, arguments_of, text_of

REASONING = ("reasoning_content", "reasoning", "reasoning_details")
"""What some servers want back with a message (as `models.openai` has it)."""


def reply_of(message: Mapping[str, Any]) -> Reply:
    """The reply that a message is. Raises ValueError for calls that cannot be read."""
    if message.get("function_call") is not None:
        raise ValueError("it has a function_call of the old form, which nobody asked for")
    calls = message.get("tool_calls")
    if calls is not None and not isinstance(calls, list):
        raise ValueError("its tool_calls are no list")
    made = tuple(_call(place, call) for place, call in enumerate(calls or ()))
    kept = {key: message[key] for key in REASONING if message.get(key)}
    return Reply(text_of(message.get("content")), made, {"calls": calls or [], "kept": kept})


def _call(place: int, call: Any) -> Call:
    if not isinstance(call, dict):
        raise ValueError("a call is no object")
    kind = "custom" if call.get("type") == "custom" else "function"
    form = call.get(kind)
    name = form.get("name") if isinstance(form, dict) else None
    if not isinstance(form, dict) or not isinstance(name, str):
        raise ValueError("a call has no name")
    if call.get("function") and call.get("custom"):
        raise ValueError("a call has two forms, so it could be read in two ways")
    call_id = call.get("id")
    given = form.get("arguments") if kind == "function" else {"input": form.get("input")}
    return Call(place, call_id if isinstance(call_id, str) else "", name, arguments_of("" if given is None else given))

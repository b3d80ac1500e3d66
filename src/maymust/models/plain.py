"""Tools for a model that has no tool API: told in words, called by a JSON object as the output (level 5)."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from maymust.models.chat_model import ToolDefinition
from maymust.models.message import Message
from maymust.models.past_call import object_text
from maymust.models.structured import NotACall, Schema, call_schema, read_call

_HOW = (
    'You work by calling tools. Reply with one JSON object and nothing else:\n{"call": {"name": "<tool>", "arguments": {...}}}\nThe tools:'
)
_OR_TEXT = 'To answer without a tool, reply {"call": {"text": "..."}}.'
_NAMES = ("name", "tool", "tool_name", "function")
_ARGUMENTS = ("arguments", "parameters", "args", "input")


def output_schema(tools: Sequence[ToolDefinition], *, text: bool) -> Schema:
    """The schema of the output: an object with one call. Providers want an object at the top, not a choice."""
    call = call_schema(tools, text=text)
    return {"type": "object", "properties": {"call": call}, "required": ["call"], "additionalProperties": False}


def in_words(messages: Sequence[Message], tools: Sequence[ToolDefinition], *, text: bool) -> list[Message]:
    """The conversation without calls and results as such, all tools in the system prompt."""
    listed = [json.dumps({"name": tool.name, "description": tool.description, "arguments": dict(tool.parameters)}) for tool in tools]
    told = "\n".join([_HOW, *listed, *([_OR_TEXT] if text else [])]) if tools else ""
    said = messages[0].text if messages and messages[0].role == "system" else ""
    system = "\n\n".join(part for part in (said, told) if part)
    rest = messages[1:] if messages and messages[0].role == "system" else messages
    names = {call.call_id: call.name for message in rest for call in message.calls}
    return [*([Message("system", system)] if system else []), *(_in_words(message, names) for message in rest)]


def _in_words(message: Message, names: Mapping[str, str]) -> Message:
    if message.role == "tool":
        return Message("user", f"Result of {names.get(message.call_id or '', 'the call')}: {message.text or '(nothing)'}")
    if not message.calls:
        return replace(message, extra={})
    calls = [f'{{"call": {{"name": {json.dumps(call.name)}, "arguments": {object_text(call.raw_arguments)}}}}}' for call in message.calls]
    return Message(message.role, "\n".join(([message.text] if message.text else []) + calls))


def read_output(output: str, tools: Sequence[ToolDefinition], *, text: bool) -> tuple[str, str]:
    """The tool's name and its arguments as JSON text; for a text the name is empty.

    Tolerant of what models do around JSON: fences, words before and after, other words for "name" and "arguments", arguments
    as a string. Raises NotACall for what is no call all the same.
    """
    found = next(_objects(output), None)
    if found is None:
        if text and output.strip():
            return "", output.strip()
        return read_call(output, tools)
    return read_call(json.dumps(_usual(found), ensure_ascii=False), tools)


def _objects(output: str) -> Iterator[dict[str, Any]]:
    decoder, start = json.JSONDecoder(), output.find("{")
    while start >= 0:
        try:
            value, _ = decoder.raw_decode(output, start)
        except ValueError:
            start = output.find("{", start + 1)
            continue
        yield value
        return


def _usual(value: dict[str, Any]) -> dict[str, Any]:
    """The call in the usual words."""
    call = value.get("call", value)
    if not isinstance(call, dict) or call.keys() == {"text"}:
        return call if isinstance(call, dict) else value
    if isinstance(call.get("function"), dict):
        call = call["function"]
    name = next((call[word] for word in _NAMES if isinstance(call.get(word), str)), None)
    arguments: Any = next((call[word] for word in _ARGUMENTS if word in call), {})
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError:
            raise NotACall("the arguments are a text that is no JSON") from None
    return {"name": name, "arguments": arguments}

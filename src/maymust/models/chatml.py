"""A conversation as one ChatML prompt, for models that are asked without a tool API.

All tools stand in the system block, whatever may be called this turn: the start of the prompt never changes, so a cache of it
always fits. Which tools may be called is the constraint's business.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from maymust.models.chat_model import ToolDefinition
from maymust.models.message import Message
from maymust.models.past_call import object_of

STOP = "<|im_end|>"
CALL_START = "<tool_call>\n"

_AGAIN = 300
_HOW_TO_CALL = "Work by calling these tools, one call at a time, written as JSON between <tool_call> tags:"


def render(messages: Sequence[Message], tools: Sequence[ToolDefinition], *, examples: bool = True, call: bool = True) -> str:
    """The prompt, up to the place where the model goes on: inside a call, or at the start of a text.

    Status messages are left out: what they say, the constraint enforces, and a small model only repeats them.
    """
    system = "\n\n".join(message.text for message in messages[:1] if message.role == "system")
    blocks = [_block("system", "\n\n".join(part for part in (_plain(system), _tools(tools)) if part))]
    if examples:
        blocks += [_example(tool) for tool in tools]
    asked = ""
    for message in messages[1 if system else 0 :]:
        if message.role == "user" and not message.kind:
            asked = message.text
        if message.kind != "status":
            blocks.append(_message(message, asked))
    return "".join(blocks) + "<|im_start|>assistant\n" + (CALL_START if call else "")


def _tools(tools: Sequence[ToolDefinition]) -> str:
    if not tools:
        return ""
    lines = (
        json.dumps({"name": tool.name, "description": tool.description, "arguments": _signature(tool.parameters)}, ensure_ascii=False)
        for tool in tools
    )
    return _plain("\n".join([_HOW_TO_CALL, "<tools>", *lines, "</tools>"]))


def _signature(parameters: Mapping[str, Any]) -> dict[str, str]:
    """One short text per argument: a small model reads little, and the constraint knows the rest."""
    return {name: _describe(schema) for name, schema in parameters.get("properties", {}).items()}


def _describe(schema: Any) -> str:
    if not isinstance(schema, Mapping):
        return "any"
    kind = " | ".join(json.dumps(choice) for choice in schema["enum"]) if "enum" in schema else str(schema.get("type", "any"))
    return f"{kind}: {schema['description']}" if schema.get("description") else kind


def _example(tool: ToolDefinition) -> str:
    """A request in words with the call that answers it. That values are taken over from the request is what the model learns from it."""
    properties: Mapping[str, Any] = tool.parameters.get("properties", {})
    required = tool.parameters.get("required", tuple(properties))
    arguments = {name: _sample(name, properties[name], place) for place, name in enumerate(properties) if name in required}
    words = ", ".join(
        f"{name} {value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)}" for name, value in arguments.items()
    )
    asked = _plain(f"{tool.description} ({words})" if words else tool.description)
    return _block("user", asked) + _block("assistant", _call_text(tool.name, json.dumps(arguments, ensure_ascii=False)))


def _sample(name: str, schema: Any, place: int) -> Any:
    """A value to show: the schema's own example, else one that can be told from all others and is not worth copying."""
    if not isinstance(schema, Mapping):
        schema = {}
    for word in ("examples", "enum"):
        if isinstance(schema.get(word), list) and schema[word]:
            return schema[word][0]
    for word in ("const", "default"):
        if word in schema:
            return schema[word]
    if (name, schema.get("type")) == ("answer", "string"):
        return "Everything is done."
    if isinstance(schema.get("anyOf"), list) and schema["anyOf"]:
        return _sample(name, schema["anyOf"][0], place)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) and kind else kind
    samples: dict[Any, Any] = {
        "integer": 512 + 110 * place,
        "number": 512 + 110 * place,
        "boolean": True,
        "array": [],
        "object": {},
        "null": None,
    }
    return samples.get(kind, f"{name.replace('_', ' ').title()} {chr(ord('A') + place % 26)}")


def _message(message: Message, asked: str) -> str:
    if message.role == "tool":
        # What was asked stands after each result again: a small model looks at what is near.
        again = asked if len(asked) <= _AGAIN else f"{asked[:_AGAIN]} ..."
        return _block("user", f"<tool_response>\n{_plain(message.text)}\n</tool_response>\n{_plain(again)}")
    calls = [_call_text(call.name, call.raw_arguments) for call in message.calls]
    texts = [message.text] if message.text else [part.text or f"[{part.kind}]" for part in message.parts]
    return _block(message.role, "\n".join([*(_plain(text) for text in texts), *calls]))


def _call_text(name: str, raw_arguments: str) -> str:
    """The call in the very form in which the constraint lets it be written, so that what was sampled is in the cache as it is."""
    call = {"name": name, "arguments": object_of(raw_arguments)}
    return f"{CALL_START}{_plain(json.dumps(call, ensure_ascii=False, separators=(',', ':')))}\n</tool_call>"


def _block(role: str, text: str) -> str:
    return f"<|im_start|>{role}\n{text}{STOP}\n"


def _plain(text: str) -> str:
    """The text without the marks that would end its block: what a user or a tool says must stay what they said."""
    return text.replace("<|", "< |")

"""What was said, for those who ask for it: messages, arguments and results in the form of the conventions."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from typing import Any

from maymust.errors import PolicyError
from maymust.models.chat_model import ModelReply, ToolDefinition
from maymust.models.message import Message, Part, ToolCall
from maymust.telemetry import names

_ON = ("true", "1", "span_only", "span_and_event")
_OFF = ("", "false", "0", "no_content", "event_only")
_FINISH = {"stop": "stop", "cut_off": "length", "refused": "content_filter"}


def wanted(content: bool | None) -> bool:
    """Whether content goes into spans: as was said, or as the standard switch in the environment says.

    Raises PolicyError for a switch that cannot be read, for content must not leave, or stay away, by a misspelling.
    """
    if content is not None:
        return content
    said = os.environ.get(names.CAPTURE_VARIABLE, "").strip().lower()
    if said not in (*_ON, *_OFF):
        raise PolicyError(f"{names.CAPTURE_VARIABLE}={said!r} is not understood; give one of {', '.join(filter(None, (*_ON, *_OFF)))}")
    return said in _ON


def text_of(value: Any) -> str:
    """Anything as JSON text."""
    return json.dumps(value, ensure_ascii=False, default=repr)


def input_messages(messages: Iterable[Message]) -> str:
    """What the model is asked, without the system message."""
    return text_of([{"role": one.role, "parts": _parts(one)} for one in messages if one.role != "system"])


def system_instructions(messages: Iterable[Message]) -> str | None:
    """The system message; None when there is none."""
    parts = [{"type": "text", "content": one.text} for one in messages if one.role == "system"]
    return text_of(parts) if parts else None


def output_messages(reply: ModelReply) -> str:
    """What the model said."""
    return text_of([{"role": "assistant", "parts": [*_said(reply.text), *_called(reply.calls)], "finish_reason": finish_reason(reply)}])


def finish_reason(reply: ModelReply) -> str:
    """Why the reply ended, in the words of the conventions."""
    return "tool_call" if reply.calls and reply.finish == "stop" else _FINISH[reply.finish]


def tool_definitions(tools: Iterable[ToolDefinition]) -> str:
    """The tools the model is shown."""
    return text_of(
        [{"type": "function", "name": one.name, "description": one.description, "parameters": dict(one.parameters)} for one in tools]
    )


def _parts(message: Message) -> list[dict[str, Any]]:
    if message.role == "tool":
        return [{"type": "tool_call_response", "id": message.call_id, "response": message.text}]
    said = [_part(part) for part in message.parts] if message.parts else _said(message.text)
    return [*said, *_called(message.calls)]


def _said(text: str) -> list[dict[str, Any]]:
    return [{"type": "text", "content": text}] if text else []


def _called(calls: Sequence[ToolCall]) -> list[dict[str, Any]]:
    return [{"type": "tool_call", "id": one.call_id, "name": one.name, "arguments": _arguments(one.raw_arguments)} for one in calls]


def _arguments(raw: str) -> Any:
    try:
        return json.loads(raw)
    except (ValueError, RecursionError):
        return raw


def _part(part: Part) -> dict[str, Any]:
    if part.kind == "text":
        return {"type": "text", "content": part.text or ""}
    url = part.url or ""
    # The bytes of a picture are no use in a trace.
    return {"type": "uri", "modality": part.kind, "mime_type": part.media_type, "uri": url if not url.startswith("data:") else "data:…"}

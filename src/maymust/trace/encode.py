"""Events as JSON data, and back."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Callable, Mapping
from typing import Any

from maymust.agent import events
from maymust.agent.call_record import PendingCall
from maymust.agent.events import RunEvent
from maymust.core.permit import Permit
from maymust.core.step import Outcome, Step
from maymust.models.chat_model import ModelReply, ToolDefinition, Usage
from maymust.models.message import ToolCall
from maymust.trace.records import ChildRun, ModelAsked, StepsTaken, TraceStarted, UnknownRecord, ViewTaken

_OWN = (TraceStarted, ViewTaken, ModelAsked, StepsTaken, ChildRun)
EVENTS = tuple(kind for kind in vars(events).values() if isinstance(kind, type) and issubclass(kind, RunEvent) and kind is not RunEvent)
"""Every kind of event that a run tells."""

KINDS: dict[str, type[RunEvent]] = {kind.__name__: kind for kind in (*EVENTS, *_OWN)}
"""The kinds of records by name."""

DELTAS = (events.TextDelta, events.ArgumentsDelta, events.AnswerDelta)
"""Pieces of what other events tell as a whole."""

_DEEPEST = 200


def encode(event: RunEvent) -> dict[str, Any]:
    """The fields of an event as JSON data, `run_id` left out. What has no JSON form becomes its text."""
    if isinstance(event, events.ModelCallStarted):
        event = _asked(event)
    if isinstance(event, UnknownRecord):
        return dict(event.data)
    fields = dataclasses.fields(event)
    return {field.name: _data(getattr(event, field.name)) for field in fields if field.name != "run_id"}


def kind_of(event: RunEvent) -> str:
    """The kind under which an event is written."""
    if isinstance(event, UnknownRecord):
        return event.kind
    return ModelAsked.__name__ if isinstance(event, events.ModelCallStarted) else type(event).__name__


def decode(kind: str, run_id: str, data: Mapping[str, Any]) -> RunEvent:
    """The event that was encoded. Raises KeyError, TypeError, ValueError or AttributeError for damaged data."""
    known = KINDS.get(kind)
    if known is None:
        return UnknownRecord(run_id, kind, data)
    fields = {field.name for field in dataclasses.fields(known)} - {"run_id"}
    return known(run_id, **{name: _read(name, value) for name, value in data.items() if name in fields})


def _read(name: str, value: Any) -> Any:
    return _READERS[name](value) if name in _READERS and value is not None else value


def to_line(data: Mapping[str, Any]) -> str:
    """JSON text on one line, in ASCII: nothing in it can end the line, or upset a terminal or a decoder."""
    try:
        return json.dumps(data, allow_nan=False, separators=(",", ":"), default=_data)
    except (ValueError, TypeError, RecursionError):
        return json.dumps(_plain(data, _DEEPEST), separators=(",", ":"))


def _asked(event: events.ModelCallStarted) -> ModelAsked:
    request = event.request
    tools = tuple(tool.name for tool in request.tools)
    return ModelAsked(event.run_id, event.number, len(request.messages), tools, request.allowed, request.tool_choice, request.guidance)


def _data(value: Any, depth: int = _DEEPEST) -> Any:
    """JSON data of what is in an event; what is unknown becomes its text."""
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Permit | Step | Usage | ToolCall):
        return value.to_dict()
    if isinstance(value, Mapping):
        return dict(value)
    if isinstance(value, list | tuple):
        return [_data(part, depth - 1) for part in value] if depth else "…"
    if isinstance(value, ModelReply):
        # What a provider wants back unchanged is nothing to look at, and may be large.
        return {field.name: _data(getattr(value, field.name)) for field in dataclasses.fields(value) if field.name != "extra"}
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: _data(getattr(value, field.name)) for field in dataclasses.fields(value)}
    return repr(value)


def _plain(value: Any, depth: int) -> Any:
    """Anything as JSON data, whatever it takes."""
    value = _data(value)
    if isinstance(value, float) and not math.isfinite(value):
        return repr(value)
    if isinstance(value, dict | list) and not depth:
        return "…"
    if isinstance(value, dict):
        return {str(key): _plain(part, depth - 1) for key, part in value.items()}
    return [_plain(part, depth - 1) for part in value] if isinstance(value, list) else value


def _reply(data: Mapping[str, Any]) -> ModelReply:
    known = {field.name for field in dataclasses.fields(ModelReply)} - {"lost"}
    fields = {name: value for name, value in data.items() if name in known}
    fields["calls"] = tuple(ToolCall.from_dict(call) for call in data.get("calls", ()))
    fields["usage"] = Usage(**data.get("usage", {}))
    return ModelReply(**fields)


def _pending(data: Mapping[str, Any]) -> PendingCall:
    fields = {**data, "requirements": tuple(data.get("requirements", ())), "reasons": tuple(data.get("reasons", ()))}
    return PendingCall(**fields)


def _tool(data: Any) -> Any:
    return data if isinstance(data, str) else ToolDefinition(**data)


_READERS: dict[str, Callable[[Any], Any]] = {
    "permit": Permit.from_dict,
    "reply": _reply,
    "outcome": Outcome,
    "call": _pending,
    "pending": lambda data: tuple(map(_pending, data)),
    "tools": lambda data: tuple(map(_tool, data)),
    "allowed": tuple,
    "said": tuple,
    "steps": lambda data: tuple(map(Step.from_dict, data)),
    "before": lambda data: tuple(map(Step.from_dict, data)),
}

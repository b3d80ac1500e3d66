"""What is said in a run: messages, the calls in them, and parts that are not text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

Role = Literal["system", "user", "assistant", "tool"]


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call the model asked for.

    `raw_arguments` is the text as the model wrote it; it may be no JSON at all.
    """

    call_id: str
    name: str
    raw_arguments: str = "{}"

    def to_dict(self) -> dict[str, Any]:
        """JSON form."""
        return {"call_id": self.call_id, "name": self.name, "raw_arguments": self.raw_arguments}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> ToolCall:
        """The call whose `to_dict` gave `data`."""
        return cls(data["call_id"], data["name"], data["raw_arguments"])


@dataclass(frozen=True, slots=True)
class Part:
    """A part of a message: `text`, or an `image` or `file` by URL (`data:` URLs included)."""

    kind: Literal["text", "image", "file"]
    text: str | None = None
    url: str | None = None
    media_type: str | None = None
    filename: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without what is not set."""
        pairs = {"kind": self.kind, "text": self.text, "url": self.url, "media_type": self.media_type, "filename": self.filename}
        return {key: value for key, value in pairs.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Part:
        """The part whose `to_dict` gave `data`."""
        return cls(**data)


@dataclass(frozen=True, slots=True)
class Message:
    """One message. A `tool` message carries the one result of the call `call_id`.

    `parts` is set when there is more than text. `extra` holds what a provider wants back
    unchanged (reasoning items, thinking blocks), as JSON, keyed by the adapter's name.
    `kind` tells our own words from the user's: a `nudge` and a `summary` stay, a `status` is left out of the next request
    (except for models whose reasoning is bound to the prefix).
    """

    role: Role
    text: str = ""
    calls: tuple[ToolCall, ...] = ()
    call_id: str | None = None
    parts: tuple[Part, ...] = ()
    extra: Mapping[str, Any] = field(default_factory=dict)
    kind: Literal["", "nudge", "status", "summary"] = ""

    def to_dict(self) -> dict[str, Any]:
        """JSON form, without what is empty."""
        data: dict[str, Any] = {"role": self.role, "text": self.text}
        if self.calls:
            data["calls"] = [call.to_dict() for call in self.calls]
        if self.call_id is not None:
            data["call_id"] = self.call_id
        if self.parts:
            data["parts"] = [part.to_dict() for part in self.parts]
        if self.extra:
            data["extra"] = dict(self.extra)
        if self.kind:
            data["kind"] = self.kind
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Message:
        """The message whose `to_dict` gave `data`."""
        return cls(
            role=data["role"],
            text=data.get("text", ""),
            calls=tuple(ToolCall.from_dict(call) for call in data.get("calls", ())),
            call_id=data.get("call_id"),
            parts=tuple(Part.from_dict(part) for part in data.get("parts", ())),
            extra=data.get("extra", {}),
            kind=data.get("kind", ""),
        )

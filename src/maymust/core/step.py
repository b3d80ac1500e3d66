"""One tool call and its outcome."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Outcome(StrEnum):
    """How a call came back. Only `ok` and `failed` are invocations: the tool's body ran, or its arguments were judged."""

    OK = "ok"
    """It ran and returned."""
    FAILED = "failed"
    """It raised or timed out, its arguments were invalid, or its return value has no JSON form."""
    DENIED = "denied"
    """A person or an approver said no."""
    REFUSED = "refused"
    """It was not admitted and never ran."""

    @classmethod
    def _missing_(cls, value: object) -> None:
        raise ValueError(f"{value!r} is no outcome; the outcomes are {', '.join(cls)}")

    @property
    def is_invocation(self) -> bool:
        """True for `ok` and `failed`."""
        return self is Outcome.OK or self is Outcome.FAILED


@dataclass(frozen=True, slots=True)
class Step:
    """One call of a run, as the rules see it.

    tool        the name the model wrote
    outcome     how it came back
    arguments   the arguments as they were judged, None when there were none to read
    output      the JSON form of the return value
    call_id     the id of the call
    text        what the model read
    untrusted   the output is from outside: it may carry a stranger's instructions
    """

    tool: str
    outcome: Outcome = Outcome.OK
    arguments: Mapping[str, Any] | None = None
    output: Any = None
    call_id: str | None = None
    text: str | None = None
    untrusted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """JSON form. Fields that are None are left out."""
        data: dict[str, Any] = {"tool": self.tool, "outcome": self.outcome.value}
        if self.arguments is not None:
            data["arguments"] = dict(self.arguments)
        for key in ("output", "call_id", "text"):
            value = getattr(self, key)
            if value is not None:
                data[key] = value
        if self.untrusted:
            data["untrusted"] = True
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Step:
        """Read the JSON form. Raises ValueError for an unknown outcome."""
        return cls(
            data["tool"],
            Outcome(data.get("outcome", "ok")),
            data.get("arguments"),
            data.get("output"),
            data.get("call_id"),
            data.get("text"),
            data.get("untrusted", False),
        )

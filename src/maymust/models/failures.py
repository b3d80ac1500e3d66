"""What ends a model call without a reply."""

from __future__ import annotations

from typing import Literal

from maymust.errors import RunError
from maymust.models.chat_model import Lost, Usage

FailureKind = Literal["rate_limited", "timeout", "connection", "server", "rejected", "credentials"]


class ModelFailure(RunError):
    """The provider gave no reply, after all attempts. The run keeps all it has and can be resumed.

    kind      "rate_limited" (429), "timeout", "connection" (refused, lost, or cut off in the middle of a stream), "server" (5xx),
              "rejected" (the request is at fault), "credentials" (401, 403)
    attempts  how often it was tried
    lost      what the provider refused on the way
    """

    def __init__(self, message: str, *, kind: FailureKind, attempts: int = 1, lost: tuple[Lost, ...] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.attempts: int = attempts
        self.lost: tuple[Lost, ...] = lost

    @property
    def usage(self) -> Usage:
        """The failed attempts, as usage."""
        return Usage(requests=self.attempts)


class OutputError(RunError):
    """The model's output was cut off, empty or no valid call, twice. `output` holds what it wrote last."""

    def __init__(self, message: str, *, output: str = "", usage: Usage | None = None) -> None:
        super().__init__(message)
        self.output = output
        self.usage: Usage = usage if usage is not None else Usage()


class MissingExtra(RunError, ImportError):
    """A library that a model needs is not installed. The text has the line that installs it."""

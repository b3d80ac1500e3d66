"""What can go wrong between a client and a provider, as turns of a script."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limited:
    """429, to be tried again after so many seconds."""

    retry_after: float = 0.01


@dataclass(frozen=True)
class Broken:
    """An error of the server."""

    status: int = 500


@dataclass(frozen=True)
class Hang:
    """No answer for so many seconds."""

    seconds: float = 5.0


@dataclass(frozen=True)
class Drop:
    """The connection is cut: at once, or after so many bytes of a stream of `text`."""

    after: int | None = None
    text: str = "cut off in the middle of this sentence"


@dataclass(frozen=True)
class Refuse:
    """400 with this message."""

    message: str


Fault = Limited | Broken | Hang | Drop | Refuse

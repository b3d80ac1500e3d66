"""What became of a call whose process ended while it ran."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Happened:
    """The interrupted call took effect. Given as a decision about it, or returned by a tool's `resolve` function.

    output   what the call would have returned; None when that is not known
    reason   why that is known, for the record
    by       who says so
    """

    output: Any = None
    _: KW_ONLY
    reason: str | None = None
    by: str | None = None

"""What is given to an agent or a run is of the kind it has to be: callers without a type checker pass anything."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from maymust.errors import PolicyError

T = TypeVar("T")


def of_kind(name: str, value: T, kind: type, write: str) -> T:
    """The value of a setting, or None. Raises PolicyError for one of another kind; `write` is what to give."""
    if value is not None and not isinstance(value, kind):
        raise PolicyError(f"{name}={value!r:.80}: give {write}")
    return value


def listed(name: str, things: Any) -> tuple[Any, ...]:
    """The things in a list. Raises PolicyError for one thing alone, which is easily written in the place of a list."""
    if isinstance(things, str | bytes | Mapping) or not isinstance(things, Iterable):
        raise PolicyError(f"{name}={things!r:.80}: give a list, {name}=[...]")
    return tuple(things)

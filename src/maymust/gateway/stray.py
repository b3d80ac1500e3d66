"""Calls where no call belongs. Nothing judges them there, and a client that reads more than it should might run them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import Any


def refuse_strays(value: Any, is_call: Callable[[Mapping[str, Any]], bool], *, but: Collection[Any] = ()) -> None:
    """Raise ValueError if there is a call in a value, on any level, other than these very objects."""
    left = [value]
    while left:
        one = left.pop()
        if isinstance(one, dict):
            if is_call(one) and not any(one is known for known in but):
                raise ValueError("it has a call where no call belongs")
            left += one.values()
        elif isinstance(one, list):
            left += one

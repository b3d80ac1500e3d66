"""Reading JSON that can be written again: Python's reader also takes NaN, and makes infinities of large numbers."""

from __future__ import annotations

import json
import math
from typing import Any


def read_json(text: str) -> Any:
    """The value of a JSON text. Raises ValueError for anything else, RecursionError for what is nested too deeply."""
    if text.startswith("{"):
        # Nearly always: an object and nothing around it, for which no blanks have to be looked for.
        value, end = _DECODER.raw_decode(text)
        if end == len(text):
            return value
    return _DECODER.decode(text)


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is no JSON")


def _finite(digits: str) -> float:
    number = float(digits)
    if math.isinf(number):
        raise ValueError(f"the number {digits[:20]} is out of range")
    return number


_DECODER = json.JSONDecoder(parse_constant=_no_constant, parse_float=_finite)

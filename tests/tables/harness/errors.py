"""Errors that a row expects."""

from __future__ import annotations

import builtins
from collections.abc import Mapping
from typing import Any

import maymust
from tests.tables.harness.rows import RowFault, only, texts


def error_problems(error: BaseException, expected: Mapping[str, Any]) -> list[str]:
    """Where an error is not the one expected."""
    only(expected, {"type", "contains"}, "error")
    found = []
    if "type" in expected and not isinstance(error, error_class(expected["type"])):
        found.append(f"error: expected {expected['type']}, got {type(error).__name__}")
    said = f"{error} | {error.__cause__}".lower()
    found += [f"error: {word!r} is not in {said!r}" for word in texts(expected.get("contains")) if word.lower() not in said]
    return found


def error_class(name: str) -> type[BaseException]:
    """The error class of that name, ours or Python's."""
    found = getattr(maymust, name, None) or getattr(builtins, name, None)
    if not (isinstance(found, type) and issubclass(found, BaseException)):
        raise RowFault(f"no error class {name}")
    return found

"""Reading members of a body with their types checked, so that what is odd is told to the client instead of falling over later."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maymust.gateway.rejected import bad


def as_bool(values: Mapping[str, Any], key: str) -> bool:
    """True or false; false when it is not there or null. Raises Rejected."""
    value = values.get(key)
    if value is None:
        return False
    if not isinstance(value, bool):
        raise bad(f"{key} has to be true or false, got {kind(value)}")
    return value


def as_list(values: Mapping[str, Any], key: str, where: str = "") -> list[Any]:
    """A list; empty when it is not there or null. Raises Rejected."""
    value = values.get(key)
    if value is None:
        return []
    if not isinstance(value, list):
        raise bad(f"{where}{key} has to be a list, got {kind(value)}")
    return value


def as_object(value: Any, where: str) -> Mapping[str, Any]:
    """An object. Raises Rejected."""
    if not isinstance(value, dict):
        raise bad(f"{where} has to be an object, got {kind(value)}")
    return value


def as_name(value: Any, where: str) -> str:
    """A text that is not empty. Raises Rejected."""
    if not isinstance(value, str) or not value:
        raise bad(f"{where} has to be a text, got {kind(value)}")
    return value


def as_id(value: Any, where: str) -> str:
    """The id of a call; empty where a server gave none. Raises Rejected."""
    if value is None:
        return ""
    if not isinstance(value, str):
        raise bad(f"{where} has to be a text, got {kind(value)}")
    return value


def kind(value: Any) -> str:
    """What a value is, in words."""
    names: tuple[tuple[type, str], ...] = ((bool, "a bool"), (str, "a text"), (int, "a number"), (float, "a number"), (list, "a list"))
    if value is None:
        return "null"
    return next((name for type_, name in names if isinstance(value, type_)), "an object")

"""What a request allows, read from its body alone: the server's own view of the permit."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from typing import Any


class Bad(Exception):
    """400, and why."""


@dataclass(frozen=True)
class Wire:
    """What the body of a request says about tools. `choice` is "auto", "required", "none" or a name; `schema` is of the whole output."""

    shown: tuple[str, ...]
    allowed: tuple[str, ...]
    choice: str
    schema: Any = None


def canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def digest(value: Any) -> str:
    return hashlib.sha256(canonical(value).encode()).hexdigest()[:24]


def no_marks(value: Any) -> Any:
    """The value without marks for the cache, which are no part of the prompt."""
    if isinstance(value, dict):
        return {key: no_marks(item) for key, item in value.items() if key != "cache_control"}
    return [no_marks(item) for item in value] if isinstance(value, list) else value


def need(true: Any, why: str) -> None:
    if not true:
        raise Bad(why)


def named(names: list[str], where: str) -> None:
    """Refuse names that no function can have, those of past calls too."""
    for name in names:
        need(re.fullmatch(r"[A-Za-z0-9_-]{1,64}", name), f"Invalid {where}: {name!r} does not match pattern '^[a-zA-Z0-9_-]{{1,64}}$'.")


def unique(names: list[str], what: str) -> tuple[str, ...]:
    need(len(set(names)) == len(names), f"{what}: names must be unique")
    return tuple(names)

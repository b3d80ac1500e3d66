"""Which schemas OpenAI's strict mode takes as they are: every object closed, every property required."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def is_strict(schema: Any) -> bool:
    """Whether the strict mode takes this schema without a change of its meaning."""
    if isinstance(schema, list):
        return all(is_strict(part) for part in schema)
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        names = set(schema.get("properties", {}))
        if schema.get("additionalProperties") is not False or set(schema.get("required", ())) != names:
            return False
    return all(is_strict(part) for part in schema.values())

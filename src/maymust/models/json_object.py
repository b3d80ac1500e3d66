"""Arguments of past calls in the form that APIs want back: a JSON object."""

from __future__ import annotations

import json
from typing import Any


def object_of(raw: str) -> dict[str, Any]:
    """The arguments as an object; what is none is wrapped, so that the model sees what it wrote."""
    try:
        value = json.loads(raw)
    except ValueError:
        value = None
    return value if isinstance(value, dict) else {"INVALID_JSON": raw}


def object_text(raw: str) -> str:
    """The arguments as the text of an object: as they were written where that is one."""
    value = object_of(raw)
    return json.dumps(value, ensure_ascii=False) if "INVALID_JSON" in value else raw

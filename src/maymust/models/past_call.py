"""Past calls in the form that APIs want back, whatever a model once wrote: a name of their alphabet, and a JSON object."""

from __future__ import annotations

import json
import re
from typing import Any

from maymust.tools.output import encodable
from maymust.tools.strict_json import read_json

_OTHER = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST = 64


def name_of(name: str) -> str:
    """The name as it can be sent: a model may have made it up, and an API refuses every later request that has other characters in it."""
    return _OTHER.sub("_", name)[:_LONGEST] or "unnamed"


def object_of(raw: str) -> dict[str, Any]:
    """The arguments as an object; what is none is wrapped, so that the model sees what it wrote."""
    try:
        value = read_json(raw)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        return {"INVALID_JSON": encodable(raw)}
    found: dict[str, Any] = value if "\\ud" not in raw.lower() else json.loads(encodable(json.dumps(value, ensure_ascii=False)))
    return found


def object_text(raw: str) -> str:
    """The arguments as the text of an object: as they were written where that is one."""
    value = object_of(raw)
    return json.dumps(value, ensure_ascii=False) if "INVALID_JSON" in value else raw

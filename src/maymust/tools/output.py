"""What a tool gave back, turned into JSON once."""

from __future__ import annotations

import json
from typing import Any

from maymust.errors import ToolError

NOTHING = "The tool succeeded and returned nothing."
EMPTY_TEXT = "The tool succeeded and returned an empty text."


class OutputInvalid(ToolError):
    """A return value has no JSON form. The tool did run."""


def render_output(value: Any) -> tuple[Any, str]:
    """The JSON form of a return value, and the text of it that the model reads.

    Text stays text. None and the empty text get a text that says so. Models, dataclasses, dates, enums, sets and the
    like have the JSON form pydantic gives them; bytes are base64. Raises `OutputInvalid` for what has none: objects of
    unknown classes, NaN and infinities, values that contain themselves.
    """
    if value is None:
        return None, NOTHING
    if isinstance(value, str):
        # A subclass of str, which an Enum may be, is its text; a lone surrogate would break whoever encodes it.
        value = str.__str__(value)
        value = value if _is_encodable(value) else value.encode("utf-8", "replace").decode()
        return value, value or EMPTY_TEXT
    json_value = to_json(value)
    return json_value, json_text(json_value)


def to_json(value: Any) -> Any:
    """The JSON form of any Python value; `OutputInvalid` when it has none."""
    import pydantic_core

    try:
        json_value = pydantic_core.to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="constants")
        json.dumps(json_value, allow_nan=False)
    except RecursionError:
        raise OutputInvalid("The tool ran, but its return value is nested too deeply to have a JSON form.") from None
    except Exception as error:
        # Serializers of the value's own classes run here and may raise anything.
        raise OutputInvalid(
            f"The tool ran, but its return value (a {type(value).__name__}) has no JSON form: {_first_line(error)}. "
            "Return text, numbers, lists, dicts, dataclasses or pydantic models."
        ) from error
    return json_value


def json_text(json_value: Any) -> str:
    """Compact JSON, readable in any script."""
    text = json.dumps(json_value, ensure_ascii=False, separators=(",", ":"))
    # A lone surrogate would break whoever encodes the text; its escape means the same.
    return text if _is_encodable(text) else json.dumps(json_value, separators=(",", ":"))


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

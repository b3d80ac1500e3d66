"""What a tool gave back, turned into JSON once."""

from __future__ import annotations

import json
from typing import Any

from maymust.errors import ToolError

NOTHING = "The tool succeeded and returned nothing."
EMPTY_TEXT = "The tool succeeded and returned an empty text."
_JSON = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_ASCII = json.JSONEncoder(separators=(",", ":"), allow_nan=False)


class OutputInvalid(ToolError):
    """A return value has no JSON form. The tool did run. `detail` says what is wrong with the value alone."""

    def __init__(self, text: str, detail: str = "") -> None:
        super().__init__(text)
        self.detail = detail


def render_output(value: Any) -> tuple[Any, str]:
    """The JSON form of a return value, and the text of it that the model reads.

    Text stays text. None and the empty text get a text that says so. Models, dataclasses, dates, enums, sets and the
    like have the JSON form pydantic gives them; bytes are base64. Raises `OutputInvalid` for what has none: objects of
    unknown classes, NaN and infinities, values that contain themselves.
    """
    if value is None:
        return None, NOTHING
    if isinstance(value, str):
        # A subclass of str, which an Enum may be, is its text.
        value = encodable(str.__str__(value))
        return value, value or EMPTY_TEXT
    json_value = to_json(value)
    return json_value, json_text(json_value)


def to_json(value: Any) -> Any:
    """The JSON form of any Python value; `OutputInvalid` when it has none."""
    import pydantic_core

    try:
        json_value = pydantic_core.to_jsonable_python(value, bytes_mode="base64", inf_nan_mode="constants")
        if "\\ud" in json.dumps(json_value, allow_nan=False):
            json_value = json.loads(encodable(json.dumps(json_value, ensure_ascii=False)))
    except RecursionError:
        raise OutputInvalid(
            "The tool ran, but its return value is nested too deeply to have a JSON form.", "it is nested too deeply to have a JSON form"
        ) from None
    except Exception as error:
        # Serializers of the value's own classes run here and may raise anything.
        raise OutputInvalid(
            f"The tool ran, but its return value (a {type(value).__name__}) has no JSON form: {_first_line(error)}. "
            "Return text, numbers, lists, dicts, dataclasses or pydantic models.",
            f"a {type(value).__name__} has no JSON form: {_first_line(error)}",
        ) from error
    return json_value


def json_text(json_value: Any) -> str:
    """Compact JSON, readable in any script. Raises ValueError for NaN and infinities, TypeError for what is no JSON value."""
    text = _JSON.encode(json_value)
    # A lone surrogate would break whoever encodes the text; its escape means the same.
    return text if text.isascii() or _is_encodable(text) else _ASCII.encode(json_value)


def storable(arguments: dict[str, Any]) -> dict[str, Any]:
    """Arguments that no schema has let through, as JSON that can be stored: what has no JSON form is its `repr`."""
    try:
        if "\\ud" not in json.dumps(arguments, allow_nan=False):
            return arguments
        text = json.dumps(arguments, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        import pydantic_core

        try:
            text = json.dumps(
                pydantic_core.to_jsonable_python(arguments, fallback=repr, inf_nan_mode="strings", bytes_mode="base64"), ensure_ascii=False
            )
        except Exception:
            # Serializers of the value's own classes run here and may raise anything.
            text = json.dumps({str(name): type(value).__name__ for name, value in arguments.items()}, ensure_ascii=False)
    stored: dict[str, Any] = json.loads(encodable(text))
    return stored


def own_json(value: Any) -> Any:
    """The same JSON value, sharing nothing that can be changed with it."""
    return json.loads(json.dumps(value)) if isinstance(value, dict | list) else value


def encodable(text: str) -> str:
    """The text with halves of characters (lone surrogates) replaced, which would break whoever encodes it; two halves become one."""
    if text.isascii() or _is_encodable(text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _is_encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _first_line(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

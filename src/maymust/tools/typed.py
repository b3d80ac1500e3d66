"""Types as pydantic knows them: adapters that are shared, values checked, faults put into words."""

from __future__ import annotations

import functools
import json
import sys
import typing
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import TYPE_CHECKING, Any

from maymust.tools.parameters import ABSENT
from maymust.tools.words import path_of, shorten

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError


_NO_FORM = "expected a value with a JSON form (NaN and infinities have none)"
_ALWAYS_JSON = (type(None), bool, int, str)


class NotJson(Exception):
    """A number that is none."""


def adapter_of(annotation: Any) -> tuple[TypeAdapter[Any], dict[str, Any], bool]:
    """The adapter of a type, its JSON schema, and whether there is a secret in it. Equal types share them."""
    try:
        # Equal unions may be written in different orders, and the schema follows the writing.
        return _shared_adapter(annotation, repr(annotation))
    except TypeError:
        return _new_adapter(annotation)


@functools.lru_cache(maxsize=1024)
def _shared_adapter(annotation: Any, _written: str) -> tuple[TypeAdapter[Any], dict[str, Any], bool]:
    return _new_adapter(annotation)


def forget_adapters() -> None:
    """Empty the shared adapters, for measurements."""
    _shared_adapter.cache_clear()


def _new_adapter(annotation: Any) -> tuple[TypeAdapter[Any], dict[str, Any], bool]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(_accepted(annotation))
    schema = adapter.json_schema(schema_generator=schema_generator())
    return adapter, schema, '"writeOnly": true' in json.dumps(schema)


def _accepted(annotation: Any) -> Any:
    """A `typing.TypedDict` in the form that pydantic takes on Python 3.11, which lacks what it needs to know; others unchanged."""
    if sys.version_info >= (3, 12) or not typing.is_typeddict(annotation):
        return annotation
    import typing_extensions

    fields: dict[str, Any] = {}
    for name, hint in typing.get_type_hints(annotation, include_extras=True).items():
        plain = typing.get_args(hint)[0] if typing.get_origin(hint) in (typing.Required, typing.NotRequired) else hint
        fields[name] = plain if name in annotation.__required_keys__ else typing_extensions.NotRequired[plain]
    # Not by the class statement, since the fields are only known now.
    made: Any = getattr(typing_extensions, "TypedDict")(annotation.__name__, fields)  # noqa: B009
    made.__doc__ = annotation.__doc__
    return made


@functools.cache
def schema_generator() -> Any:
    """The class that writes JSON schemas for models."""
    from pydantic.json_schema import GenerateJsonSchema

    class WithoutFieldTitles(GenerateJsonSchema):
        """Titles made from field names say nothing and cost tokens in every request."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return WithoutFieldTitles


def check(adapter: TypeAdapter[Any], name: str, given: Any, *, secret: bool = False) -> tuple[Any, Any, list[str]]:
    """The validated value, its JSON form, and the faults, one line per field; `name` starts the path of each."""
    from pydantic import ValidationError

    try:
        value = validate(adapter, given)
    except NotJson:
        return None, None, [_fault(name, _NO_FORM, given, secret=secret)]
    except ValidationError as error:
        return None, None, faults_of(name, given, error, secret=secret)
    except Exception as error:
        # Validators of the types' authors run here and may raise anything; too deep a nesting ends here as well.
        return None, None, [_fault(name, f"expected a value that can be checked ({type(error).__name__})", given, secret=secret)]
    form = json_form(adapter, value)
    if form is ABSENT:
        return None, None, [_fault(name, _NO_FORM, given, secret=secret)]
    return value, form, []


def validate(adapter: TypeAdapter[Any], given: Any) -> Any:
    """Validate as JSON, so that strict models take dates and tuples; what is no JSON (middleware's doing) as Python.

    Raises NotJson for NaN and infinities wherever they are: they would pass every bound of a rule.
    """
    try:
        text = json.dumps(given)
    except (TypeError, ValueError):
        return adapter.validate_python(given)
    if "NaN" in text or "Infinity" in text:
        try:
            json.dumps(given, allow_nan=False)
        except ValueError:
            raise NotJson from None
    return adapter.validate_json(text)


def json_form(adapter: TypeAdapter[Any], value: Any) -> Any:
    """The JSON form of a validated value, `ABSENT` when it has none.

    Decimals become numbers where that loses nothing: rules with bounds speak of numbers, and must hold for money too.
    """
    if type(value) is Decimal and value.is_finite():
        number = int(value) if value == value.to_integral_value() else float(value)
        if Decimal(repr(number)) == value:
            return number
    try:
        form = adapter.dump_python(value, mode="json", by_alias=True, warnings=False)
        if type(form) not in _ALWAYS_JSON:
            json.dumps(form, allow_nan=False)
    except Exception:
        return ABSENT
    return form


def faults_of(name: str, given: Any, error: ValidationError, *, secret: bool = False) -> list[str]:
    """One line per field: the path, what was expected, what came."""
    found: dict[str, tuple[list[str], Any]] = {}
    for entry in error.errors(include_url=False, include_context=False):
        words = _words(entry["type"], entry["msg"], entry["input"])
        path = path_of(name, _path_in(given, entry["loc"], missing=words == "missing"))
        found.setdefault(path, ([], entry["input"]))[0].append(words)
    faults = []
    for path, (wants, got) in found.items():
        text = " or ".join(dict.fromkeys(wants)).replace(" or expected ", " or ")
        faults.append(f"{path}: missing" if text == "missing" else _fault(path, text, got, secret=secret))
    return faults


def _words(kind: str, message: str, given: Any) -> str:
    """What pydantic says of one field, as it stands behind the name of the field."""
    if kind == "missing":
        return "missing"
    if kind == "value_error":
        return message.removeprefix("Value error, ")
    if kind == "extra_forbidden":
        return "there is no such field"
    if kind == "json_invalid" and "\\ud" in json.dumps(given, default=repr):
        # Our own JSON is valid but for this.
        return "expected text without lone surrogates"
    if message.startswith("Input should be "):
        return "expected " + message.removeprefix("Input should be ").partition(", unable to ")[0]
    # "String should have at least 3 characters" and the like are sentences of their own.
    words = message.removeprefix("Input ")
    return words[:1].lower() + words[1:]


def _fault(path: str, text: str, got: Any, *, secret: bool) -> str:
    return f"{path}{': ' if path else ''}{text}; got {'a secret' if secret else shorten(got)}"


def _path_in(given: Any, location: Sequence[int | str], *, missing: bool) -> list[int | str]:
    """The parts of pydantic's location that are in the value itself; the others name branches of unions and the like."""
    path: list[int | str] = []
    for index, part in enumerate(location):
        inner = _inner(given, part)
        if inner is not ABSENT:
            given = inner
        elif not (missing and index == len(location) - 1):
            continue
        path.append(part)
    return path


def _inner(given: Any, part: int | str) -> Any:
    if isinstance(given, Mapping):
        return given.get(part, ABSENT)
    return given[part] if isinstance(given, list) and isinstance(part, int) and part < len(given) else ABSENT

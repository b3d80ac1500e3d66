"""Arguments: the schema that the model sees for a function, and the check of what the model then wrote."""

from __future__ import annotations

import difflib
import functools
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import TYPE_CHECKING, Annotated, Any, Protocol

from maymust.errors import PolicyError, ToolError
from maymust.tools.parameters import ABSENT, Parameter, Parameters

if TYPE_CHECKING:
    from pydantic import TypeAdapter, ValidationError

_SHOWN = 80


class ArgumentsInvalid(ToolError):
    """The model's arguments break the tool's schema. The text is for the model: one line per field."""


@dataclass(frozen=True, slots=True)
class Parsed:
    """Arguments that are valid. `values` go to the body, as Python objects; `json` is their JSON form, which rules judge,
    with defaults filled in and secrets masked.
    """

    values: dict[str, Any]
    json: dict[str, Any]


class Arguments(Protocol):
    """What a tool takes."""

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON schema, an object."""
        ...

    def parse(self, arguments: Mapping[str, Any]) -> Parsed:
        """Validate; raises ArgumentsInvalid."""
        ...


class FunctionArguments:
    """The arguments of a Python function, validated by pydantic, one parameter at a time.

    One adapter serves every parameter of the same type in all tools: a thousand tools cost a few adapters.
    """

    def __init__(self, parameters: Parameters, tool: str) -> None:
        self._fields = {parameter.name: _Field(parameter, tool) for parameter in parameters.listed}
        self._further = None if parameters.further is ABSENT else _Field(Parameter("**", parameters.further, ABSENT, ""), tool)
        self._taken = parameters.taken
        self.schema = self._build_schema()

    def _build_schema(self) -> dict[str, Any]:
        named = [(name, field) for name, field in self._fields.items()]
        if self._further is not None and self._further.schema:
            named.append(("**", self._further))
        bodies, definitions = _joined(named)
        further = bodies.pop("**", None) if self._further is not None else False
        schema: dict[str, Any] = {
            "type": "object",
            "properties": {name: self._fields[name].described(body) for name, body in bodies.items()},
            "additionalProperties": True if further is None else further,
        }
        required = [name for name, field in self._fields.items() if field.required]
        if required:
            schema["required"] = required
        if definitions:
            schema["$defs"] = definitions
        return schema

    def parse(self, arguments: Mapping[str, Any]) -> Parsed:
        """Validate what the model wrote; raises ArgumentsInvalid with one line per field at fault."""
        values: dict[str, Any] = {}
        forms: dict[str, Any] = {}
        faults: list[str] = []
        for name, field in self._fields.items():
            if name in arguments:
                faults += field.take(name, arguments[name], values, forms)
            elif field.required:
                faults.append(f"{name}: missing; expected {expected(field.schema)}")
            else:
                field.fill(name, values, forms)
        for name in arguments:
            if name in self._fields:
                continue
            if self._further is None or name in self._taken:
                faults.append(unknown(name, self._fields))
            else:
                faults += self._further.take(name, arguments[name], values, forms)
        if faults:
            raise ArgumentsInvalid("\n".join(faults))
        return Parsed(values, forms)


class _Field:
    """One parameter with its adapter, its schema and its default."""

    def __init__(self, parameter: Parameter, tool: str) -> None:
        annotation, default = parameter.annotation, parameter.default
        default, annotation = _field_default(annotation, default, tool, parameter.name)
        try:
            self.adapter, self.schema = adapter_of(annotation)
        except Exception as error:
            raise PolicyError(
                f"Tool {tool!r}: parameter {parameter.name!r} has the type {annotation!r}, which has no JSON schema: {_brief(error)}. "
                "Give it a type that JSON can express, or take it out of the signature (deps and the context reach a tool without)."
            ) from error
        self.description = parameter.description
        self.default: Callable[[], Any] | None = default
        self.required = default is None
        self.secret = '"writeOnly": true' in json.dumps(self.schema)

    def described(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schema with description and default in it."""
        body = {key: value for key, value in schema.items() if key != "default"}
        if self.description:
            body["description"] = self.description
        if self.default is not None:
            form = self._form(self.default())
            if form is not ABSENT and not self.secret:
                body["default"] = form
        return body

    def fill(self, name: str, values: dict[str, Any], forms: dict[str, Any]) -> None:
        """Put the default in. A default without a JSON form reaches the body only."""
        assert self.default is not None
        values[name] = value = self.default()
        form = self._form(value)
        if form is not ABSENT:
            forms[name] = form

    def take(self, name: str, given: Any, values: dict[str, Any], forms: dict[str, Any]) -> list[str]:
        """Validate one argument; gives the faults."""
        from pydantic import ValidationError

        try:
            value = validate(self.adapter, given)
        except ValidationError as error:
            return faults_of(name, error, secret=self.secret)
        form = self._form(value)
        if form is ABSENT:
            got = "a secret" if self.secret else shorten(given)
            return [f"{name}: expected a value with a JSON form (NaN and infinities have none); got {got}"]
        values[name], forms[name] = value, form
        return []

    def _form(self, value: Any) -> Any:
        return json_form(self.adapter, value)


def json_form(adapter: TypeAdapter[Any], value: Any) -> Any:
    """The JSON form of a validated value, `ABSENT` when it has none.

    Decimals become numbers where that loses nothing: rules with bounds speak of numbers, and must hold for money too.
    """
    if type(value) is Decimal and value.is_finite():
        number = int(value) if value == value.to_integral_value() else float(value)
        if Decimal(repr(number)) == value:
            return number
    try:
        form = adapter.dump_python(value, mode="json", warnings=False)
        json.dumps(form, allow_nan=False)
    except Exception:
        return ABSENT
    return form


def validate(adapter: TypeAdapter[Any], given: Any) -> Any:
    """Validate as JSON, so that strict models take dates and tuples; what is no JSON (middleware's doing) as Python."""
    try:
        text = json.dumps(given)
    except (TypeError, ValueError):
        return adapter.validate_python(given)
    except RecursionError:
        raise ArgumentsInvalid("the arguments are nested too deeply") from None
    return adapter.validate_json(text)


def adapter_of(annotation: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    """The adapter of a type, with its JSON schema. Adapters of equal types are shared."""
    try:
        # Equal unions may be written in different orders, and the schema follows the writing.
        return _shared_adapter(annotation, repr(annotation))
    except TypeError:
        return _new_adapter(annotation)


@functools.lru_cache(maxsize=1024)
def _shared_adapter(annotation: Any, _written: str) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    return _new_adapter(annotation)


def _new_adapter(annotation: Any) -> tuple[TypeAdapter[Any], dict[str, Any]]:
    from pydantic import TypeAdapter

    adapter: TypeAdapter[Any] = TypeAdapter(annotation)
    return adapter, adapter.json_schema(schema_generator=_generator())


@functools.cache
def _generator() -> Any:
    from pydantic.json_schema import GenerateJsonSchema

    class WithoutFieldTitles(GenerateJsonSchema):
        """Titles made from field names say nothing and cost tokens in every request."""

        def field_title_should_be_set(self, schema: Any) -> bool:
            return False

    return WithoutFieldTitles


def _joined(named: Sequence[tuple[str, _Field]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas by name, and the definitions they share."""
    if not any("$defs" in field.schema for _, field in named):
        return {name: field.schema for name, field in named}, {}
    from pydantic import TypeAdapter

    # Two classes of one name need names of their own, which only a joint schema gives them.
    schemas, rest = TypeAdapter.json_schemas([(name, "validation", field.adapter) for name, field in named], schema_generator=_generator())
    return {name: dict(schemas[name, "validation"]) for name, _ in named}, dict(rest.get("$defs", {}))


def _field_default(annotation: Any, default: Any, tool: str, name: str) -> tuple[Callable[[], Any] | None, Any]:
    """The default as a function (None when required), and the annotation with a `Field(...)` given as the default in it."""
    from pydantic.fields import FieldInfo

    if isinstance(default, FieldInfo):
        annotation, default = Annotated[annotation, default], ABSENT
    infos = [extra for extra in getattr(annotation, "__metadata__", ()) if isinstance(extra, FieldInfo)]
    for info in infos:
        if info.alias is not None or info.validation_alias is not None:
            raise PolicyError(f"Tool {tool!r}: parameter {name!r} has an alias, which a tool cannot have. Give the parameter that name.")
    if default is not ABSENT:
        return (lambda: default), annotation
    for info in infos:
        if not info.is_required():
            return functools.partial(info.get_default, call_default_factory=True), annotation
    return None, annotation


def faults_of(name: str, error: ValidationError, *, secret: bool = False) -> list[str]:
    """One line per field: the path, what was expected, what came."""
    grouped: dict[tuple[str, int], tuple[list[str], Any]] = {}
    for entry in error.errors(include_url=False, include_context=False):
        location = entry["loc"]
        words = entry["msg"].removeprefix("Input should be ").removeprefix("Value error, ")
        wanted = words if entry["type"] in ("missing", "value_error") else "expected " + words[:1].lower() + words[1:]
        key = (path_of(name, location), id(entry["input"]) if location else 0)
        grouped.setdefault(key, ([], entry["input"]))[0].append("missing" if entry["type"] == "missing" else wanted)
    lines = []
    for (path, _), (wants, got) in grouped.items():
        text = " or ".join(dict.fromkeys(wants))
        lines.append(f"{path}: {text}" if text == "missing" else f"{path}: {text}; got {'a secret' if secret else shorten(got)}")
    return lines


def path_of(name: str, location: Iterable[int | str]) -> str:
    """`items[0].price` from the parts of a path."""
    parts = [f"[{part}]" if isinstance(part, int) else f".{part}" for part in location]
    return name + "".join(parts) if name else "".join(parts).removeprefix(".")


def unknown(name: str, known: Iterable[str]) -> str:
    """The line for an argument that no parameter takes."""
    names = list(known)
    if not names:
        return f"there is no parameter {name!r}; this tool takes none"
    close = difflib.get_close_matches(name, names, n=1)
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    return f"there is no parameter {name!r}{hint}; parameters: {', '.join(names)}"


def expected(schema: Mapping[str, Any]) -> str:
    """A schema in a few words."""
    if "enum" in schema:
        return "one of " + ", ".join(shorten(value) for value in schema["enum"])
    if "const" in schema:
        return shorten(schema["const"])
    if isinstance(schema.get("type"), str):
        return f"{schema['type']} ({schema['format']})" if "format" in schema else str(schema["type"])
    options = [expected(option) for option in schema.get("anyOf", schema.get("oneOf", ())) if isinstance(option, Mapping)]
    return " or ".join(dict.fromkeys(options)) or "a value"


def shorten(value: Any) -> str:
    """A value as JSON, at most a line."""
    try:
        text = json.dumps(value, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= _SHOWN else text[: _SHOWN - 1] + "…"


def _brief(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

"""Arguments: the schema that the model sees for a function, and the check of what the model then wrote."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Protocol

from maymust.errors import PolicyError, ToolError
from maymust.tools.parameters import ABSENT, Parameter, Parameters
from maymust.tools.typed import adapter_of, check, json_form, schema_generator
from maymust.tools.words import describe, lines, unknown


class ArgumentsInvalid(ToolError):
    """The model's arguments break the tool's schema. The text is for the model: one line per field."""


@dataclass(slots=True)
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

    @property
    def secrets(self) -> frozenset[str]:
        """Names of the parameters whose values must not be shown."""
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
        self.schema: dict[str, Any] = self._build_schema()
        self.secrets: frozenset[str] = frozenset(name for name, field in self._fields.items() if field.secret)

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
                faults.append(f"{name}: missing; expected {describe(field.schema)}")
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
            raise ArgumentsInvalid(lines(faults))
        return Parsed(values, forms)


_PLAIN: tuple[type, ...] = (str, int, bool)


class _Field:
    """One parameter with its adapter, its schema and its default."""

    def __init__(self, parameter: Parameter, tool: str) -> None:
        annotation, default = parameter.annotation, parameter.default
        default, annotation = _field_default(annotation, default, tool, parameter.name)
        try:
            self.adapter, self.schema, self.secret = adapter_of(annotation)
        except Exception as error:
            raise PolicyError(
                f"Tool {tool!r}: parameter {parameter.name!r} has the type {annotation!r}, which has no JSON schema: {_brief(error)}. "
                "Give it a type that JSON can express, or take it out of the signature (deps and the context reach a tool without)."
            ) from error
        self.plain = annotation if annotation in _PLAIN else None
        self.description = parameter.description
        self.default: Callable[[], Any] | None = default
        self.required = default is None

    def described(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        """The schema with description and default in it."""
        body = {key: value for key, value in schema.items() if key != "default"}
        if self.description:
            body["description"] = self.description
        if self.default is not None:
            form = json_form(self.adapter, self.default())
            if form is not ABSENT and not self.secret:
                body["default"] = form
        return body

    def fill(self, name: str, values: dict[str, Any], forms: dict[str, Any]) -> None:
        """Put the default in. A default without a JSON form, and a secret in plain text, reach the body only."""
        assert self.default is not None
        values[name] = value = self.default()
        if self.secret and value is not None and type(value) in _PLAIN:
            # Nothing masks a default that is not of the type it stands for.
            return
        if value is None or type(value) in _PLAIN:
            forms[name] = value
            return
        form = json_form(self.adapter, value)
        if form is not ABSENT:
            forms[name] = form

    def take(self, name: str, given: Any, values: dict[str, Any], forms: dict[str, Any]) -> list[str]:
        """Validate one argument; gives the faults."""
        kind = type(given)
        if kind is self.plain and (kind is not str or given.isascii()):
            # What is already of a plain type needs no validator, and most arguments are.
            values[name] = forms[name] = given
            return []
        value, form, faults = check(self.adapter, name, given, secret=self.secret)
        if not faults:
            values[name], forms[name] = value, form
        return faults


def _joined(named: Sequence[tuple[str, _Field]]) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schemas by name, and the definitions they share."""
    if not any("$defs" in field.schema for _, field in named):
        return {name: field.schema for name, field in named}, {}
    from pydantic import TypeAdapter

    # Two classes of one name need names of their own, which only a joint schema gives them.
    schemas, rest = TypeAdapter.json_schemas(
        [(name, "validation", field.adapter) for name, field in named], schema_generator=schema_generator()
    )
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


def _brief(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].rstrip(".")

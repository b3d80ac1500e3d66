"""Arguments that are described by a JSON schema: tools from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from maymust.errors import PolicyError
from maymust.tools.arguments import ArgumentsInvalid, Parsed
from maymust.tools.json_schema import SchemaFault, compile_schema
from maymust.tools.words import describe, lines, path_of, shorten, unknown


class SchemaArguments:
    """The arguments of a tool from a JSON schema. They go to the body as they came; top-level defaults are filled in."""

    def __init__(self, schema: Mapping[str, Any] | Any, tool: str, *, validate: bool = True) -> None:
        if not isinstance(schema, Mapping) or schema.get("type", "object") != "object":
            raise PolicyError(f"Tool {tool!r}: its parameters are a JSON schema of an object, not {shorten(schema)}.")
        if not isinstance(schema.get("properties", {}), Mapping) or not isinstance(schema.get("required", []), list | tuple):
            raise PolicyError(f"Tool {tool!r}: its parameters have 'properties' that are no object, or 'required' that is no list.")
        try:
            # A copy of our own: what is compiled and what is shown must never differ.
            own: dict[str, Any] = json.loads(json.dumps(dict(schema), allow_nan=False))
        except (TypeError, ValueError) as error:
            raise PolicyError(f"Tool {tool!r}: its parameters are no JSON: {error}.") from error
        self.schema: dict[str, Any] = {"type": "object", "properties": {}, **own}
        self.secrets: frozenset[str] = frozenset(
            name for name, body in self.schema["properties"].items() if isinstance(body, dict) and body.get("writeOnly")
        )
        self._check = compile_schema(self.schema, whose=f"The parameters of tool {tool!r}") if validate else None

    def parse(self, arguments: Mapping[str, Any]) -> Parsed:
        """Validate; raises ArgumentsInvalid, one line per field as far as the field can be told."""
        properties: Mapping[str, Any] = self.schema["properties"]
        if self._check is not None:
            self._check_names(arguments, properties)
        values: dict[str, Any] = dict(arguments)
        for name, schema in properties.items():
            if isinstance(schema, Mapping) and "default" in schema and name not in values:
                values[name] = schema["default"]
        try:
            form = json.loads(json.dumps(values, allow_nan=False))
        except (TypeError, ValueError, RecursionError) as error:
            raise ArgumentsInvalid(f"the arguments are no JSON: {error}") from None
        try:
            if self._check is not None:
                self._check(form)
        except SchemaFault as fault:
            path = path_of("", (int(part) if part.isdecimal() else part for part in fault.path)) or "the arguments"
            raise ArgumentsInvalid(lines([f"{path}: expected {fault.wanted}; got {shorten(fault.got)}"])) from None
        return Parsed(form, json.loads(json.dumps(form)))

    def _check_names(self, arguments: Mapping[str, Any], properties: Mapping[str, Any]) -> None:
        """Say all that is missing and all that is unknown; the compiled check stops at its first fault."""
        missing = [name for name in self.schema.get("required", ()) if name not in arguments]
        faults = [f"{name}: missing; expected {describe(properties.get(name, {}), self.schema)}" for name in missing]
        if self.schema.get("additionalProperties") is False and "patternProperties" not in self.schema:
            faults += [unknown(name, properties) for name in arguments if name not in properties]
        if faults:
            raise ArgumentsInvalid(lines(faults))

"""The final answer: a tool like any other for the rules; calling it ends the run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar, Generic, TypeVar, cast

from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PolicyError
from maymust.tools.arguments import ArgumentsInvalid, FunctionArguments, Parsed
from maymust.tools.function_tool import Tool
from maymust.tools.output import json_text
from maymust.tools.parameters import ABSENT, Parameter, Parameters
from maymust.tools.typed import adapter_of, check
from maymust.tools.words import lines

T = TypeVar("T")

_DESCRIPTION = "Give the final answer to the user. This ends the work: call it once, when everything is done."


class _FinalAnswerTool(Tool):
    """The tool itself. The run never calls its body: the arguments are the answer."""

    name = FINAL_ANSWER
    description = _DESCRIPTION
    effect = "read"
    _may_be_reserved: ClassVar[bool] = True

    def __init__(self, arguments: Any) -> None:
        self.__dict__["_arguments"] = arguments
        super().__init__()

    def run(self, **fields: Any) -> Any:
        return fields


class FinalAnswer(Generic[T]):
    """How a run's answer looks: `answer` (text), or what `output_type` says.

    A pydantic model, dataclass or TypedDict gives the tool its fields; any other type is one field `answer` of that type.
    Raises PolicyError for a type without a JSON schema, or with a secret (`SecretStr`) in it.
    """

    def __init__(self, output_type: type[T] | Any = None) -> None:
        self.output_type = output_type
        self._plain = output_type is None or output_type is str
        try:
            self._adapter, schema, secret = adapter_of(str if output_type is None else output_type)
        except Exception as error:
            raise PolicyError(
                f"output_type={output_type!r} has no JSON schema: {error}. Use a pydantic model, dataclass, TypedDict or plain type."
            ) from error
        if secret:
            raise PolicyError(
                f"output_type={output_type!r} holds a secret: an answer is shown and stored, which leaves the mask of it. "
                "Take a plain type; secrets belong in deps."
            )
        self._has_fields = _is_object(schema)
        self.tool: Tool = _FinalAnswerTool(_Fields(self._adapter, schema) if self._has_fields else _single(output_type))

    def parse(self, arguments: Mapping[str, Any]) -> tuple[str, Any]:
        """The answer as text and the output as JSON. Raises ArgumentsInvalid with the exact errors."""
        value = self.tool.parse(arguments).values["answer"]
        if self._plain:
            return value, value
        # By the names of fields and without computed ones, so that `load` takes it back.
        output = self._adapter.dump_python(value, mode="json", round_trip=True, warnings=False)
        return self.text_of(output), output

    def text_of(self, output: Any) -> str:
        """The answer as text, from the output as JSON."""
        return str(output) if self._plain else json_text(output)

    def arguments_from_text(self, text: str) -> dict[str, Any] | None:
        """The arguments of `final_answer` that say what `text` says; None when the text is no answer of the type."""
        if self.from_text(text) is None:
            return None
        if self._plain:
            return {"answer": text}
        value = json.loads(text)
        return dict(value) if self._has_fields else {"answer": value}

    def load(self, output: Any) -> T:
        """The `output_type`'s value from the JSON that `parse` gave."""
        return cast("T", self._adapter.validate_json(json.dumps(output), by_alias=False, by_name=True))

    def from_text(self, text: str) -> tuple[str, Any] | None:
        """The answer in a text: for text answers the text itself; for other types only a text that is valid JSON of that type."""
        if self._plain:
            return text, text
        try:
            value = json.loads(text)
            if self._has_fields and not isinstance(value, dict):
                return None
            return text, self.parse(value if self._has_fields else {"answer": value})[1]
        except (ValueError, RecursionError, ArgumentsInvalid):
            return None


class _Fields:
    """Arguments that are the fields of the output type."""

    def __init__(self, adapter: Any, schema: dict[str, Any]) -> None:
        self._adapter = adapter
        self.schema = _resolved(schema)
        self.secrets: frozenset[str] = frozenset()

    def parse(self, arguments: Mapping[str, Any]) -> Parsed:
        value, form, faults = check(self._adapter, "", dict(arguments))
        if faults:
            raise ArgumentsInvalid(lines(faults))
        return Parsed({"answer": value}, form)


def _single(output_type: Any) -> FunctionArguments:
    annotation = str if output_type is None else output_type
    text = "The answer, complete and ready for the user." if output_type in (None, str) else "The answer."
    return FunctionArguments(Parameters((Parameter("answer", annotation, ABSENT, text),)), FINAL_ANSWER)


def _resolved(schema: dict[str, Any]) -> dict[str, Any]:
    """The schema with a reference at its root, as recursive models have, followed once: providers want an object there."""
    target = schema.get("$ref")
    if isinstance(target, str):
        schema = {**schema["$defs"][target.rpartition("/")[2]], "$defs": schema["$defs"]}
    return schema


def _is_object(schema: dict[str, Any]) -> bool:
    """A record with fields of its own; a mapping such as dict[str, int] is a plain value."""
    resolved = _resolved(schema)
    return resolved.get("type") == "object" and "properties" in resolved

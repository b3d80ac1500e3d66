"""JSON Schema: checks compiled once, and words for what is wrong."""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Mapping
from typing import Any

from maymust.core.fragment import admits, check_fragments
from maymust.core.tool_spec import closest
from maymust.errors import PolicyError
from maymust.tools.words import describe, describe_keyword, shorten

_NUMBER_WORDS = frozenset({"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"})
_TEXT_WORDS = frozenset({"minLength", "maxLength", "pattern", "format"})
_ARRAY_WORDS = frozenset({"items", "minItems", "maxItems", "uniqueItems", "contains"})
_OBJECT_WORDS = frozenset({"properties", "required", "additionalProperties", "minProperties", "maxProperties", "patternProperties"})
_MANY = frozenset({"allOf", "anyOf", "oneOf", "properties", "patternProperties", "$defs", "definitions", "dependencies"})
_ONE = frozenset({"not", "if", "then", "else", "items", "additionalItems", "contains", "additionalProperties", "propertyNames"})
_WORDS = frozenset(
    {*_NUMBER_WORDS, *_TEXT_WORDS, *_ARRAY_WORDS, *_OBJECT_WORDS, *_MANY, *_ONE, "type", "enum", "const", "$ref"}
    | {"title", "description", "default", "examples", "$comment", "$schema", "$id", "readOnly", "writeOnly"}
)


class SchemaFault(Exception):
    """A value that breaks a schema: where, what was expected, and what was there."""

    def __init__(self, path: tuple[str, ...], wanted: str, got: Any) -> None:
        super().__init__(wanted)
        self.path = path
        self.wanted = wanted
        self.got = got


class SchemaUnchecked(SchemaFault):
    """A value that could not be checked at all, which counts as a fault."""


def compile_schema(schema: dict[str, Any] | bool, *, whose: str) -> Callable[[Any], None]:
    """A check that raises SchemaFault. Raises PolicyError, naming `whose` it is, for what is no schema or points elsewhere."""
    import fastjsonschema

    _refuse_remote(schema, whose)
    try:
        check = fastjsonschema.compile(schema, use_default=False, detailed_exceptions=True)
    except Exception as error:
        # Bad schemas leave the compiler as all kinds of errors.
        raise PolicyError(f"{whose} is no JSON schema: {error}. The schema: {shorten(schema)}") from error

    def checked(value: Any) -> None:
        try:
            check(value)
        except fastjsonschema.JsonSchemaValueException as error:
            path = tuple(str(part) for part in error.path[1:])
            raise SchemaFault(path, describe_keyword(error.rule, error.rule_definition, error.message), error.value) from None
        except RecursionError:
            raise SchemaUnchecked((), "a value that is not nested so deeply", value) from None
        except Exception as error:
            # The library's own faults close the door too.
            raise SchemaUnchecked((), f"a value that can be checked ({type(error).__name__}: {error})", value) from None

    return checked


def fragment_check(fragment: Mapping[str, Any] | bool) -> Callable[[Any], str | None]:
    """A check of one argument against a rule's fragment: None, or what is wrong, with the allowed values spelled out.

    A bound speaks of its own kind of value only, and a rule must hold: without a `type`, `{"maximum": 100}` admits no text
    and no null. NaN and infinities are never admitted. Raises PolicyError for what is no fragment.
    """
    return _compiled_fragment(_canonical(fragment))


def in_question(fragment: Mapping[str, Any] | bool) -> Callable[[Any], bool]:
    """Whether a person is asked about an argument: it matches the fragment, or is of a kind the fragment's bounds do not speak of."""
    text = _canonical(fragment)
    kind = _kind(fragment) if isinstance(fragment, Mapping) else None
    check = _compiled(text)

    def asked(value: Any) -> bool:
        if kind is not None and not _is_kind(value, kind):
            return True
        try:
            check(value)
        except SchemaUnchecked:
            return True
        except SchemaFault:
            return False
        return True

    return asked


@functools.lru_cache(maxsize=1024)
def _compiled_fragment(text: str) -> Callable[[Any], str | None]:
    fragment = json.loads(text)
    if isinstance(fragment, dict) and (kind := _kind(fragment)) is not None:
        fragment = {"type": kind, **fragment}
    check = _compiled(_canonical(fragment))
    allowed = describe(fragment)

    def checked(value: Any) -> str | None:
        try:
            json.dumps(value, allow_nan=False)
            check(value)
        except SchemaFault as fault:
            inside = f" (at {'.'.join(fault.path)}: {fault.wanted})" if fault.path else ""
            return f"{shorten(value)} is not allowed; {allowed}{inside}"
        except (TypeError, ValueError, RecursionError):
            return f"{shorten(value)} is no JSON value; {allowed}"
        return None

    return checked


@functools.lru_cache(maxsize=1024)
def _compiled(text: str) -> Callable[[Any], None]:
    fragment = json.loads(text)
    _refuse_unknown_words(fragment, text)
    return _listing(fragment) if _is_listing(fragment) else compile_schema(fragment, whose="The fragment of a rule")


def _is_listing(fragment: Any) -> bool:
    """Whether a fragment lists values, perhaps with bounds. Such lists grow with a run: they are looked up, since compiling one takes
    a millisecond each time.
    """
    if not isinstance(fragment, dict):
        return False
    if fragment.keys() == {"anyOf"} and isinstance(fragment["anyOf"], list):
        return all(part == {"type": "null"} or _is_listing(part) for part in fragment["anyOf"])
    if fragment.keys() == {"type", "items"} and fragment["type"] == "array":
        return _is_listing(fragment["items"])
    if fragment.keys() == {"not"} and isinstance(fragment["not"], dict) and fragment["not"].keys() == {"enum"}:
        return isinstance(fragment["not"]["enum"], list)
    if not isinstance(fragment.get("enum"), list) or not fragment.keys() <= {"enum", "type", "minimum", "maximum"}:
        return False
    try:
        return bool(check_fragments({"": fragment}, "a fragment"))
    except PolicyError:
        return False


def _listing(fragment: dict[str, Any]) -> Callable[[Any], None]:
    wanted = describe(fragment)

    def checked(value: Any) -> None:
        if not admits(fragment, value):
            raise SchemaFault((), wanted, value)

    return checked


def _canonical(fragment: Any) -> str:
    if not isinstance(fragment, Mapping | bool):
        raise PolicyError(f"A fragment of JSON Schema is a dict such as {{'maximum': 100}}, not {fragment!r}.")
    try:
        return json.dumps(fragment if isinstance(fragment, bool) else dict(fragment), sort_keys=True, allow_nan=False)
    except (TypeError, ValueError) as error:
        raise PolicyError(f"The fragment {fragment!r} is no JSON: {error}.") from error


def _kind(fragment: Mapping[str, Any]) -> str | None:
    """The kind of value that the fragment's bounds speak of, when it does not say itself."""
    if "type" in fragment or "enum" in fragment or "const" in fragment:
        return None
    for kind, words in (("number", _NUMBER_WORDS), ("string", _TEXT_WORDS), ("array", _ARRAY_WORDS), ("object", _OBJECT_WORDS)):
        if words & fragment.keys():
            return kind
    return None


def _is_kind(value: Any, kind: str) -> bool:
    kinds: dict[str, Any] = {"number": int | float, "string": str, "array": list, "object": dict}
    return isinstance(value, kinds[kind]) and not (kind == "number" and (isinstance(value, bool) or value != value))


def _refuse_unknown_words(schema: Any, text: str) -> None:
    """A keyword the checker does not know would be passed over, and the rule would not hold."""
    if not isinstance(schema, dict):
        return
    for word in schema:
        if word not in _WORDS:
            near = closest(word, _WORDS)
            hint = f" Did you mean {near[0]!r}?" if near else ""
            raise PolicyError(f"The fragment {shorten(json.loads(text))} has the keyword {word!r}, which is not checked.{hint}")
    for word in _MANY & schema.keys():
        inner = schema[word]
        for part in inner.values() if isinstance(inner, dict) else inner if isinstance(inner, list) else ():
            _refuse_unknown_words(part, text)
    for word in _ONE & schema.keys():
        _refuse_unknown_words(schema[word], text)
    if isinstance(schema.get("items"), list):
        for part in schema["items"]:
            _refuse_unknown_words(part, text)


def _refuse_remote(schema: Any, whose: str) -> None:
    """Only references inside the document are followed: a schema must not make the process fetch anything."""
    stack = [schema]
    while stack:
        part = stack.pop()
        if isinstance(part, Mapping):
            target = part.get("$ref")
            if isinstance(target, str) and not target.startswith("#"):
                raise PolicyError(f"{whose} refers to {target!r}, but only references inside the schema ('#/...') are followed.")
            stack.extend(part.values())
        elif isinstance(part, list | tuple):
            stack.extend(part)

"""The JSON Schema (draft-07) of policy files, for editors: made from the vocabulary, shipped as `schema.json`."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any, get_args

from maymust.policyfile.gateway_terms import gateway_schema
from maymust.policyfile.vocabulary import FRAGMENT_WORDS, KINDS, NEEDED, TOP, Kind, Shape, Word
from maymust.requirements.named import Part

_TOOL = {"type": "string", "minLength": 1}
_TEXT = {"type": "string", "minLength": 1}
_TOOLS = {"anyOf": [_TOOL, {"type": "array", "items": _TOOL, "uniqueItems": True}]}
_FRAGMENT = {"$ref": "#/definitions/fragment"}
_PARTS = {"type": "object", "minProperties": 1, "additionalProperties": {"enum": list(get_args(Part))}}
_PLACE = {"type": "array", "items": [_TOOL, {"type": "string", "minLength": 1}], "minItems": 2, "additionalItems": False}
_SHAPES: dict[Shape, dict[str, Any]] = {
    "tool": _TOOL,
    "tools": _TOOLS,
    "tools_or_all": {"anyOf": [{"const": True}, _TOOL, {"type": "array", "items": _TOOL, "minItems": 1, "uniqueItems": True}]},
    "flag": {"type": "boolean"},
    "count": {"type": "integer", "minimum": 0},
    "positive": {"type": "integer", "minimum": 1},
    "text": _TEXT,
    "number": {"type": "number"},
    "values": {"type": "array", "minItems": 1},
    "places": {"anyOf": [_PLACE, {"type": "array", "items": _PLACE, "minItems": 1}]},
    "named": {"type": "object", "minProperties": 1, "additionalProperties": {"anyOf": [*_TOOLS["anyOf"], _PARTS]}},
    "parameter": {"anyOf": [_TEXT, {"type": "object", "minProperties": 1, "maxProperties": 1, "additionalProperties": _TEXT}]},
    "fragments": {"type": "object", "minProperties": 1, "additionalProperties": _FRAGMENT},
}
_TOP: dict[str, dict[str, Any]] = {
    "version": {"const": 1},
    "description": _SHAPES["text"],
    "tools": {"type": "array", "items": {**_TOOL, "not": {"enum": ["final_answer", "auto", "required", "none"]}}, "uniqueItems": True},
    "final_answer_as_tool": _SHAPES["flag"],
    "rules": {"type": "object", "additionalProperties": {"oneOf": [{"$ref": f"#/definitions/{key}"} for key in KINDS]}},
    "may_fail": _TOOLS,
    "may_be_denied": _TOOLS,
    "max_turns": _SHAPES["positive"],
    "gateway": gateway_schema(_SHAPES["text"]),
}


def schema_text() -> str:
    """The shipped schema."""
    return resources.files("maymust.policyfile").joinpath("schema.json").read_text(encoding="utf-8")


def make_schema() -> dict[str, Any]:
    """The schema as the vocabulary has it."""
    return {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "title": "maymust policy",
        "description": "What an agent may call, must call, and when it may stop.",
        "type": "object",
        "properties": {key: {"description": about, **_TOP[key]} for key, about in TOP.items()},
        "required": list(NEEDED),
        "additionalProperties": False,
        "definitions": {**{key: _kind(kind) for key, kind in KINDS.items()}, "fragment": _fragment()},
    }


def _kind(kind: Kind) -> dict[str, Any]:
    words: dict[str, Word] = {kind.key: kind.target, **kind.words}
    return {
        "description": kind.about,
        "type": "object",
        "properties": {key: {"description": word.about, **_SHAPES[word.shape]} for key, word in words.items()},
        "required": [kind.key, *kind.needed],
        "additionalProperties": False,
    }


def _fragment() -> dict[str, Any]:
    return {
        "description": "What a value has to be: a fragment of JSON Schema.",
        "type": "object",
        "properties": dict.fromkeys(sorted(FRAGMENT_WORDS), True),
        "additionalProperties": False,
    }


def as_text(schema: dict[str, Any]) -> str:
    """A schema as it is shipped."""
    return json.dumps(schema, indent=2, ensure_ascii=False) + "\n"

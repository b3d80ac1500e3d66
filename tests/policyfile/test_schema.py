"""The JSON Schema for editors says what the parser accepts."""

import dataclasses
import json
from pathlib import Path
from typing import Any

import fastjsonschema
import pytest
import yaml

from maymust import AfterUntrustedRequirement, ArgumentRequirement, AskPermissionRequirement, ConditionalRequirement
from maymust.core.fragment import DECIDED
from maymust.policyfile.load import parse_policy
from maymust.policyfile.problem import PolicyFileError
from maymust.policyfile.schema import as_text, make_schema, schema_text
from maymust.policyfile.vocabulary import FRAGMENT_WORDS, KINDS, ONLY_IN_PYTHON, TOP
from tests.policyfile.bad_files import BAD_FILES
from tests.policyfile.test_load import RESEARCH

CLASSES: dict[str, Any] = {
    "conditional": ConditionalRequirement,
    "ask": AskPermissionRequirement,
    "arguments": ArgumentRequirement,
    "after_untrusted": AfterUntrustedRequirement,
}
# What makes a rule of each kind complete, so that each further key can stand alone beside it.
BASES = {
    "conditional": "conditional: a",
    "ask": "ask: a",
    "arguments": "arguments: a, param: x, one_of: [p1]",
    "after_untrusted": "after_untrusted: a",
}
ACCEPTANCE = Path(__file__).parent.parent / "verify" / "acceptance.yaml"
validate = fastjsonschema.compile(make_schema())


def test_the_shipped_schema_is_the_one_the_vocabulary_makes() -> None:
    assert schema_text() == as_text(make_schema())


def test_parser_and_schema_know_the_same_keys() -> None:
    schema = json.loads(schema_text())
    assert set(schema["properties"]) == set(TOP)
    for key, kind in KINDS.items():
        assert set(schema["definitions"][key]["properties"]) == set(kind.keys)
    assert set(schema["definitions"]["fragment"]["properties"]) == FRAGMENT_WORDS


@pytest.mark.parametrize("key", KINDS)
def test_a_rule_has_every_parameter_of_python_but_those_that_are_code(key: str) -> None:
    parameters = {field.name for field in dataclasses.fields(CLASSES[key])}
    assert parameters - ONLY_IN_PYTHON.keys() == set(KINDS[key].words)


def test_every_word_the_core_decides_by_may_stand_in_a_fragment() -> None:
    assert DECIDED <= FRAGMENT_WORDS


def test_good_files_are_good_for_the_schema() -> None:
    validate(yaml.safe_load(RESEARCH))
    for row in yaml.safe_load(ACCEPTANCE.read_text(encoding="utf-8"))["policies"]:
        validate({"version": 1, **{key: row[key] for key in TOP if key in row}})


@pytest.mark.parametrize("bad", [bad for bad in BAD_FILES if bad.code in ("MF007", "MF008")], ids=lambda bad: bad.name)
def test_missing_and_unknown_keys_are_bad_for_the_schema(bad: Any) -> None:
    with pytest.raises(fastjsonschema.JsonSchemaValueException):
        validate(yaml.safe_load(bad.text))


@pytest.mark.parametrize("key", KINDS)
def test_the_parser_takes_every_key_and_no_other(key: str) -> None:
    kind = KINDS[key]
    base = BASES[key]
    values = {"flag": "true", "count": "9", "positive": "2", "number": "1", "text": "p.*", "tools": "[b]", "fragments": "{x: {minimum: 1}}"}
    needs = {"minimum": "arguments: a, param: x", "maximum": "arguments: a, param: x", "last_only": f"{base}, from_argument: [b, y]"}
    values |= {"values": "[p1]", "places": "[b, $.y]", "named": "{a: [x]}", "parameter": "x, only_after: b"}
    for word, meaning in kind.words.items():
        if f"{word}:" not in base:
            rule = f"{needs.get(word, base)}, {word}: {values[meaning.shape]}"
            parse_policy(f"version: 1\ntools: [a, b]\nrules:\n  r: {{{rule}}}\n")
    with pytest.raises(PolicyFileError, match="nonsense is unknown"):
        parse_policy(f"version: 1\ntools: [a, b]\nrules:\n  r: {{{base}, nonsense: 1}}\n")

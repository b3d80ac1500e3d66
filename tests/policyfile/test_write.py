"""From a policy to a file and back."""

from collections.abc import Callable
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from maymust import (
    AfterUntrustedRequirement,
    ApprovalMemory,
    ArgumentRequirement,
    AskPermissionRequirement,
    ConditionalRequirement,
    Policy,
    PolicyError,
    Tool,
    requirement,
)
from maymust.core.tool_spec import RESERVED_NAMES
from maymust.policyfile import dump_policy, parse_policy
from maymust.requirements.exclusive import mutually_exclusive
from tests.core.random_policies import conditional_policies
from tests.policyfile.test_load import RESEARCH

CALM = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])


def test_a_written_policy_reads_like_one_written_by_hand() -> None:
    text = dump_policy(parse_policy(RESEARCH).policy, schema="policy.schema.json")
    assert text == (
        "# yaml-language-server: $schema=policy.schema.json\n"
        "version: 1\n"
        "tools: [think, search, fetch]\n"
        "rules:\n"
        "  think-first: {conditional: think, force_at_step: 1}\n"
        "  must-search: {conditional: search, min_invocations: 1, max_invocations: 5, priority: 20}\n"
        '  fetch-later: {conditional: fetch, only_after: [search], reason: "search first"}\n'
        "  ask-to-fetch: {ask: [fetch], when: {size: {minimum: 100}}, remember_choices: true}\n"
    )


@settings(CALM, max_examples=200)
@given(conditional_policies())
def test_any_policy_of_conditions_comes_back_equal(policy: Policy) -> None:
    again = parse_policy(dump_policy(policy)).policy
    assert again.describe() == policy.describe()


# What a file may hold: no control characters, no lone surrogates.
words = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8).filter(str.strip)


@settings(CALM, max_examples=200)
@given(st.lists(words, min_size=1, max_size=4, unique=True), words, words)
def test_names_and_reasons_of_any_characters_come_back(tools: list[str], name: str, reason: str) -> None:
    assume(not RESERVED_NAMES.intersection(tools))
    policy = Policy([ConditionalRequirement(tools[0], name=name, reason=reason, max_invocations=1)], tools=tools)
    assert parse_policy(dump_policy(policy)).policy.describe() == policy.describe()


@settings(CALM, max_examples=100)
@given(words, words)
def test_what_is_written_is_yaml_to_other_readers_too(tool: str, reason: str) -> None:
    assume(tool not in RESERVED_NAMES)
    policy = Policy([ConditionalRequirement(tool, name="r", reason=reason)], tools=[tool])
    read = yaml.safe_load(dump_policy(policy))
    assert read["tools"] == [tool]
    assert read["rules"]["r"]["reason"] == reason


class Read(Tool):
    """Reads."""

    def run(self) -> str:
        return ""


class ReadMail(Read):
    """Reads mail."""


READERS: list[Any] = [Read(name="read"), ReadMail(name="mail"), ReadMail(name="post"), Read(name="write"), "free"]


def test_a_class_that_stands_for_several_tools_becomes_any_of_them() -> None:
    policy = Policy([ConditionalRequirement("write", only_after=["read", ReadMail])], tools=READERS)
    assert '"conditional:write": {conditional: write, only_after: [read], only_after_any: [mail, post]}' in dump_policy(policy)


@requirement
def never(history: Any) -> None:
    return None


UNWRITABLE: dict[str, Callable[[], Any]] = {
    "custom_checks": lambda: ConditionalRequirement("write", name="r", custom_checks=[lambda history: True]),
    "handler": lambda: AskPermissionRequirement("write", name="r", handler=lambda call: True),
    "ApprovalMemory": lambda: AskPermissionRequirement("write", name="r", remember_in=ApprovalMemory()),
    "function:never": lambda: never,
    "one_of is a function": lambda: ArgumentRequirement("free", "x", name="r", one_of=lambda history: [1]),
    "reads values by a function": lambda: ArgumentRequirement("free", "x", name="r", from_output=("read", lambda output: [output])),
    "its only_after names a class": lambda: ConditionalRequirement("write", name="r", only_after=[ReadMail, ReadMail, "read"]),
    "followed_by": lambda: ConditionalRequirement("write", name="r", followed_by=[ReadMail]),
}


@pytest.mark.parametrize("why", UNWRITABLE)
def test_what_is_code_cannot_be_written(why: str) -> None:
    policy = Policy([UNWRITABLE[why]()], tools=READERS)
    with pytest.raises(PolicyError, match=rf"cannot be written to a policy file: .*{why}"):
        dump_policy(policy)


def test_settings_at_their_default_are_left_out() -> None:
    asking = AskPermissionRequirement(name="everything", always_allow=True, enabled=False)
    policy = Policy([asking], tools=["a"], final_answer_as_tool=False)
    assert dump_policy(policy) == (
        "version: 1\ntools: [a]\nfinal_answer_as_tool: false\nrules:\n  everything: {ask: true, always_allow: true, enabled: false}\n"
    )


def test_rules_on_arguments_come_back_equal() -> None:
    policy = Policy(
        [
            ArgumentRequirement("write", "path", from_argument=("read", "path"), from_output=[("mail", "$.path"), ("post", "$.a[*]")]),
            ArgumentRequirement("write", "size", name="small", minimum=1, maximum=9.5, optional=True, reason="small"),
            ArgumentRequirement("write", "kind", name="kinds", one_of=["a", 1, None, {"x": [True]}], pattern=None, each=True),
            ArgumentRequirement("write", "name", name="named", pattern="[a-z]+|x", priority=3),
        ],
        tools=["read", "mail", "post", "write"],
    )
    text = dump_policy(policy)
    assert "  small: {arguments: write, param: size, minimum: 1, maximum: 9.5, optional: true, reason: small}\n" in text
    assert '  named: {arguments: write, param: name, pattern: "[a-z]+|x", priority: 3}\n' in text
    assert parse_policy(text).policy.describe() == policy.describe()


def test_rules_on_the_same_value_come_back_equal() -> None:
    policy = Policy(
        [
            ConditionalRequirement("write", name="read", only_after=["read"], only_after_any=["mail", "read"], same={"path": "file"}),
            ConditionalRequirement("write", name="once", max_invocations=1, same="path", only_success_invocations=False),
            ConditionalRequirement("read", name="closed", followed_by=["mail"], same="path", priority=3),
            *mutually_exclusive("mail", "write", same="path"),
        ],
        tools=["read", "mail", "write"],
    )
    text = dump_policy(policy)
    assert "  once: {conditional: write, max_invocations: 1, only_success_invocations: false, same: path}\n" in text
    assert '  "exclusive:mail": {conditional: mail, only_before: [write], same: path}\n' in text
    assert parse_policy(text).policy.describe() == policy.describe()


def test_rules_after_untrusted_output_come_back_equal() -> None:
    named = {"send": ["to"], "pay": {"note": "links"}}
    policy = Policy(
        [
            AfterUntrustedRequirement(["send", "pay"], untrusted="mail", unless_named=named, reason="ask"),
            AfterUntrustedRequirement("pay", name="second"),
        ],
        tools=["mail", "send", "pay"],
    )
    text = dump_policy(policy)
    assert "  second: {after_untrusted: [pay]}\n" in text
    assert "    unless_named: {send: {to: all}, pay: {note: links}}\n" in text
    assert parse_policy(text).policy.describe() == policy.describe()

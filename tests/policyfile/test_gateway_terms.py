"""The `gateway:` section of a policy file."""

from __future__ import annotations

import pytest

from maymust.policyfile.gateway_terms import GatewayTerms
from maymust.policyfile.load import parse_policy
from maymust.policyfile.problem import PolicyFileError

HEAD = "version: 1\ntools: [search]\nrules: {}\n"


def test_a_file_without_the_section_has_the_defaults() -> None:
    assert parse_policy(HEAD).gateway == GatewayTerms("run", {}, "refuse", None, "allow")


def test_the_section_is_read() -> None:
    text = "gateway:\n  scope: conversation\n  on_truncated: warn\n  approvals: https://desk.example/ask\n  other_tools: refuse\n"
    assert parse_policy(HEAD + text).gateway == GatewayTerms("conversation", {}, "warn", "https://desk.example/ask", "refuse")


def test_what_has_failed_is_said_for_all_tools_or_for_each() -> None:
    for_all = parse_policy(HEAD + "gateway: {failed_when: ^Error}\n").gateway.failed_when
    assert {tool: pattern.pattern for tool, pattern in for_all.items()} == {None: "^Error"}
    for_each = parse_policy(HEAD + "gateway: {failed_when: {search: ^Error}}\n").gateway.failed_when
    assert {tool: pattern.pattern for tool, pattern in for_each.items()} == {"search": "^Error"}


@pytest.mark.parametrize(
    ("section", "said"),
    [
        ("[]", "gateway has to be a mapping"),
        ("{scop: run}", "the key scop is unknown; did you mean scope?"),
        ("{scope: conversations}", "scope has to be run or conversation"),
        ("{on_truncated: yes}", "on_truncated has to be refuse or warn"),
        ("{failed_when: '('}", "is no regular expression"),
        ("{failed_when: {serach: x}}", "there is no tool called serach"),
        ("{failed_when: {}}", "names no tool"),
        ("{approvals: 'file:///etc/passwd'}", "has to be an http or https URL"),
        ("{approvals: 'http://[x'}", "has to be an http or https URL"),
        ("{other_tools: true}", "other_tools has to be allow or refuse"),
    ],
)
def test_what_is_wrong_in_it_is_said_with_its_place(section: str, said: str) -> None:
    with pytest.raises(PolicyFileError, match="<text>:4:") as caught:
        parse_policy(f"{HEAD}gateway: {section}\n")
    assert said in str(caught.value)

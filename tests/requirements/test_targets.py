"""Every way to name a tool."""

from __future__ import annotations

from typing import Any

import pytest

from maymust.errors import PolicyError
from maymust.requirements.targets import as_targets, resolve, resolve_one


class Spec:
    description = "does it"

    def __init__(self, name: str, function: Any = None) -> None:
        self.name = name
        self.function = function
        self.parameters: dict[str, Any] = {}


class Lookup(Spec):
    pass


class Desk:
    def call(self) -> None: ...


def pay() -> None: ...


DESK = Desk()
TOOLS = (Lookup("search"), Lookup("fetch"), Spec("pay", pay), Spec("call", DESK.call))


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("search", ("search",)),
        ("final_answer", ("final_answer",)),
        (Lookup, ("search", "fetch")),
        (Spec, ("search", "fetch", "pay", "call")),
        (TOOLS[0], ("search",)),
        (Spec("search"), ("search",)),
        (pay, ("pay",)),
        (DESK.call, ("call",)),
    ],
)
def test_a_target_is_found(target: Any, expected: tuple[str, ...]) -> None:
    assert resolve(target, TOOLS, where="x") == expected


@pytest.mark.parametrize(
    ("target", "words"),
    [
        ("serach", "x: there is no tool called serach; did you mean search"),
        ("zebra", "x: there is no tool called zebra; the tools are search, fetch, pay, call, final_answer"),
        (Desk, "x: no tool of the policy is a Desk"),
        (Spec("zebra"), "zebra"),
        (lambda: None, "<lambda>"),
        (Desk().call, "call"),
        (5, "5"),
    ],
)
def test_a_target_that_nobody_is_is_an_error(target: Any, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        resolve(target, TOOLS, where="x")


def test_one_target_of_several_is_an_error_that_names_them() -> None:
    with pytest.raises(PolicyError, match="Lookup stands for search and fetch"):
        resolve_one(Lookup, TOOLS, where="x")


def test_one_target_is_a_list_of_one() -> None:
    assert as_targets(None) == ()
    for single in ("search", Lookup, TOOLS[0], pay):
        assert as_targets(single) == (single,)
    assert as_targets(name for name in ("a", "b")) == ("a", "b")


def test_a_long_list_of_tools_is_cut() -> None:
    with pytest.raises(PolicyError, match="and 9 more"):
        resolve("zebra", [f"t{number}" for number in range(20)], where="x")

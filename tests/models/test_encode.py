"""A permit and what a model can be told become the best of five levels."""

from __future__ import annotations

from typing import Any

import pytest

from maymust.models import Capabilities, Message, ModelRequest, ToolDefinition
from maymust.models.chat_model import Offer
from maymust.models.encode import Encoding, encode

NAMES = ("think", "search", "final_answer")
TOOLS = tuple(ToolDefinition(name, f"Does {name}.", {"type": "object", "properties": {}}) for name in NAMES)
OFFERS = (Offer(1, TOOLS, NAMES),)


def asked(allowed: tuple[str, ...] = NAMES, choice: str = "required", **more: Any) -> ModelRequest:
    return ModelRequest([Message("user", "hi")], TOOLS, allowed, choice, **more)


def names(encoding: Encoding) -> tuple[str, ...]:
    return tuple(tool.name for tool in encoding.tools)


SOME = ("think", "search")
EVERYTHING_OPEN: list[tuple[dict[str, Any], str]] = [({}, "required"), ({"subset": "allowed_tools"}, "required"), ({}, "auto")]


@pytest.mark.parametrize(("told", "choice"), EVERYTHING_OPEN)
def test_when_everything_is_open_the_whole_list_and_a_choice_say_it(told: dict[str, Any], choice: str) -> None:
    encoding = encode(asked(choice=choice), Capabilities(**told))
    assert (encoding.level, names(encoding), encoding.choice, encoding.subset, encoding.enforced_by) == (3, NAMES, choice, None, "provider")


@pytest.mark.parametrize("subset", ["allowed_tools", "allowed_function_names", "grammar"])
def test_a_subset_leaves_the_list_as_it_is_where_the_provider_has_a_word_for_it(subset: Any) -> None:
    encoding = encode(asked(SOME), Capabilities(subset=subset))
    assert (encoding.level, names(encoding), encoding.choice, encoding.subset) == (1, NAMES, "required", SOME)
    assert encoding.enforced_by == "provider"


def test_changes_inside_the_conversation_are_a_subset_when_the_loop_keeps_track_of_them() -> None:
    changing = Capabilities(subset="tool_changes")
    assert encode(asked(SOME, offers=OFFERS), changing).level == 1
    untracked = encode(asked(SOME), changing)
    assert (untracked.level, names(untracked), untracked.enforced_by) == (3, NAMES, "maymust")


def test_without_a_word_for_it_the_list_is_filtered() -> None:
    encoding = encode(asked(SOME), Capabilities(subset="filter"))
    assert (encoding.level, names(encoding), encoding.choice, encoding.enforced_by) == (2, SOME, "required", "provider")


@pytest.mark.parametrize("told", [{"subset": "choice"}, {"subset": "filter", "prefix_bound": True}])
def test_a_list_that_must_not_change_stays_whole_and_the_second_gate_holds_the_rest(told: dict[str, Any]) -> None:
    encoding = encode(asked(SOME), Capabilities(**told))
    assert (encoding.level, names(encoding), encoding.choice, encoding.enforced_by) == (3, NAMES, "required", "maymust")


@pytest.mark.parametrize("subset", ["filter", "choice", "allowed_tools"])
def test_a_named_choice_needs_no_other_list(subset: Any) -> None:
    encoding = encode(asked(("think",), "think"), Capabilities(subset=subset))
    assert (encoding.level, names(encoding), encoding.choice, encoding.subset) == (3, NAMES, "think", None)
    assert encoding.enforced_by == "provider"


def test_where_no_tool_can_be_named_one_is_required_among_one() -> None:
    filtered = encode(asked(("think",), "think"), Capabilities(named_choice=False))
    assert (filtered.level, names(filtered), filtered.choice) == (2, ("think",), "required")
    subset = encode(asked(("think", "final_answer"), "think"), Capabilities(named_choice=False, subset="allowed_tools"))
    assert (subset.level, subset.subset, subset.choice) == (1, ("think",), "required")


def test_a_model_that_rejects_forced_choice_gets_a_narrowed_list_auto_and_the_reason() -> None:
    encoding = encode(asked(("think",), "think"), Capabilities(forced_choice="no"))
    assert (encoding.level, names(encoding), encoding.choice, encoding.enforced_by) == (4, ("think",), "auto", "maymust")
    assert encoding.reason == "You have to call think now."
    some = encode(asked(SOME), Capabilities(forced_choice="no", subset="allowed_tools"))
    assert (some.level, names(some), some.subset, some.choice) == (4, NAMES, SOME, "auto")
    assert some.reason == "Call one of these tools: think, search. A text is not enough."


def test_a_reason_that_the_status_gives_is_not_given_twice() -> None:
    status = "You have to call think now. Not now: search (think first)."
    assert encode(asked(("think",), "think", guidance=status), Capabilities(forced_choice="no")).reason == ""


@pytest.mark.parametrize(("thinks", "level"), [(True, 4), (False, 3)])
def test_whether_a_choice_can_be_forced_may_depend_on_thinking(thinks: bool, level: int) -> None:
    told = Capabilities(forced_choice="not_with_thinking", thinks=thinks)
    assert encode(asked(choice="required"), told).level == level


def test_auto_needs_no_force() -> None:
    encoding = encode(asked(SOME, "auto"), Capabilities(forced_choice="no"))
    assert (encoding.level, names(encoding), encoding.choice, encoding.enforced_by) == (2, SOME, "auto", "provider")


@pytest.mark.parametrize("told", [{"tools": False}, {"tools": False, "json_schema": True}, {"required": False, "json_schema": True}])
def test_without_tools_or_required_the_offer_becomes_an_output_schema(told: dict[str, Any]) -> None:
    encoding = encode(asked(SOME), Capabilities(**told))
    assert (encoding.level, encoding.tools, encoding.text) == (5, (), False)
    assert tuple(tool.name for tool in encoding.output) == SOME
    assert encoding.enforced_by == ("provider" if told.get("json_schema") else "maymust")


def test_a_text_may_be_the_output_where_nothing_has_to_be_called() -> None:
    assert encode(asked(choice="auto"), Capabilities(tools=False)).text


def test_without_required_and_without_schemas_the_reason_is_said() -> None:
    encoding = encode(asked(SOME), Capabilities(required=False))
    assert (encoding.level, encoding.choice, bool(encoding.reason)) == (4, "auto", True)


@pytest.mark.parametrize("told", [{}, {"forced_choice": "no"}, {"subset": "choice"}, {"tools": False}])
def test_none_is_none_everywhere(told: dict[str, Any]) -> None:
    encoding = encode(asked((), "none"), Capabilities(**told))
    assert (encoding.choice, encoding.output, encoding.enforced_by) == ("none", (), "provider")
    assert encode(ModelRequest([Message("user", "hi")]), Capabilities(**told)).tools == ()


def test_what_was_lost_is_not_used_again() -> None:
    told = Capabilities(subset="allowed_tools")
    assert encode(asked(SOME), told.without(["subset"])).level == 2
    assert encode(asked(SOME), told.without(["forced_choice"])).level == 4
    assert encode(asked(SOME), Capabilities(json_schema=True).without(["required"])).level == 5
    assert encode(asked(SOME), told.without(["tools"])).level == 5
    assert told.without([]) is told
    assert Capabilities(subset="tool_changes", prefix_bound=True).without(["subset"]).subset == "choice"
    assert Capabilities(subset="tool_changes", late_system=True).without(["late_system"]).subset == "filter"

"""`assert_permit`: silent when a permit says what is expected, and explaining when it does not."""

import pytest

from maymust import AskPermissionRequirement, ConditionalRequirement, History, Policy, PolicyError, Rule, requirement
from maymust.testing import assert_permit

POLICY = Policy(
    [
        ConditionalRequirement("search", name="search-later", only_after=["think"]),
        ConditionalRequirement("fetch", name="fetch-next", force_after=["search"], min_invocations=1),
        AskPermissionRequirement(["refund"], name="refund-asked"),
    ],
    tools=["think", "search", "fetch", "refund"],
)


@requirement(targets=["think"])
def hide_think(history: History) -> Rule:
    return Rule("think", hidden=True)


def test_a_permit_that_says_all_of_it_passes() -> None:
    permit = POLICY.permit()
    assert_permit(
        permit,
        allows=["think", "fetch"],
        allows_only={"think", "fetch", "refund"},
        asks="refund",
        denies={"search": "think has to succeed first", "final_answer": ["fetch", "before the end"]},
        forces="",
        may_stop=False,
        tool_choice="required",
    )
    assert_permit(permit)


def test_forced_withheld_and_hidden_tools_are_told_apart() -> None:
    assert_permit(POLICY.permit(History().add("think").add("search")), forces="fetch", withholds=["think", "search"], tool_choice="fetch")
    assert_permit(Policy([hide_think], tools=["think"]).permit(), hides="think")


def test_a_failure_says_what_is_and_what_should_be_and_why() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_permit(POLICY.permit(), allows="search")
    assert str(caught.value) == (
        "search is ⊘ denied, and should be allowed\n"
        "    search-later denies search: think has to succeed first (think: 0 ok calls)\n"
        "after History(): <Permit ● think  ⊘ search  ● fetch  ? refund  ⊘ final_answer  tool_choice=required  may not stop>"
    )


@pytest.mark.parametrize(
    ("wanted", "says"),
    [
        ({"allows_only": ["think"]}, "fetch is ● allowed, and should be closed"),
        ({"asks": ["think"]}, "think is ● allowed, and should be asked about\n    no rule speaks of think"),
        ({"denies": ["refund"]}, "refund is ? allowed after a person's yes, and should be denied"),
        ({"denies": {"search": "because"}}, "search is denied, and no reason says 'because'"),
        ({"hides": ["search"]}, "search is ⊘ denied, and should be hidden"),
        ({"withholds": ["search"]}, "search is ⊘ denied, and should be withheld"),
        ({"forces": "think"}, "nothing is forced, and think should be"),
        (
            {"may_stop": True},
            "should\n    fetch-next prevents the end: fetch has to succeed before the end",
        ),
        ({"tool_choice": "auto"}, "tool_choice is required, and should be auto"),
    ],
)
def test_each_word_has_a_failure_of_its_own(wanted: dict[str, object], says: str) -> None:
    with pytest.raises(AssertionError) as caught:
        assert_permit(POLICY.permit(), **wanted)  # type: ignore[arg-type]
    assert says in str(caught.value)


def test_several_differences_are_told_at_once() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_permit(POLICY.permit(), allows=["search"], may_stop=True)
    assert "search is ⊘ denied" in str(caught.value)
    assert "the run may not stop" in str(caught.value)


def test_a_misspelt_tool_is_an_error_and_no_failure() -> None:
    with pytest.raises(PolicyError, match="no tool called serch; did you mean search"):
        assert_permit(POLICY.permit(), denies=["serch"])

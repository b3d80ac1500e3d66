"""What the model reads says why, and what would unlock the call."""

from __future__ import annotations

from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.refusal import refusal
from maymust.requirements.conditional import ConditionalRequirement

TOOLS = ("get_order", "search", "refund")


def refuse(requirement: ConditionalRequirement, name: str, history: History | None = None) -> str:
    permit = Policy([requirement], tools=TOOLS).permit(history or History())
    back = Permit.from_dict(permit.to_dict())
    assert refusal(back, name, back.allowed) == refusal(permit, name, permit.allowed)
    return refusal(permit, name, permit.allowed)


def test_a_denied_tool_names_what_unlocks_it() -> None:
    text = refuse(ConditionalRequirement("refund", only_after=["get_order"]), "refund")
    assert text == "not now: get_order has to succeed first; you may call: get_order, search, final_answer"


def test_an_authors_reason_comes_first_and_what_unlocks_still_follows() -> None:
    text = refuse(ConditionalRequirement("refund", only_after=["get_order"], reason="look before you pay"), "refund")
    assert text == "not now: look before you pay; get_order has to succeed first; you may call: get_order, search, final_answer"


def test_an_answer_that_comes_too_early_names_what_is_owed() -> None:
    text = refuse(ConditionalRequirement("search", min_invocations=2), "final_answer")
    assert text == "not now: search has to succeed 2 times before the end; you may call: get_order, search, refund"


def test_a_withheld_tool_names_the_forced_one() -> None:
    text = refuse(ConditionalRequirement("search", force_at_step=1), "refund")
    assert text == "not now: search has to be called first; you may call: search"


def test_a_tool_that_was_not_on_offer_says_so() -> None:
    permit = Policy([], tools=TOOLS).permit()
    assert refusal(permit, "search", ("refund",)) == "not now: search was not on offer in this turn; you may call: refund"


def test_a_name_without_a_permit_is_unknown() -> None:
    assert refusal(None, "serach", ("search",)) == "there is no tool called 'serach'; did you mean search? you may call: search"
    assert refusal(None, "zebra", ()) == "there is no tool called 'zebra'; no tool may be called now"


def test_a_name_without_end_is_not_said_back_whole() -> None:
    assert len(refusal(None, "n" * 100_000, ("search",))) < 200

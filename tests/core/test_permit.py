"""A permit tells why."""

from __future__ import annotations

import json

import pytest

from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.verdict import Verdict
from maymust.errors import PolicyError
from maymust.requirements.conditional import ConditionalRequirement

POLICY = Policy(
    [
        ConditionalRequirement("search", only_after=["think"], name="order"),
        ConditionalRequirement("search", max_invocations=2, name="limit", priority=20),
        ConditionalRequirement("fetch", force_after=["search"], name="next", force_prevent_stop=False),
        ConditionalRequirement("final_answer", only_after=["fetch"], name="finish", reason="fetch something"),
    ],
    tools=["think", "search", "fetch"],
)


def test_why_lists_the_rules_that_spoke_with_their_evidence() -> None:
    limit, order = POLICY.permit(History().add("think", outcome="failed")).why("search")
    assert (limit.requirement, limit.priority, limit.rule.allowed, limit.evidence) == ("limit", 20, True, "search: 0 ok calls")
    assert (order.requirement, order.rule.reason, order.evidence) == ("order", "think has to succeed first", "think: 0 ok calls")


def test_the_evidence_is_that_of_the_permits_own_history() -> None:
    older = History().add("think")
    permit = POLICY.permit(older)
    older.add("search").add("search")
    assert permit.why("search")[0].evidence == "search: 0 ok calls"


def test_a_withheld_tool_shows_who_forces_the_other() -> None:
    permit = POLICY.permit(History().add("think").add("search"))
    assert permit.verdict("think") is Verdict.WITHHELD
    assert permit.reasons["think"] == ()
    (spoken,) = permit.why("think")
    assert (spoken.requirement, spoken.rule.target, spoken.evidence) == ("next", "fetch", "last ok: search")


def test_the_final_answer_shows_what_prevents_the_end() -> None:
    policy = Policy([ConditionalRequirement("search", min_invocations=1, name="quota")], tools=["search", "think"])
    permit = policy.permit()
    assert [spoken.requirement for spoken in permit.why("final_answer")] == ["quota"]
    assert permit.reasons["final_answer"] == ("search has to succeed before the end",)


def test_it_reads_the_same_from_json_without_the_policy() -> None:
    permit = POLICY.permit(History().add("think").add("search"))
    data = json.loads(json.dumps(permit.to_dict()))
    assert data["steps"] == 2
    history = History().add("think").add("search")
    back = Permit.from_dict(data, history)
    assert back == permit
    assert back.history is history
    assert back.why("think") == permit.why("think")
    assert back.unlocks("final_answer") == permit.unlocks("final_answer") == ("fetch has to succeed first",)


def test_an_unknown_name_is_an_error_with_a_hint() -> None:
    permit = POLICY.permit()
    for ask in (permit.verdict, permit.why):
        with pytest.raises(PolicyError, match="serach; did you mean search"):
            ask("serach")


def test_glyphs_and_words() -> None:
    assert "".join(verdict.glyph for verdict in Verdict) == "★●?⊘○·"
    assert [verdict.word for verdict in Verdict] == ["forced", "allowed", "ask", "denied", "withheld", "hidden"]
    assert repr(POLICY.permit()) == ("<Permit ● think  ⊘ search  ● fetch  ⊘ final_answer  tool_choice=required  may not stop>")


def test_permits_are_compared_by_what_they_say() -> None:
    assert POLICY.permit(History().add("think")) == POLICY.permit(History().add("think").add("think"))
    assert POLICY.permit() != POLICY.permit(History().add("think"))
    assert POLICY.permit() != "a permit"

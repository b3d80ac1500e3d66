"""A step that is read from its call when somebody asks for it is the step that would have been read at once."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.core.history import History
from maymust.core.step import Outcome, Step
from maymust.gateway.conversation import Called, Returned, arguments_of
from maymust.gateway.told_step import ToldStep

ARGUMENTS = (
    st.none() | st.dictionaries(st.text(max_size=3), st.integers()) | st.sampled_from(['{"q": 1}', '{"q": 1, "q": 2}', "[1]", "", "{"])
)
TEXTS = st.sampled_from(['{"id": 5}', "[1", "[1]", "plain", "", "{" * 50_000]) | st.text(max_size=5)


def output_of(text: str) -> Any:
    try:
        return json.loads(text) if text[:1] in ("{", "[") else text
    except (ValueError, RecursionError):
        return text


@given(ARGUMENTS, TEXTS, st.sampled_from([Outcome.OK, Outcome.FAILED]))
@settings(deadline=None)
def test_what_is_read_late_is_what_would_have_been_read_at_once(arguments: Any, text: str, outcome: Outcome) -> None:
    step = ToldStep(Called("c", "t", arguments, returned=Returned("c", text)), outcome)
    plain = Step("t", outcome, arguments_of(arguments), output_of(text) if outcome is Outcome.OK else None, "c", text)
    for _ in range(2):
        assert (step.tool, step.outcome, step.arguments, step.output) == (plain.tool, plain.outcome, plain.arguments, plain.output)
        assert (step.call_id, step.text, step.untrusted) == (plain.call_id, plain.text, plain.untrusted)
    assert step.to_dict() == plain.to_dict()


def test_it_is_a_step_like_any_other() -> None:
    step = ToldStep(Called("c", "t", '{"q": 1}', returned=Returned("c", "[1]")), Outcome.OK)
    plain = Step("t", Outcome.OK, {"q": 1}, [1], "c", "[1]")
    assert step == plain
    assert plain == step
    assert step != replace(plain, tool="other")
    assert History([step]) == History([plain])
    assert repr(step).partition("(")[2] == repr(plain).partition("(")[2]
    with pytest.raises(FrozenInstanceError):
        step.arguments = {}  # type: ignore[misc]


def test_a_call_without_a_result_has_no_text_and_no_output() -> None:
    step = ToldStep(Called("c", "t", None), Outcome.FAILED)
    assert step == Step("t", Outcome.FAILED, None, None, "c", None)

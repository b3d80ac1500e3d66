"""What a rule says of the fields of the final answer holds, however the answer is given."""

from __future__ import annotations

import pytest

from maymust import Agent, History, Rule, requirement
from maymust.models import ScriptedModel, call


@requirement(name="short", targets=["final_answer"])
def short(history: History) -> Rule:
    return Rule("final_answer", arguments={"answer": {"enum": ["yes", "no"]}}, reason="yes or no")


@pytest.mark.parametrize("in_text", [False, True])
def test_a_rule_on_the_fields_of_the_answer_holds_for_calls_and_for_texts(in_text: bool) -> None:
    turns = (
        ["well, it depends", "yes"] if in_text else [call("final_answer", answer="well, it depends"), call("final_answer", answer="yes")]
    )
    result = Agent(ScriptedModel(turns), requirements=[short]).run_sync("Is it?")
    assert result.answer == "yes"
    assert len(result.turns) == 2
    told = " ".join(message.text for message in result.state.messages)
    assert "(yes or no)" in told

"""What a rule says of the fields of the final answer holds, however the answer is given."""

from __future__ import annotations

from typing import Any

import pytest

from maymust import Agent, ConditionalRequirement, History, Rule, requirement, tool
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


@tool
async def look() -> str:
    """Look."""
    return "seen"


@pytest.mark.parametrize(("answer", "as_tool"), [(call("final_answer", answer="yes"), True), ("yes", True), ("yes", False)])
def test_an_answer_that_was_forced_and_given_is_not_unmet(answer: Any, as_tool: bool) -> None:
    forced = ConditionalRequirement("final_answer", force_after=["look"])
    agent = Agent(ScriptedModel([call("look"), answer]), tools=[look], requirements=[forced], final_answer_as_tool=as_tool)
    result = agent.run_sync("Is it?")
    assert (result.answer, result.unmet) == ("yes", ())


def test_what_else_a_requirement_owes_is_unmet_beside_an_answer_that_it_forces() -> None:
    @requirement(name="both", targets=["final_answer", "look"])
    def both(history: History) -> list[Rule]:
        return [Rule("final_answer", forced=True), Rule("look", prevent_stop=True)]

    result = Agent(ScriptedModel([call("final_answer", answer="yes")]), tools=[look], requirements=[both]).run_sync("Is it?")
    assert (result.answer, result.unmet) == ("yes", ("both",))

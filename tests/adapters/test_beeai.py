"""BeeAI's requirement objects, converted: the same parameters, the same permits, and a warning where something differs."""

from __future__ import annotations

import asyncio
import random
import warnings
from typing import Any

import pytest

pytest.importorskip("beeai_framework", reason="the converter needs beeai-framework")

from beeai_framework.agents.requirement.requirements.ask_permission import AskPermissionRequirement as BeeAsk
from beeai_framework.agents.requirement.requirements.conditional import ConditionalRequirement as BeeConditional
from beeai_framework.agents.requirement.requirements.requirement import Requirement as BeeRequirement
from beeai_framework.agents.requirement.utils._tool import FinalAnswerTool
from beeai_framework.tools import tool as bee_tool
from beeai_framework.tools.think import ThinkTool as BeeThink
from pydantic import BaseModel, Field

from maymust import Agent, ConditionalRequirement, History, Policy, RunView, tool
from maymust.adapters.beeai import BeeAIDifference, from_beeai, policy_from_beeai
from maymust.errors import UnsupportedRuleError
from maymust.models import ScriptedModel, call

pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::UserWarning")


@bee_tool
def search(q: str) -> str:
    """Search."""
    return "found"


@bee_tool
def refund(amount: int) -> str:
    """Refund."""
    return "refunded"


TOOLS = [BeeThink(), search, refund]


def test_every_parameter_moves_over() -> None:
    made = BeeConditional(
        "search",
        name="mine",
        force_at_step=3,
        only_before=[refund],
        only_after=[BeeThink],
        force_after=["think"],
        force_prevent_stop=False,
        min_invocations=1,
        max_invocations=4,
        only_success_invocations=False,
        consecutive_allowed=False,
        priority=7,
        reason="because",
    )
    ours = ConditionalRequirement(
        "search",
        name="mine",
        force_at_step=3,
        only_before=["refund"],
        only_after=["think"],
        force_after=["think"],
        force_prevent_stop=False,
        min_invocations=1,
        max_invocations=4,
        only_success_invocations=False,
        consecutive_allowed=False,
        priority=7,
        reason="because",
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        converted = policy_from_beeai([made], TOOLS)
    assert converted.describe() == Policy([ours], tools=["think", "search", "refund"]).describe()


def test_final_answer_is_recognised_in_each_form() -> None:
    policy = policy_from_beeai([BeeConditional(FinalAnswerTool, only_after=[search])], TOOLS)
    assert not policy.permit(History()).may_stop
    assert policy.permit(History().add("search")).may_stop


def test_only_before_by_itself_is_warned_about() -> None:
    with pytest.warns(BeeAIDifference, match="only_before only beside only_after"):
        from_beeai([BeeConditional("search", only_before=["refund"])], TOOLS)


def test_custom_checks_see_the_steps() -> None:
    made = BeeConditional(
        "refund", custom_checks=[lambda state: len([step for step in state.steps if step.tool is search and not step.error])]
    )
    with pytest.warns(BeeAIDifference, match="see the steps"):
        policy = policy_from_beeai([made], TOOLS)
    assert policy.permit(History().add("search", outcome="failed")).denied == ("refund",)
    assert policy.permit(History().add("search")).denied == ()


@pytest.mark.parametrize("says", [True, False])
def test_questions_go_to_the_same_handler(says: bool) -> None:
    asked: list[Any] = []

    def handler(tool: Any, given: dict[str, Any]) -> bool:
        asked.append((tool, given))
        return says

    with pytest.warns(BeeAIDifference, match="is no invocation here"):
        rules = from_beeai([BeeAsk([refund], handler=handler)], TOOLS)

    @tool(name="refund")
    def ours(amount: int) -> str:
        """Refund."""
        return "refunded"

    result = Agent(ScriptedModel([call("refund", amount=5), "done"]), tools=[ours], requirements=rules).run_sync("Go.")
    assert asked == [(refund, {"amount": 5})]
    assert [step.outcome.value for step in result.steps][:1] == ["ok" if says else "denied"]


def test_remembered_choices_are_warned_about() -> None:
    with pytest.warns(BeeAIDifference, match="remember_in"):
        (made,) = from_beeai([BeeAsk(remember_choices=True, hide_disallowed=True)], TOOLS)
    assert (made.include, made.priority, made.remember_choices, made.hide_disallowed) == (None, 11, True, True)


class State(BaseModel):
    steps: list[Any] = Field(exclude=True)


class Own(BeeRequirement[Any]):
    name = "own"

    def run(self, state: Any) -> Any:
        raise NotImplementedError


def test_classes_of_ones_own_are_refused_or_left_out() -> None:
    with pytest.raises(UnsupportedRuleError, match=r"own: Own is a class of your own; .*@maymust.requirement"):
        from_beeai([Own()])
    with pytest.warns(BeeAIDifference, match="left out"):
        assert from_beeai([Own()], strict=False) == []


def test_random_requirements_say_the_same_on_both_sides() -> None:
    from beeai_framework.agents.requirement.types import RequirementAgentRunStateStep
    from beeai_framework.errors import FrameworkError

    chance, compared = random.Random(5), 0
    names = {"think": TOOLS[0], "search": search, "refund": refund}

    async def theirs(made: Any, steps: list[tuple[str, bool]]) -> tuple[bool, bool, bool] | None:
        state = State(
            steps=[
                RequirementAgentRunStateStep.model_construct(tool=names[name], error=None if good else FrameworkError("bad"), ability=None)
                for name, good in steps
            ]
        )
        made._source_tool = names[made.source]
        try:
            (rule,) = await made.run(state)
        except FrameworkError:
            return None
        return rule.allowed, rule.forced, rule.prevent_stop

    async def main() -> int:
        compared = 0
        for _ in range(300):
            after = chance.sample(["think", "refund"], chance.randint(0, 2))
            options: dict[str, Any] = {
                "only_after": after,
                "min_invocations": chance.choice([None, 1, 2]),
                "max_invocations": chance.choice([None, 2, 3]),
                "consecutive_allowed": chance.random() < 0.5,
                "only_success_invocations": chance.random() < 0.5,
                "force_after": chance.sample(["think", "refund"], chance.randint(0, 1)),
            }
            made = BeeConditional("search", **options)
            (ours,) = policy_from_beeai([made], TOOLS).requirements
            steps = [(chance.choice(list(names)), chance.random() < 0.7) for _ in range(chance.randint(0, 5))]
            history = History()
            for name, good in steps:
                history = history.add(name, outcome="ok" if good else "failed")
            (rule,) = ours.rules(history, RunView())
            expected = await theirs(made, steps)
            if expected is not None:
                compared += 1
                assert (rule.allowed, rule.forced, rule.prevent_stop) == expected, (options, steps)
        return compared

    compared = asyncio.run(main())
    assert compared > 250

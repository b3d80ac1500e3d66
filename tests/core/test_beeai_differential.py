"""The fold and the conditional requirement against those of BeeAI 0.1.85, whose semantics they refine.

Run it with `pip install beeai-framework==0.1.85`. Both sides get the same requirements and the same history, and have to agree on
everything but these differences:

only_before alone      BeeAI looks at `only_before` only where there is an `only_after`
reason order           BeeAI keeps one reason per tool, the last one, also of rules that deny nothing
hidden final answer    BeeAI's `can_stop` (and its `auto`) looks at `prevent_stop` only, not at a final answer that is denied or hidden
force reopens          in BeeAI a forced tool opens the final answer beside it, also where a rule closes it
dropped force          BeeAI drops the force on a closed tool without a word, we raise ConflictError
"""

from __future__ import annotations

import asyncio
import importlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import pytest

from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import ConflictError, DeadEndError, ForceUnmetError, PolicyError
from maymust.requirements.conditional import ConditionalRequirement

pytest.importorskip("beeai_framework", reason="the differential test needs beeai-framework==0.1.85")


def beeai(module: str) -> Any:
    """A module of the peer. Imported by name, since the type checker's environment does not have it."""
    return importlib.import_module(f"beeai_framework.{module}")


errors, tools_of = beeai("errors"), beeai("tools")
conditional, requirement = beeai("agents.requirement.requirements.conditional"), beeai("agents.requirement.requirements.requirement")
types, reasoning = beeai("agents.requirement.types"), beeai("agents.requirement.utils._llm")

TOOLS = ("a", "b", "c")
TARGETS = (*TOOLS, FINAL_ANSWER)
CASES = 1500

# BeeAI's logger and emitters are older than some warnings of the interpreter.
pytestmark = pytest.mark.filterwarnings("ignore")

Entry = tuple[int, list[dict[str, Any]]]
"""A requirement that always gives the same rules: its priority, and the switches of each rule."""


@dataclass(frozen=True)
class Case:
    """What both sides are asked."""

    entries: Sequence[Entry]
    conditionals: Sequence[dict[str, Any]]
    steps: Sequence[tuple[str, bool]]
    final_answer_as_tool: bool


def random_case(chance: random.Random) -> Case:
    entries = [(chance.randint(1, 3), [random_rule(chance) for _ in range(chance.randint(0, 2))]) for _ in range(chance.randint(0, 3))]
    conditionals = [random_conditional(chance) for _ in range(chance.randint(0, 3))]
    steps = [(chance.choice(TOOLS), chance.random() < 0.75) for _ in range(chance.randint(0, 5))]
    return Case(entries, conditionals, steps, chance.random() < 0.7)


def random_rule(chance: random.Random) -> dict[str, Any]:
    forced = chance.random() < 0.25
    return {
        "target": chance.choice(TARGETS),
        "allowed": forced or chance.random() < 0.7,
        "hidden": not forced and chance.random() < 0.15,
        "forced": forced,
        "prevent_stop": chance.random() < 0.2,
        "reason": chance.choice((None, "one", "two")),
    }


def random_conditional(chance: random.Random) -> dict[str, Any]:
    target = chance.choice(TARGETS)
    others = [name for name in TOOLS if name != target]

    def some(likely: float) -> list[str]:
        return chance.sample(others, chance.randint(1, len(others))) if chance.random() < likely else []

    after = some(0.4)
    return {
        "target": target,
        "only_after": after,
        # Alone it means nothing to BeeAI: the difference "only_before alone".
        "only_before": [name for name in some(0.5) if name not in after] if after else [],
        "force_after": some(0.2),
        "force_at_step": chance.choice((None, None, None, 1, 2)),
        "min_invocations": chance.choice((None, 0, 1)),
        "max_invocations": chance.choice((None, 1, 2)),
        "only_success_invocations": chance.random() < 0.6,
        "consecutive_allowed": chance.random() < 0.6,
        "force_prevent_stop": chance.random() < 0.6,
        "priority": chance.randint(1, 3),
        "reason": chance.choice((None, "because")),
    }


class Says:
    """Our requirement that always gives the same rules."""

    def __init__(self, name: str, entry: Entry) -> None:
        self.name = name
        self.priority, self.given = entry

    def rules(self, history: History, run: Any) -> list[Rule]:
        return [Rule(**switches) for switches in self.given]


def ours(case: Case) -> Permit | str:
    requirements: list[Any] = [Says(f"says{number}", entry) for number, entry in enumerate(case.entries)]
    history = History()
    for tool, ok in case.steps:
        history = history.add(tool, outcome="ok" if ok else "failed")
    try:
        requirements += [ConditionalRequirement(**settings) for settings in case.conditionals]
        return Policy(requirements, tools=TOOLS, final_answer_as_tool=case.final_answer_as_tool).permit(history)
    except (ConflictError, DeadEndError, ForceUnmetError, PolicyError) as error:
        return type(error).__name__


def bee_says(entry: Entry) -> Any:
    """Theirs."""

    def says(state: Any, context: Any) -> list[Any]:
        return [requirement.Rule(**switches) for switches in entry[1]]

    made = requirement.requirement(name="says")(says)
    made.priority = entry[0]
    return made


async def theirs(case: Case) -> Any:
    tools = {name: named_tool(name) for name in TOOLS}
    state = types.RequirementAgentRunState(result=None, memory=beeai("memory").UnconstrainedMemory(), iteration=0, steps=[])
    final = beeai("agents.requirement.utils._tool").FinalAnswerTool(None, state)
    for number, (name, ok) in enumerate(case.steps):
        output, error = tools_of.StringToolOutput("x"), None if ok else tools_of.ToolError("failed")
        step = types.RequirementAgentRunStateStep(id=str(number), iteration=number, tool=tools[name], input={}, output=output, error=error)
        state.steps.append(step)
    try:
        requirements = [bee_says(entry) for entry in case.entries]
        requirements += [conditional.ConditionalRequirement(**settings) for settings in case.conditionals]
        context = beeai("context").RunContext(Instance(), signal=None)
        reasoner = reasoning.RequirementsReasoner(tools=list(tools.values()), final_answer=final, context=context)
        await reasoner.update(requirements)
    except ValueError:
        return "PolicyError"
    try:
        return await reasoner.create_request(state, force_tool_call=case.final_answer_as_tool)
    except beeai("agents.errors").AgentError:
        return "DeadEndError"
    except errors.FrameworkError as error:
        return "ForceUnmetError" if "cannot be executed at step" in error.explain() else error.explain()


class Instance:
    """What their context wants of whoever runs."""

    emitter = beeai("emitter").Emitter.root()


def named_tool(name: str) -> Any:
    tool = beeai("tools.think").ThinkTool()
    tool.name = name
    return tool


def explain_difference(mine: Permit | str, other: Any) -> str | None:
    """The name of the difference between two answers, None when there is none, `unknown` when it is none of those named."""
    if isinstance(mine, str) or isinstance(other, str):
        if mine == other:
            return None
        words = mine if isinstance(mine, str) else "a permit", other if isinstance(other, str) else "a request"
        return "dropped force" if mine == "ConflictError" else f"unknown: {words}"
    allowed = tuple(sorted(tool.name for tool in other.allowed_tools))
    if tuple(sorted(mine.allowed)) != allowed:
        reopened = mine.forced is not None and set(allowed) - set(mine.allowed) == {FINAL_ANSWER} and not mine.may_stop and not mine.owed
        return "force reopens" if reopened else "unknown: allowed"
    if {tool.name for tool in other.hidden_tools} != set(mine.hidden):
        return "unknown: hidden"
    choice = other.tool_choice if isinstance(other.tool_choice, str) else other.tool_choice.name
    closed_final = FINAL_ANSWER in (*mine.denied, *mine.hidden) and not mine.owed
    if choice != mine.tool_choice:
        return "hidden final answer" if closed_final and (choice, mine.tool_choice) == ("auto", "required") else "unknown: tool_choice"
    if other.can_stop != mine.may_stop:
        # Theirs says "may not stop" also beside a forced final answer, where there is nothing left but to stop.
        return "hidden final answer" if closed_final or mine.forced == FINAL_ANSWER else "unknown: may_stop"
    return reason_difference(mine, other)


def reason_difference(mine: Permit, other: Any) -> str | None:
    """Theirs is one of ours, where a tool is closed by somebody who gave a reason."""
    for tool in other.tools:
        said = other.reason_by_tool.get(tool)
        given = [spoken.rule.reason for spoken in mine.why(tool.name) if spoken.rule.target == tool.name and spoken.rule.reason]
        if said is not None and said not in given:
            return "unknown: reason"
        if said is not None and (said,) != mine.reasons[tool.name][:1]:
            return "reason order"
    return None


def test_both_agree_but_for_the_named_differences() -> None:
    async def compare() -> dict[str, int]:
        chance = random.Random(2185)
        found: dict[str, int] = {}
        for _ in range(CASES):
            case = random_case(chance)
            difference = explain_difference(ours(case), await theirs(case))
            assert difference is None or not difference.startswith("unknown"), f"{difference}: {case}"
            found[difference or "none"] = found.get(difference or "none", 0) + 1
        return found

    found = asyncio.run(compare())
    assert found["none"] > CASES / 3
    assert set(found) == {"none", "reason order", "hidden final answer", "force reopens", "dropped force"}


def test_only_before_alone_is_the_difference_it_is_said_to_be() -> None:
    case = Case([], [{"target": "a", "only_before": ["b"]}], [("b", True)], True)
    mine, other = ours(case), asyncio.run(theirs(case))
    assert isinstance(mine, Permit)
    assert "a" in mine.denied
    assert "a" in [tool.name for tool in other.allowed_tools]

"""Random rules, policies and histories, for the property tests of the core."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from hypothesis import strategies as st

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PolicyError
from maymust.requirements.conditional import ConditionalRequirement

TOOLS = ("a", "b", "c", "d")
TARGETS = (*TOOLS, FINAL_ANSWER)

outcomes = st.sampled_from(list(Outcome))
steps = st.tuples(st.sampled_from((*TOOLS, "stranger")), outcomes)


def history_of(words: Sequence[tuple[str, Outcome]]) -> History:
    history = History()
    for tool, outcome in words:
        history = history.add(tool, outcome=outcome)
    return history


histories = st.lists(steps, max_size=12).map(history_of)
likely_steps = st.tuples(st.sampled_from(TOOLS), st.sampled_from((Outcome.OK, Outcome.OK, Outcome.OK, Outcome.FAILED)))
busy_histories = st.lists(likely_steps, min_size=6, max_size=16).map(history_of)
"""Histories in which much has happened: most of what rules wait for comes about in them."""

fragments: st.SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"type": "integer", "minimum": 3},
        {"type": "integer", "maximum": 2},
        {"enum": [1, 2]},
        {"enum": []},
        {"const": 2},
        {"type": "string", "minLength": 2},
    ]
)


@st.composite
def rules(draw: st.DrawFn, target: str | None = None) -> Rule:
    forced = draw(st.sampled_from((False, False, True)))
    name = target or draw(st.sampled_from(TARGETS))
    return Rule(
        name,
        allowed=forced or draw(st.booleans()),
        hidden=not forced and draw(st.sampled_from((False, False, True))),
        forced=forced,
        prevent_stop=draw(st.sampled_from((False, False, True))),
        reason=draw(st.sampled_from((None, "one", "two", "three"))),
        ask=name != FINAL_ANSWER and draw(st.booleans()),
        arguments={"x": draw(fragments)} if draw(st.sampled_from((False, False, True))) else None,
    )


class Says:
    """A requirement that gives the same rules in every history."""

    def __init__(self, name: str, priority: int, given: Sequence[Rule], lapses_force: bool = False) -> None:
        self.name = name
        self.priority = priority
        self.given = list(given)
        self.lapses_force = lapses_force

    def rules(self, history: History, run: Any) -> list[Rule]:
        return self.given

    def __repr__(self) -> str:
        return f"Says({self.name!r}, {self.priority}, {self.given!r})"


@st.composite
def sayings(draw: st.DrawFn, at_most: int = 4, lapsing: bool = True) -> list[Says]:
    return [
        Says(
            f"r{number}",
            draw(st.integers(1, 3)),
            draw(st.lists(rules(), max_size=3)),
            lapsing and draw(st.sampled_from((False, False, True))),
        )
        for number in range(draw(st.integers(0, at_most)))
    ]


@st.composite
def conditionals(draw: st.DrawFn, tools: Sequence[str] = TOOLS) -> ConditionalRequirement:
    """A conditional requirement that can be constructed; whether it can be bound is seen by the policy."""
    target = draw(st.sampled_from((*tools, FINAL_ANSWER)))
    others = st.lists(st.sampled_from([tool for tool in tools if tool != target]), max_size=2, unique=True)
    most = draw(st.sampled_from((None, None, 0, 1, 2, 3)))
    least = draw(st.sampled_from((None, None, 1, 2)))
    least = least if most is None or least is None or least <= most else None
    return ConditionalRequirement(
        target,
        force_at_step=draw(st.sampled_from((None, None, 1, 2, 3))),
        only_before=draw(others) if draw(st.booleans()) else (),
        only_after=draw(others),
        force_after=draw(others) if draw(st.booleans()) else (),
        force_prevent_stop=draw(st.booleans()),
        min_invocations=least,
        max_invocations=most,
        only_after_any=draw(others) if draw(st.booleans()) else (),
        max_attempts=draw(st.sampled_from((None, None, None, least or 0, (least or 0) + 1))),
        cooldown=draw(st.sampled_from((None, None, 1, 2))),
        followed_by=draw(others) if draw(st.booleans()) else (),
        only_success_invocations=draw(st.booleans()),
        consecutive_allowed=draw(st.booleans()),
        priority=draw(st.integers(1, 3)),
        reason=draw(st.sampled_from((None, None, "because"))),
    )


@st.composite
def conditional_policies(draw: st.DrawFn, at_most: int = 6) -> Policy:
    kept: list[ConditionalRequirement] = []
    for requirement in draw(st.lists(conditionals(), max_size=at_most)):
        try:
            Policy([requirement], tools=TOOLS)
        except PolicyError:
            continue
        kept.append(requirement)
    return Policy(kept, tools=TOOLS, final_answer_as_tool=draw(st.booleans()))

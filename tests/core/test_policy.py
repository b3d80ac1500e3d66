"""A policy checks what it is made of, and asks its requirements fairly."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.core.verdict import Extra
from maymust.errors import ConflictError, DeadEndError, ForceUnmetError, PermitError, PolicyError
from maymust.requirements.conditional import ConditionalRequirement
from maymust.requirements.custom import requirement
from tests.core.random_policies import Says, busy_histories, conditional_policies

TOOLS = ("think", "search")


class Spec:
    """A tool of nobody's library."""

    description = "does it"

    def __init__(self, name: str, **properties: Any) -> None:
        self.name = name
        self.parameters: dict[str, Any] = {"type": "object", "properties": properties}


def test_a_policy_without_rules_has_one_permit_per_tool_set() -> None:
    policy = Policy([], tools=TOOLS)
    assert policy.permit(History().add("think")) is policy.permit()
    assert policy.permit(present=["think"]).tools == ("think", "final_answer")
    present = (Spec("a"), Spec("b"))
    assert policy.permit(present=present) is policy.permit(History().add("a"), present=present)
    assert Policy([ConditionalRequirement("think", enabled=False)], tools=TOOLS).permit().allowed == (*TOOLS, "final_answer")


@pytest.mark.parametrize(
    ("tools", "words"),
    [
        (["a", "a"], "two tools are called a"),
        (["final_answer"], "final_answer"),
        (["auto"], "auto"),
        (["required"], "required"),
        (["none"], "none"),
        ([""], "needs a name"),
        ([7], "7 is no tool"),
        ("think", "lists"),
    ],
)
def test_tools_that_cannot_be_are_refused(tools: Any, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        Policy([], tools=tools)


@pytest.mark.parametrize(
    ("one", "words"),
    [
        (object(), "is no requirement"),
        (Says, "is no requirement"),
        (Says("limit", 0, []), "limit: priority"),
        (Says("limit", True, []), "limit: priority"),
        (Says("limit", 1.5, []), "limit: priority"),  # type: ignore[arg-type]
        (Says(5, 1, []), "name of a requirement"),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_requirement_is_refused(one: Any, words: str) -> None:
    with pytest.raises(PolicyError, match=words):
        Policy([one], tools=TOOLS)


def test_a_misspelt_target_is_an_error_with_a_hint() -> None:
    with pytest.raises(PolicyError, match=r"limit: target: there is no tool called serach; did you mean search\?"):
        Policy([ConditionalRequirement("serach", name="limit")], tools=TOOLS)
    with pytest.raises(PolicyError, match="gate speaks of a tool called serach, which the policy does not know; did you mean search"):
        Policy([Says("gate", 1, [Rule("serach")])], tools=TOOLS).permit()


def test_names_are_made_unique() -> None:
    policy = Policy(
        [ConditionalRequirement("search", max_invocations=0), ConditionalRequirement("search"), Says("x", 1, []), Says("x", 1, [])],
        tools=TOOLS,
    )
    assert [one.name for one in policy.requirements] == ["conditional:search", "conditional:search#2", "x", "x#2"]
    assert policy.permit().why("search")[1].requirement == "conditional:search#2"


def test_rules_may_name_a_tool_by_its_object() -> None:
    spec = Spec("pay")
    permit = Policy([Says("gate", 1, [Rule(spec, allowed=False)])], tools=[spec]).permit()
    assert permit.denied == ("pay",)


def test_what_a_requirement_gives_is_checked() -> None:
    def given(value: Any) -> Policy:
        return Policy([requirement(name="odd")(lambda history: value)], tools=TOOLS)

    for value in (5, "think", {"target": "think"}, [Rule("think"), "search"]):
        with pytest.raises(PolicyError, match="odd has to give rules"):
            given(value).permit()
    assert given(None).permit().allowed == (*TOOLS, "final_answer")
    assert given(Rule("think", allowed=False)).permit().denied == ("think",)
    assert given(Rule(name, allowed=False) for name in TOOLS).permit().denied == TOOLS


def test_a_requirement_that_raises_is_named() -> None:
    def broken(history: History) -> list[Rule]:
        raise KeyError("order")

    with pytest.raises(PolicyError, match="requirement broken raised KeyError: 'order'"):
        Policy([requirement()(broken)], tools=TOOLS).permit()


def test_an_async_requirement_works_only_where_somebody_waits() -> None:
    async def later(history: History) -> list[Rule]:
        return [Rule("think", allowed=False)]

    policy = Policy([requirement()(later)], tools=TOOLS)
    with pytest.raises(PolicyError, match="later is async"):
        policy.permit()
    assert policy.permit(given={"later": [Rule("think", allowed=False)]}).denied == ("think",)
    assert [one.name for one in policy.opaque] == ["later"]


def test_each_requirement_sees_its_own_memory_and_is_asked_once() -> None:
    seen: list[tuple[str, dict[str, Any]]] = []

    class Remembers:
        def __init__(self, name: str) -> None:
            self.name = name

        def rules(self, history: History, run: RunView) -> list[Rule]:
            seen.append((self.name, run.memory))
            return []

    policy = Policy([Remembers("one"), Remembers("two")], tools=TOOLS)
    policy.permit(memories={"one": {"n": 1}, "two": {"n": 2}})
    assert seen == [("one", {"n": 1}), ("two", {"n": 2})]
    seen.clear()
    policy.permit(memories={"one": {"n": 1}})
    assert seen == [("one", {"n": 1}), ("two", {})]


def test_requirements_see_the_run() -> None:
    seen: list[RunView] = []

    class Looks:
        def rules(self, history: History, run: RunView) -> None:
            seen.append(run)

    policy = Policy([Looks()], tools=TOOLS)
    policy.permit(run=RunView(metadata={"user": "ada"}, deps="db", now=5.0), present=["search"])
    (run,) = seen
    assert (run.tools, run.metadata, run.deps, run.now) == (("search",), {"user": "ada"}, "db", 5.0)


def test_rules_on_an_absent_tool_keep_their_prevent_stop_and_nothing_else() -> None:
    policy = Policy([ConditionalRequirement("search", force_at_step=1, min_invocations=1)], tools=TOOLS)
    permit = policy.permit(present=["think"])
    assert (permit.allowed, permit.forced, permit.owed) == (("think",), None, ("conditional:search",))
    assert permit.reasons["final_answer"] == ("search has to be called now",)
    assert permit.tools == ("think", "final_answer")


def test_a_force_that_cannot_be_met_is_no_error_where_its_tool_is_absent_or_obligations_are_relaxed() -> None:
    policy = Policy([ConditionalRequirement("search", force_at_step=1, only_after=["think"], min_invocations=1)], tools=TOOLS)
    with pytest.raises(ForceUnmetError) as caught:
        policy.permit()
    assert (caught.value.tool, caught.value.step, caught.value.check) == ("search", 1, "only_after")
    assert (caught.value.requirement, caught.value.rule.allowed) == ("conditional:search", False)
    assert policy.permit(present=["think"]).owed == ("conditional:search",)
    for _ in range(3):
        relaxed = policy.permit(relaxed=True)
        assert (relaxed.denied, relaxed.owed, relaxed.relaxed) == (("search",), (), ("conditional:search",))


def test_tools_the_policy_does_not_know_may_be_present() -> None:
    policy = Policy([ConditionalRequirement("search", max_invocations=0)], tools=TOOLS)
    permit = policy.permit(present=["late", "search", "final_answer"])
    assert (permit.allowed, permit.denied) == (("late", "final_answer"), ("search",))


def test_two_present_tools_of_one_name_are_an_error() -> None:
    with pytest.raises(PolicyError, match="two tools are called late"):
        Policy([], tools=TOOLS).permit(present=["late", "late"])


def test_extra_rules_are_folded_each_time_anew_but_found_again() -> None:
    policy = Policy([ConditionalRequirement("search", force_at_step=1)], tools=TOOLS)
    for _ in range(3):
        extra = (Extra("guard", Rule("search", allowed=False, reason="enough"), lapses_force=True),)
        assert policy.permit(extra=extra).lapsed == (("search", "conditional:search"),)
        assert policy.permit().forced == "search"
        with pytest.raises(ConflictError):
            policy.permit(extra=(Extra("guard", Rule("search", allowed=False, reason="enough")),))


def test_the_permit_of_a_dead_end_can_be_read() -> None:
    policy = Policy([ConditionalRequirement("search", name="twice", min_invocations=2, consecutive_allowed=False)], tools=["search"])
    with pytest.raises(DeadEndError, match="twice") as caught:
        policy.permit(History().add("search"))
    assert caught.value.requirements == ("twice",)
    assert caught.value.permit.denied == ("search", "final_answer")


def test_the_hash_follows_names_parameters_and_schemas() -> None:
    def policy(limit: int, *, bound: int = 5, version: str | None = None) -> Policy:
        own = requirement(name="own", version=version)(lambda history: None)
        return Policy([ConditionalRequirement("pay", max_invocations=limit), own], tools=[Spec("pay", amount={"maximum": bound})])

    assert policy(1).hash == policy(1).hash
    assert len({policy(1).hash, policy(2).hash, policy(1, bound=6).hash, policy(1, version="2").hash}) == 4
    assert policy(1).describe() == {
        "tools": ["pay"],
        "final_answer_as_tool": True,
        "requirements": [
            {"name": "conditional:pay", "priority": 10, "enabled": True, "kind": "conditional", "target": "pay", "max_invocations": 1},
            {"name": "own", "priority": 10, "enabled": True, "kind": "function:<lambda>"},
        ],
    }


@settings(max_examples=150, deadline=None)
@given(st.one_of(conditional_policies(at_most=2), conditional_policies()), st.lists(busy_histories, min_size=2, max_size=4))
def test_a_warm_policy_says_what_a_fresh_one_says(policy: Policy, seen: list[History]) -> None:
    """Nothing that is kept between permits may leak from one history into another."""

    def asked(one: Policy, history: History) -> Permit | str:
        try:
            return one.permit(history)
        except PermitError as error:
            return str(error)

    for history in (History(steps[:length]) for steps in seen for length in range(len(steps) + 1)):
        fresh = Policy([Renewed(one) for one in policy.requirements], tools=policy.tools, final_answer_as_tool=policy.final_answer_as_tool)
        assert asked(policy, history) == asked(fresh, history)


class Renewed:
    """A bound requirement without its guard: asked each time, and remembered by nobody."""

    def __init__(self, bound: Any) -> None:
        self.name, self.priority = bound.name, bound.priority
        self._bound = bound.named(bound.name)

    def rules(self, history: History, run: RunView) -> Any:
        return self._bound.rules(history, run)


def test_a_requirement_that_changes_its_mind_is_heard() -> None:
    class Moody:
        said: ClassVar[list[Rule]] = []

        def rules(self, history: History, run: RunView) -> list[Rule]:
            return self.said

    policy = Policy([Moody(), ConditionalRequirement("think", max_invocations=1)], tools=TOOLS)
    assert policy.permit().denied == ()
    Moody.said = [Rule("search", allowed=False, reason="no")]
    assert policy.permit().denied == ("search",)
    Moody.said = [Rule("search", arguments={"q": {"enum": []}})]
    assert policy.permit().denied == ("search",)
    Moody.said = [Rule("search", arguments={"q": {"enum": [1]}})]
    assert policy.permit().denied == ()
    Moody.said = [Rule("search", arguments={"q": {"enum": [True]}})]
    assert policy.permit().arguments("search") == {"q": ({"enum": [True]},)}

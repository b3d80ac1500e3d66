"""A history of stretches answers as the one that lists every step."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest

from maymust import ConditionalRequirement, History, Outcome, Policy, Step
from maymust.core.compiled import CompiledPolicy
from maymust.core.repeated import repeated

_NAMES = ("a", "b", "c")


def stretches(random: Random) -> list[tuple[tuple[Step, ...], int]]:
    def step() -> Step:
        return Step(random.choice(_NAMES), random.choice((Outcome.OK, Outcome.OK, Outcome.FAILED, Outcome.DENIED)))

    return [(tuple(step() for _ in range(random.randint(0, 3))), random.randint(0, 4)) for _ in range(random.randint(0, 5))]


def answers(history: History) -> dict[str, Any]:
    said: dict[str, Any] = {"last": history.last, "last_invocation": history.last_invocation, "length": len(history)}
    for failures in (False, True):
        said[f"total {failures}"] = history.total(failures)
        for name in _NAMES:
            for question in ("seen", "count", "last_place", "since"):
                said[f"{question} {name} {failures}"] = getattr(history, question)(name, failures)
    return said


@pytest.mark.parametrize("seed", range(200))
def test_every_question_has_the_same_answer_in_every_version(seed: int) -> None:
    made = stretches(Random(seed))
    listed = History(step for steps, times in made for _ in range(times) for step in steps)
    history = repeated(made)
    assert history == listed
    assert list(history) == list(listed)
    for length in range(len(listed) + 1):
        assert answers(history.at(length)) == answers(listed.at(length))


def test_a_policy_judges_it_as_it_judges_any_history() -> None:
    policy = Policy([ConditionalRequirement("a", max_invocations=10**12, cooldown=2, followed_by="b")], tools=_NAMES)
    a, b, c = (Step(name) for name in _NAMES)
    for made, allowed in ((10**12 - 1, True), (10**12, False)):
        history = repeated([((a, b, c), made), ((c,), 10**15)])
        assert ("a" in policy.permit(history).allowed) is allowed
        compiled = CompiledPolicy(policy)
        assert ("a" in compiled.permit(compiled.state_of(history)).allowed) is allowed


def test_more_steps_than_a_sequence_can_have_are_an_error() -> None:
    with pytest.raises(OverflowError):
        repeated([((Step("a"),), 10**23)])

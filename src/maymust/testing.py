"""Tests of policies in Python: an assertion that explains, and histories for property tests."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from maymust.core.history import History
from maymust.core.permit import Permit, Verdict
from maymust.core.policy import Policy
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PermitError, PolicyError
from maymust.policyfile.expectation import expectation

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

__all__ = ["assert_permit", "histories"]

Tools = str | Iterable[str]


def assert_permit(
    permit: Permit,
    *,
    allows: Tools = (),
    allows_only: Tools | None = None,
    asks: Tools = (),
    denies: Tools | Mapping[str, str | Iterable[str] | None] = (),
    hides: Tools = (),
    withholds: Tools = (),
    forces: str | None = None,
    may_stop: bool | None = None,
    tool_choice: str | None = None,
) -> None:
    """Assert what a permit says. What is not mentioned may be as it is.

    allows       tools that may be called, with or without a person's yes
    allows_only  the same, and no other tool may be called
    asks         tools that may be called after a person's yes
    denies       tools that are shown and closed; as a mapping with texts that have to occur in the reasons: `{"search": "think"}`
    hides        tools that are neither shown nor callable
    withholds    tools that are closed because another one is forced
    forces       the tool that must be called; "" for none
    may_stop     whether the run may end
    tool_choice  what is sent as `tool_choice`

    Raises AssertionError with every difference, the rules behind it and their evidence; PolicyError for unknown tools.
    """
    __tracebackhide__ = True
    expected = expectation(
        allows=allows,
        allows_only=allows_only,
        asks=asks,
        denies=denies,
        hides=hides,
        withholds=withholds,
        forces=forces,
        may_stop=may_stop,
        tool_choice=tool_choice,
    )
    mismatches = expected.mismatches(permit)
    if mismatches:
        raise AssertionError("\n".join((*map(str, mismatches), f"after {permit.history!r}: {permit!r}")))


def histories(
    policy: Policy,
    *,
    max_steps: int = 12,
    may_fail: Tools | None = None,
    lawful: bool = True,
) -> SearchStrategy[History]:
    """A Hypothesis strategy of histories that runs under this policy can have.

    max_steps  so many steps at most
    may_fail   tools whose calls may come back failed; None: any tool's
    lawful     False also draws calls that the policy refuses, as refused steps

    Each step is a call that the permit allows at that point; a tool a person is asked about may come back denied.
    A history ends early where the policy leaves no next step. Needs Hypothesis.
    """
    try:
        from hypothesis import strategies as st
    except ImportError:
        raise PolicyError("histories() needs Hypothesis, which is not installed: pip install 'maymust[testing]'") from None
    if policy.opaque:
        names = ", ".join(requirement.name for requirement in policy.opaque)
        raise PolicyError(f"histories() cannot say what {names} would see of a run; draw histories of your own")
    failing = frozenset(policy.tools if may_fail is None else (may_fail,) if isinstance(may_fail, str) else may_fail)

    @st.composite
    def drawn(draw: Any) -> History:
        history = History()
        for _ in range(draw(st.integers(0, max_steps))):
            calls = _calls(policy, history, failing, lawful)
            if not calls:
                break
            tool, outcome = draw(st.sampled_from(calls))
            history = history.add(tool, outcome=outcome)
        return history

    return drawn()


def _calls(policy: Policy, history: History, failing: frozenset[str], lawful: bool) -> Sequence[tuple[str, Outcome]]:
    """What may come next, the final answer left out."""
    try:
        permit = policy.permit(history)
    except PermitError:
        return ()
    calls = []
    for tool in permit.tools:
        if tool == FINAL_ANSWER:
            continue
        if tool in permit.allowed:
            calls.append((tool, Outcome.OK))
            if tool in failing:
                calls.append((tool, Outcome.FAILED))
            if permit.verdict(tool) is Verdict.ASK:
                calls.append((tool, Outcome.DENIED))
        elif not lawful:
            calls.append((tool, Outcome.REFUSED))
    return calls

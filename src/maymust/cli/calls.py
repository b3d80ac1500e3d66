"""Calls on the command line: `a,b!failed`."""

from __future__ import annotations

from dataclasses import dataclass

from maymust.cli.console import UnusableError
from maymust.core.history import History
from maymust.core.permit import Permit, Verdict
from maymust.core.policy import Policy
from maymust.core.refusal import refusal
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER, did_you_mean
from maymust.errors import PermitError


@dataclass(frozen=True, slots=True)
class Call:
    """A call and how it comes back. `word` is as it was given."""

    word: str
    tool: str
    outcome: Outcome


@dataclass(frozen=True, slots=True)
class Played:
    """What came of some calls.

    admitted  the calls that were let through
    refused   the first one that was not, with the reason
    history   the history up to there
    permit    what may come next; None when there is no next step, or the run has ended
    error     why there is no next step
    ended     the final answer was among the admitted calls
    """

    admitted: tuple[Call, ...]
    refused: tuple[Call, str] | None
    history: History
    permit: Permit | None = None
    error: PermitError | None = None
    ended: bool = False


def parse_calls(words: tuple[str, ...], tools: tuple[str, ...]) -> tuple[Call, ...]:
    """Read `tool` and `tool!outcome`. Raises UnusableError for unknown tools and outcomes."""
    calls = []
    for word in words:
        tool, mark, outcome = word.partition("!")
        known = (*tools, FINAL_ANSWER)
        if tool not in known:
            near = did_you_mean(tool, known) or f"; the tools are {', '.join(known)}"
            raise UnusableError(f"--calls: there is no tool called {tool}{near}")
        outcomes = [one.value for one in Outcome]
        if mark and outcome not in outcomes:
            near = did_you_mean(outcome, outcomes) or f"; it is one of {', '.join(outcomes)}"
            raise UnusableError(f"--calls: {outcome!r} is no outcome{near}")
        calls.append(Call(word, tool, Outcome(outcome) if mark else Outcome.OK))
    return tuple(calls)


def play(policy: Policy, calls: tuple[Call, ...]) -> Played:
    """Put calls to a policy one after another, up to the first that it refuses."""
    history = History()
    admitted: list[Call] = []
    for call in calls:
        try:
            permit = policy.permit(history)
        except PermitError as error:
            return Played(tuple(admitted), (call, "there is no next step"), history, error=error)
        reason = _refused(permit, call)
        if reason is not None:
            return Played(tuple(admitted), (call, reason), history, permit)
        admitted.append(call)
        if call.tool == FINAL_ANSWER:
            left = calls[len(admitted) :]
            return Played(tuple(admitted), (left[0], "the run has ended") if left else None, history, ended=True)
        history = history.add(call.tool, outcome=call.outcome)
    try:
        return Played(tuple(admitted), None, history, policy.permit(history))
    except PermitError as error:
        return Played(tuple(admitted), None, history, error=error)


def _refused(permit: Permit, call: Call) -> str | None:
    may_run = call.tool in permit.allowed
    if call.outcome is Outcome.REFUSED:
        return f"{call.tool} is allowed here, so it is not refused" if may_run else None
    if not may_run:
        return refusal(permit, call.tool, permit.allowed)
    if call.outcome is Outcome.DENIED and permit.verdict(call.tool) is not Verdict.ASK:
        return f"nobody is asked about {call.tool} here, so nobody says no"
    return None

"""Running the cases of a policy test."""

from __future__ import annotations

from dataclasses import dataclass

from maymust.core.history import History
from maymust.core.permit import Permit, Verdict
from maymust.core.policy import Policy
from maymust.core.refusal import refusal
from maymust.core.step import Outcome
from maymust.errors import ConflictError, DeadEndError, ForceUnmetError, PermitError
from maymust.policyfile.cases import Case
from maymust.policyfile.expectation import Mismatch

_KINDS: tuple[tuple[type[PermitError], str], ...] = (
    (ForceUnmetError, "force_unmet"),
    (ConflictError, "conflict"),
    (DeadEndError, "dead_end"),
)


@dataclass(frozen=True, slots=True)
class Failure:
    """What is wrong with a case: the key it is about, what is the matter, and why. `unlawful`: its history cannot happen."""

    key: str
    message: str
    why: tuple[str, ...] = ()
    unlawful: bool = False

    def __str__(self) -> str:
        return "\n".join((self.message, *(f"    {line}" for line in self.why)))


def fault_name(error: PermitError) -> str:
    """`force_unmet`, `conflict` or `dead_end`."""
    return next((name for kind, name in _KINDS if isinstance(error, kind)), "conflict")


def judge(policy: Policy, case: Case) -> tuple[Failure, ...]:
    """What is wrong with a case; nothing when it holds. Raises PolicyError when a requirement of the policy is at fault."""
    history = History()
    for number, step in enumerate(case.after, 1):
        if case.lawful:
            unlawful = _unlawful(policy, history, step.tool, step.outcome)
            if unlawful is not None:
                return (Failure("after", f"step {number} cannot happen: {unlawful}", unlawful=True),)
        history = history.add(step)
    try:
        permit = policy.permit(history)
    except PermitError as error:
        return _of_error(error, case)
    if case.raises is not None:
        return (Failure("raises", f"there is a next step, and should be none ({case.raises})", (repr(permit),)),)
    return tuple(_failure(mismatch) for mismatch in case.expected.mismatches(permit))


def _failure(mismatch: Mismatch) -> Failure:
    return Failure(mismatch.word, mismatch.message, mismatch.why)


def _of_error(error: PermitError, case: Case) -> tuple[Failure, ...]:
    name = fault_name(error)
    if case.raises == name:
        return ()
    if case.raises is not None:
        return (Failure("raises", f"this is {name}, and should be {case.raises}", (str(error),)),)
    return (Failure("", f"there is no next step ({name})", (str(error),)),)


def _unlawful(policy: Policy, history: History, tool: str, outcome: Outcome) -> str | None:
    """Why a call cannot come back like this here; None when it can."""
    try:
        permit: Permit = policy.permit(history)
    except PermitError as error:
        return f"there is no next step ({fault_name(error)}): {error}"
    may_run = tool in permit.allowed
    if outcome is Outcome.REFUSED:
        return f"{tool} is allowed here, so it is not refused" if may_run else None
    if not may_run:
        return f"{tool} is refused ({refusal(permit, tool, permit.allowed)})"
    if outcome is Outcome.DENIED and permit.verdict(tool) is not Verdict.ASK:
        return f"nobody is asked about {tool} here, so nobody says no"
    return None

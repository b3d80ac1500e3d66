"""What a conditional requirement found in a history, and the reason it gives in its own words."""

from __future__ import annotations

from typing import Any, TypeAlias

from maymust.requirements.wording import after_text, before_text, followed_text, limit_text, owed_text, rest_text

Closed: TypeAlias = tuple[str, Any]
"""What closes the tool: the failing parameter, and what its words need (a limit, names of tools, a check)."""

Owed: TypeAlias = tuple[tuple[str, tuple[str, ...]], ...]
"""What is owed before the end: the parameters that say so, each with the tools it names."""


def situation_text(target: str, name: str, least: int, failures: bool, closed: Closed | None, owed: Owed, forced: bool) -> str | None:
    """Return the reason: what closes the tool, and what is still owed; None when there is nothing to say.

    name      the requirement's
    least     its min_invocations
    failures  failed calls count as well
    forced    the tool has to be called now
    """
    if closed is None and forced:
        return f"{target} has to be called now"
    owing = [owed_text(target, least, failures) if not group else followed_text(target, group, failures) for _, group in owed]
    debt = f"{' and '.join(owing)} before the end" if owing else None
    if closed is None:
        return debt
    text = _closed_text(target, name, failures, closed)
    return f"{text}; {debt}" if debt else text


def _closed_text(target: str, name: str, failures: bool, closed: Closed) -> str:
    check, detail = closed
    if check == "consecutive_allowed":
        return f"{target} may not be called twice in a row, so another tool has to {'be called' if failures else 'succeed'} first"
    if check == "cooldown":
        return rest_text(target, detail, failures)
    if check == "max_invocations":
        return limit_text(target, detail)
    if check == "max_attempts":
        return f"{limit_text(target, detail)}, and failed calls count"
    if check == "only_before":
        return before_text(target, detail)
    if check == "only_after":
        return after_text(detail, failures)
    return f"the check {detail.text} does not hold" if detail.is_named else f"a condition of {name} does not hold"

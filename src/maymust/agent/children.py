"""The runs of child agents inside a run's state: what they may use, and what the run keeps of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from maymust.agent.budget import Budget
from maymust.agent.state import RunState
from maymust.errors import RunError
from maymust.models.chat_model import Usage

Apply = Callable[[RunState, Any], RunState]


def allowance(parent: RunState, call_id: str, own: Budget) -> Budget | None:
    """The budget of the child that works on a call: its agent's own, as far as the parent's lasts. None when nothing is left to start it.

    One turn of the parent's is kept back, so that it can answer, and one for each sibling that waits for its model.
    """
    limit, child = parent.budget, parent.children.get(call_id)
    turns, tokens, seconds = own.turns, own.tokens, own.seconds
    if limit.turns is not None:
        waiting = sum(_waiting(other) for other_id, other in parent.children.items() if other_id != call_id)
        left = limit.turns - parent.turns_used - waiting - 1 + (child.turns_used if child is not None else 0)
        turns = left if turns is None else min(turns, left)
    if limit.tokens is not None:
        rest = limit.tokens - parent.usage.total_tokens + (child.usage.total_tokens if child is not None else 0)
        tokens = rest if tokens is None else min(tokens, rest)
    if limit.seconds is not None:
        time = limit.seconds - parent.seconds + (child.seconds if child is not None else 0.0)
        seconds = time if seconds is None else min(seconds, time)
    if child is None and any(amount is not None and amount <= 0 for amount in (turns, tokens, seconds)):
        return None
    # Siblings may have spent the rest meanwhile. A budget has no smaller values than these.
    return replace(
        own,
        turns=None if turns is None else max(turns, 1),
        tokens=None if tokens is None else max(tokens, 1),
        seconds=None if seconds is None else max(seconds, 1e-9),
    )


def _waiting(child: RunState) -> int:
    """Model calls under way in a child and in its own children."""
    return (child.phase in ("plan", "model")) + sum(_waiting(other) for other in child.children.values())


def move_child(state: RunState, call_id: str, event: Any, seconds: float, apply: Apply) -> None:
    """Apply an event to a child, under what the parent leaves it now, and account for what it used. Raises RunError without a child."""
    old = state.children.get(call_id)
    if old is None:
        raise RunError(f"no child agent works on call {call_id!r}")
    state.seconds = max(state.seconds, seconds)
    bound = old.fork()
    bound.budget = allowance(state, call_id, old.own_budget or old.budget) or old.budget
    new = apply(bound, event)
    state.children = {**state.children, call_id: new}
    state.child_turns += new.turns_used - old.turns_used
    state.usage += _difference(new.usage, old.usage)


def _difference(new: Usage, old: Usage) -> Usage:
    return Usage(
        new.input_tokens - old.input_tokens,
        new.output_tokens - old.output_tokens,
        new.cached_tokens - old.cached_tokens,
        new.requests - old.requests,
    )


def retire(state: RunState, call_id: str) -> None:
    """The call has its result: what its child did is kept."""
    child = state.children.get(call_id)
    if child is not None:
        state.past_children = state.past_children.add((call_id, child))
        state.children = {other: one for other, one in state.children.items() if other != call_id}

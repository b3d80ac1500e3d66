"""The permit of the coming turn: the policy's, with what budget, loop guard, ladder and `tool_choice` add to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import MappingProxyType

from maymust.agent.budget import spent
from maymust.agent.ladder import RELAX
from maymust.agent.loop_guard import Measure
from maymust.agent.plan import LoopPlan
from maymust.agent.state import RunState
from maymust.agent.turn import TurnPlan
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.core.verdict import Extra
from maymust.errors import DeadEndError, PermitError, RunError

APPROVAL_MODE = "approval_mode"


def plan_of(state: RunState) -> LoopPlan:
    """The plan the state runs under. Raises RunError for a state that was loaded and not given to an agent yet."""
    if state.plan is None:
        raise RunError("this run state belongs to no agent yet; give it to Agent.resume()")
    return state.plan


def standing_rules(state: RunState, *, relaxed: bool = False) -> tuple[Extra, ...]:
    """The rules that hold beside the policy: of `tool_choice`, and of tools that always ask."""
    asking = [Extra(APPROVAL_MODE, Rule(tool.name, ask=True), priority=0) for tool in state.tools if tool.approval_mode == "always_require"]
    if state.choice is None:
        return tuple(asking)
    present = [tool.name for tool in state.tools]
    return (*state.choice.rules(present, state.released or relaxed), *asking)


def permit_at(state: RunState, history: History, *, relaxed: bool = False, more: Sequence[Extra] = ()) -> Permit:
    """The permit after `history`, for the tools of the run. Raises PermitError."""
    plan = plan_of(state)
    if relaxed or _released_since(state, history):
        standing = standing_rules(state, relaxed=True)
    else:
        if state.standing is None:
            state.standing = standing_rules(state)
        standing = state.standing
    given = {name: given.rules for name, given in state.given.items()} if plan.policy.opaque else None
    mode = state.choice.mode if state.choice is not None and state.choice.mode != "required" else None
    return plan.policy.permit(
        history,
        run=run_view(state) if _is_seen(state, plan) else None,
        memories=state.memories or None,
        extra=(*standing, *more) if more else standing,
        given=given,
        relaxed=relaxed,
        mode=mode,
        present=state.tools,
    )


def _is_seen(state: RunState, plan: LoopPlan) -> bool:
    """Whether there is anything in the run that a rule could see beside the history."""
    return bool(state.metadata) or state.deps is not None or bool(state.before) or plan.reads_said


def _released_since(state: RunState, history: History) -> bool:
    """Whether `tool_choice` was released by a step of `history` that has no place in the record yet."""
    choice, known = state.choice, len(state.history)
    if choice is None or state.released or len(history) <= known:
        return False
    return any(step.outcome is Outcome.OK and choice.released_by(step.tool) for step in history[known:])


def run_view(state: RunState, requirement: str = "") -> RunView:
    """What a requirement sees of the run. Without the clock: who is asked with a reading of it, the driver tells.

    The last reading may be hours old, after a pause, and a permit may be asked for without another one.
    """
    names = tuple(tool.name for tool in state.tools)
    # Read only: it is stored with the run, and a rule that wrote into it would speak to the others.
    metadata = MappingProxyType(state.metadata)
    return RunView(state.memories.get(requirement, {}), names, metadata, state.deps, None, state.before, state.said)


def plan_turn(state: RunState) -> TurnPlan:
    """Decide the coming turn. Raises PermitError when there can be none for a fault of the policy."""
    plan, budget, done = plan_of(state), state.budget, state.turns_used
    if budget.turns is not None and done >= budget.turns:
        return TurnPlan(ends="budget")
    if state.measure is not None and state.measure.kind == "stop":
        return TurnPlan(ends="stalled")
    over = spent(state)
    if over is not None and done and state.turns[-1].grace:
        return TurnPlan(ends="budget")
    if state.bad_replies >= RELAX:
        return _relaxed_turn(state) if plan.on_stall == "relax" else TurnPlan(ends="stalled")
    permit = permit_at(state, state.history)
    if over is not None:
        if not permit.may_stop:
            return TurnPlan(ends="budget")
        return TurnPlan(_forced_finish(state, "budget", over), grace=True, finish="budget")
    if budget.turns is not None and done == budget.turns - 1 and permit.may_stop:
        return TurnPlan(_forced_finish(state, "budget", "this is the last turn of the budget"), finish="budget")
    if state.measure is not None:
        return _guarded_turn(state, permit, state.measure)
    return TurnPlan(permit)


def _forced_finish(state: RunState, source: str, reason: str, *, relaxed: bool = False) -> Permit:
    return permit_at(state, state.history, relaxed=relaxed, more=(finish_forced(source, reason),))


def finish_forced(source: str, reason: str | None = None) -> Extra:
    """The rule that forces the final answer for one turn; it lapses where the answer has been closed since."""
    return Extra(source, Rule(FINAL_ANSWER, forced=True, reason=reason), lapses_force=True)


def _relaxed_turn(state: RunState) -> TurnPlan:
    try:
        permit = permit_at(state, state.history, relaxed=True)
    except DeadEndError:
        return TurnPlan(ends="stalled")
    if not permit.may_stop:
        return TurnPlan(ends="stalled")
    permit = _forced_finish(state, "ladder", "no usable reply came; give the answer now", relaxed=True)
    return TurnPlan(permit, relaxed=True, finish="ladder")


def closed_by_guard(measure: Measure) -> Extra:
    """The loop guard's rule that closes a tool for one turn."""
    return Extra("loop_guard", Rule(measure.tool, allowed=False, reason=measure.reason), lapses_force=True)


def _guarded_turn(state: RunState, permit: Permit, measure: Measure) -> TurnPlan:
    if measure.kind == "finish" and permit.may_stop:
        return TurnPlan(_forced_finish(state, "loop_guard", measure.reason), measure=measure, finish="loop_guard")
    if measure.tool not in permit.tools:
        return TurnPlan(permit, measure=measure)
    try:
        return TurnPlan(permit_at(state, state.history, more=(closed_by_guard(measure),)), measure=replace(measure, kind="deny"))
    except PermitError:
        # The guard is there to save a run: what would leave nothing to call is not done.
        return TurnPlan(permit)

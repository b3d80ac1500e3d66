"""The state a resumed run starts from: given its plan and its tools again, and the decisions of a person."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from maymust.agent.actions import ChildEvent, Decided, Event, MessageSent, Resumed
from maymust.agent.budget import Budget
from maymust.agent.call_record import CallRecord
from maymust.agent.child import ChildTool
from maymust.agent.exposure import restore_tools
from maymust.agent.journal import Answer
from maymust.agent.pending import pending_calls
from maymust.agent.plan import LoopPlan
from maymust.agent.planning import plan_of
from maymust.agent.recovering import event_of_happened, event_of_left
from maymust.agent.reducer import apply, hear, settle
from maymust.agent.settings import of_kind
from maymust.agent.state import RunState
from maymust.errors import RunError
from maymust.requirements.permission import Decision
from maymust.tools.happened import Happened


def prepare_resume(
    before: RunState,
    plan: LoopPlan,
    decisions: Mapping[str, bool | Answer],
    *,
    budget: Budget | None = None,
    tools: Iterable[Any] = (),
    deps: Any = None,
    allow_policy_change: bool = False,
    may_be_over: bool = False,
    said: Iterable[MessageSent] = (),
) -> RunState:
    """The state to go on from; `before` is left as it is. Raises RunError for what does not fit (see `Agent.resume`).

    `may_be_over` takes a run that has its answer as it is: whoever resumes it wants the result.
    `said` is what was sent to the run meanwhile: it is there before the next turn is planned.
    """
    new = attach(hear(before, said), plan, tuple(tools), deps, allow_policy_change)
    waiting = [call.call_id for call in pending_calls(new)]
    for call_id in decisions:
        if call_id not in waiting:
            raise RunError(f"there is no call {call_id!r} that waits for a decision; waiting: {', '.join(waiting) or 'none'}")
    if may_be_over and not decisions and new.phase == "ended" and new.answer is not None:
        return new
    of_kind("budget", budget, Budget, "a Budget")
    # All of them before the first: what is remembered beyond the run is not taken back.
    answers = {call_id: checked(call_id, decision) for call_id, decision in decisions.items()}
    if new.phase == "ended" or budget is not None:
        new = apply(new, Resumed(budget.to_dict() if budget is not None else None))
    for call_id, answer in answers.items():
        for event in _decided(new, call_id, answer):
            new = apply(new, event)
    return new


def attach(before: RunState, plan: LoopPlan, tools: tuple[Any, ...], deps: Any, allow_policy_change: bool) -> RunState:
    """A copy of the state that belongs to this plan, and so do the states of its child agents.

    Raises RunError for a state of another policy, a missing tool, or a child whose agent is not there any more.
    """
    new = before.fork()
    _check_same_policy(new, plan, allow_policy_change)
    new.plan, new.policy_hash, new.policy = plan, plan.fingerprint, plan.description
    new.deps = deps
    restore_tools(new, plan.known, tools)
    if new.phase == "model":
        # The permit of a turn is made anew from the same state; the request is asked again.
        new.phase, new.coming = "plan", None
    children = {}
    for call_id, child in new.children.items():
        record = next(one for one in new.calls if one.call_id == call_id)
        tool = next((one for one in new.tools if one.name == record.name), None)
        if not isinstance(tool, ChildTool):
            raise RunError(f"call {call_id!r} is under way in the child agent {record.name!r}, which this agent does not have")
        children[call_id] = attach(child, tool.agent.plan, tools, deps, allow_policy_change)
    new.children = children
    new.calls = tuple(map(_without_secrets, new.calls))
    if new.phase != "ended":
        settle(new)
    return new


def _without_secrets(record: CallRecord) -> CallRecord:
    """A call that was under way and whose secrets were not stored is refused: it must not run with a mask for a password."""
    if not record.sealed or record.status not in ("waiting", "admitted") or record.refusal is not None:
        return record
    why = "while this call ran, which may have taken effect" if record.started else "before this call ran"
    text = f"the run was stored {why}, and secrets in arguments are not stored; call it again if it is still needed"
    return record.changed(status="admitted", refusal=text)


def _decided(state: RunState, call_id: str, decision: Answer) -> tuple[Event, ...]:
    """The events of a decision. For `parent/child` they happen in the child."""
    record = next((one for one in state.calls if one.call_id == call_id and one.status == "pending"), None)
    if record is None:
        parent = next(one for one in state.children if call_id.startswith(f"{one}/"))
        inner = _decided(state.children[parent], call_id.removeprefix(f"{parent}/"), decision)
        return tuple(ChildEvent(parent, event) for event in inner)
    if isinstance(decision, Happened):
        if not record.interrupted:
            raise RunError(f"call {call_id!r} of {record.name} has not run yet, so it cannot have happened; decide True or False about it")
        said: tuple[Event, ...] = (Decided(call_id, True, decision.reason, decision.by),)
        return (*said, event_of_happened(state.present, record, decision))
    if record.interrupted:
        said = (Decided(call_id, decision.allow, decision.reason, decision.by),)
        return said if decision.allow else (*said, event_of_left(record, decision))
    if record.sealed and decision.allow:
        raise RunError(
            f"call {call_id!r} of {record.name} has a secret among its arguments, and secrets are not stored with a run, so it cannot run "
            "after the state was read from JSON; decide False, and the model may call again, or resume the state that was kept in memory"
        )
    for requirement in plan_of(state).policy.requirements:
        shared = getattr(requirement, "remember_in", None)
        if shared is not None and requirement.name in record.questions:
            # Sharing a memory turns remembering on.
            shared.put(record.name, decision)
    return (Decided(call_id, decision.allow, decision.reason, decision.by, decision.remember),)


def checked(call_id: str, decision: Any) -> Answer:
    """What was decided about a call. Raises RunError for what is no decision."""
    answer = Decision(decision) if isinstance(decision, bool) else decision
    if not isinstance(answer, Decision | Happened):
        raise RunError(f"the decision about {call_id!r} is {decision!r}; give True, False or a Decision, so the call stays closed")
    return answer


def _check_same_policy(state: RunState, plan: LoopPlan, allowed: bool) -> None:
    if allowed or not state.policy_hash or state.policy_hash == plan.fingerprint:
        return
    raise RunError(
        f"run {state.run_id} was started under another policy ({_difference(state.policy, plan.description)}); "
        "resume it with the agent that started it, or pass allow_policy_change=True"
    )


def _difference(old: Mapping[str, Any], new: Mapping[str, Any], path: str = "") -> str:
    """The first places where two descriptions differ."""
    places = []
    for key in dict.fromkeys((*old, *new)):
        before, after, where = old.get(key), new.get(key), f"{path}{key}"
        if before != after:
            if isinstance(before, Mapping) and isinstance(after, Mapping):
                places.append(_difference(before, after, f"{where}."))
            else:
                places.append(f"{where}: {before!r} then, {after!r} now")
    return "; ".join(places[:3]) or "its version differs"

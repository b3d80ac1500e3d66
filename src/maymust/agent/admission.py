"""The second gate: which calls of a batch may run, decided as if they ran one after another (design 3.5).

A call that was offered and is still allowed after the calls before it is admitted. While calls before it are under way it is
admitted only if it is allowed whatever becomes of them; otherwise it waits. Refusals and their reasons are decided here too.
"""

from __future__ import annotations

from maymust.agent.call_record import CallRecord
from maymust.agent.planning import closed_by_guard, finish_forced, permit_at, plan_of, run_view
from maymust.agent.state import RunState
from maymust.core.bounds import Bounds
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.refusal import refusal
from maymust.core.requirement import BoundRequirement
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.errors import PermitError

INVOCATIONS = (Outcome.OK, Outcome.FAILED)


def admit_waiting(state: RunState) -> None:
    """Decide every waiting call that can be decided now; note in `state.stale` whose rules are needed for the others."""
    state.stale = ()
    undecided: set[str] = set()
    for index, record in enumerate(state.calls):
        if record.status == "done":
            # What it came to may make sure what was not sure before it.
            undecided.clear()
        if record.status != "waiting" or record.name in undecided:
            # Behind a call of the same tool that has to wait there is only more to wait for.
            continue
        decided = _judge_final(state, index) if record.name == FINAL_ANSWER else _judge(state, index)
        if decided is None:
            undecided.add(record.name)
        else:
            state.calls = (*state.calls[:index], decided, *state.calls[index + 1 :])


def call_permit(state: RunState, call_id: str) -> Permit:
    """The permit a call of the batch is judged by: the one after the calls before it. Raises PermitError.

    It is kept from the call's admission, since custom requirements may have spoken about later calls in the meantime. A state read
    from JSON has kept what they said.
    """
    kept = state.call_permits.get(call_id)
    if kept is not None:
        return kept
    given = state.call_given.get(call_id)
    if given is not None:
        state = state.fork()
        state.given = given
    index = next(place for place, record in enumerate(state.calls) if record.call_id == call_id)
    history, _ = _before(state, index)
    return _permit(state, history)


def _permit(state: RunState, history: History) -> Permit:
    turn = state.turns.last
    if history is turn.permit.history and not turn.relaxed and turn.measure is None:
        return turn.permit
    if turn.finish is not None:
        return permit_at(state, history, relaxed=turn.relaxed, more=(finish_forced(turn.finish),))
    if turn.measure is not None and turn.measure.kind == "deny":
        try:
            return permit_at(state, history, more=(closed_by_guard(turn.measure),))
        except PermitError:
            # As at the start of a turn: the guard makes no dead end.
            return permit_at(state, history)
    return permit_at(state, history, relaxed=turn.relaxed)


def _before(state: RunState, index: int) -> tuple[History, list[tuple[str, Outcome | None]]]:
    """The history before a call, without the calls that are still open, and the unrecorded calls before it with their outcomes.

    A final answer is decided after its siblings, so it is before none of them; everything else is before it.
    """
    final = state.calls[index].name == FINAL_ANSWER
    if index == state.recorded and not final:
        return state.history, []
    tail: list[tuple[str, Outcome | None]] = []
    finished: list[Step] = []
    for place, record in enumerate(state.calls):
        if place < state.recorded or place == index or (record.name == FINAL_ANSWER and not (final and place < index)):
            continue
        if place > index and not final:
            break
        if record.outcome is not None:
            finished.append(step_of(record))
            tail.append((record.name, record.outcome))
        else:
            tail.append((record.name, Outcome.REFUSED if record.refusal is not None else None))
    if not finished:
        return state.history, tail
    # Rare: a call is judged while finished ones wait behind an open one for their place in the record.
    return History((*state.history, *finished)), tail


def step_of(record: CallRecord) -> Step:
    """The step of a call that is done."""
    assert record.outcome is not None
    return Step(record.name, record.outcome, record.arguments, record.output, record.call_id, record.text, record.untrusted)


def _judge(state: RunState, index: int) -> CallRecord | None:
    record, offer = state.calls[index], state.turns.last.permit
    if record.name not in offer.allowed:
        return _refuse(state, record, offer)
    if state.broken is not None:
        return record.changed(status="admitted", refusal=f"not now: {state.broken}")
    history, tail = _before(state, index)
    still_open = [name for name, outcome in tail if outcome is None]
    steps = _judge_steps(state, record, history, tail)
    if steps is not record:
        return steps
    if not _rules_are_fresh(state, history, still_open):
        return None
    plan = plan_of(state)
    if still_open:
        bounds = Bounds(state.history, tail)
        sure = plan.policy.surely_admits(record.name, bounds, run=run_view(state), memories=state.memories, present=state.tools)
        return _admit_beside_open(state, record, history) if sure else None
    try:
        permit = _permit(state, history)
    except PermitError as fault:
        state.broken = str(fault)
        return record.changed(status="admitted", refusal=f"not now: {fault}")
    return _admit(state, record, permit) if record.name in permit.allowed else _refuse(state, record, permit)


def _admit(state: RunState, record: CallRecord, permit: Permit) -> CallRecord:
    state.call_permits = {**state.call_permits, record.call_id: permit}
    if state.given:
        state.call_given = {**state.call_given, record.call_id: state.given}
    return record.changed(status="admitted")


def _admit_beside_open(state: RunState, record: CallRecord, history: History) -> CallRecord | None:
    """Admit a call that no built-in requirement could close, if the custom ones, which do not depend on what is open, let it run too."""
    if any(rule.forced and rule.target != record.name for given in state.given.values() for rule in given.rules):
        # Whether that force wins may hang on another one that the open calls decide.
        return None
    try:
        permit = _permit(state, history)
    except PermitError:
        return None
    return _admit(state, record, permit) if record.name in permit.allowed else None


def _judge_steps(state: RunState, record: CallRecord, history: History, tail: list[tuple[str, Outcome | None]]) -> CallRecord | None:
    """The record itself when the step budget lets it pass, a refused one when it is spent, None when that is still open."""
    limit = state.budget.steps
    if limit is None:
        return record
    least = history.total(failures=True) - state.carried_invocations
    greatest = least + sum(1 for _, outcome in tail if outcome is None)
    if greatest < limit:
        return record
    if least >= limit:
        return record.changed(status="admitted", refusal=f"not now: the budget of {limit} steps is spent")
    return None


def _judge_final(state: RunState, index: int) -> CallRecord | None:
    record, offer = state.calls[index], state.turns.last.permit
    if FINAL_ANSWER not in offer.allowed or plan_of(state).answers_in_text:
        return _refuse(state, record, offer)
    siblings = [other for place, other in enumerate(state.calls) if other.name != FINAL_ANSWER or place < index]
    if any(other.status != "done" for other in siblings):
        return None
    if any(other.name == FINAL_ANSWER and other.outcome is Outcome.OK for other in siblings):
        return record.changed(status="admitted", refusal="not now: the answer was already given in this turn; the first one counts")
    failed = [other for other in siblings if other.name != FINAL_ANSWER and other.outcome is not Outcome.OK]
    if failed:
        said = ", ".join(
            f"{other.name} was {other.outcome}" if other.outcome is not Outcome.FAILED else f"{other.name} failed" for other in failed
        )
        return record.changed(
            status="admitted", refusal=f"not now: an answer counts only when the calls beside it succeed, and {said}; answer again"
        )
    history, _ = _before(state, index)
    if not _rules_are_fresh(state, history, []):
        return None
    try:
        permit = _permit(state, history)
    except PermitError as fault:
        return record.changed(status="admitted", refusal=f"not now: {fault}")
    if FINAL_ANSWER not in permit.allowed:
        return _refuse(state, record, permit)
    state.unmet = owed(state, history, answered=True)
    return record.changed(status="admitted")


def owed(state: RunState, history: History, *, answered: bool = False) -> tuple[str, ...]:
    """Names of the requirements whose obligations are still open after `history`; `answered`: when the answer is given then."""
    try:
        permit = permit_at(state, history)
    except PermitError as fault:
        broken = getattr(fault, "permit", None)
        if broken is None and not len(state.turns):
            return ()
        permit = state.turns[-1].permit if broken is None else broken
    if not answered or not permit.owed:
        return permit.owed
    # A force of the answer itself is what the answer meets.
    preventing = ((one.requirement, one.rule) for one in permit.why(FINAL_ANSWER) if one.rule.prevent_stop)
    left = {name for name, rule in preventing if not (rule.forced and rule.target == FINAL_ANSWER)}
    return tuple(name for name in permit.owed if name in left)


def _refuse(state: RunState, record: CallRecord, permit: Permit) -> CallRecord:
    shown = tuple(name for name in permit.allowed if name != FINAL_ANSWER or not plan_of(state).answers_in_text)
    return record.changed(status="admitted", refusal=refusal(permit, record.name, shown))


def _rules_are_fresh(state: RunState, history: History, still_open: list[str]) -> bool:
    """Whether the custom requirements have spoken about this history. If they can be asked now, `state.stale` says which."""
    opaque = plan_of(state).policy.opaque
    if not opaque:
        return True
    waits = any(_depends(requirement) is None or set(_depends(requirement) or ()) & set(still_open) for requirement in opaque)
    if still_open and waits:
        return False
    stale = stale_requirements(state, history)
    if stale:
        state.stale, state.stale_history = stale, history
    return not stale


def stale_requirements(state: RunState, history: History) -> tuple[str, ...]:
    """The custom requirements that have to be asked (again) about `history`."""
    stale = []
    for requirement in plan_of(state).policy.opaque:
        given = state.given.get(requirement.name)
        if given is None:
            stale.append(requirement.name)
        elif given.at != len(history):
            depends, newer = _depends(requirement), history[min(given.at, len(history)) :]
            if depends is None or any(step.tool in depends for step in newer):
                stale.append(requirement.name)
    return tuple(stale)


def _depends(requirement: BoundRequirement) -> frozenset[str] | None:
    depends = getattr(requirement, "depends_on", None)
    return None if depends is None else frozenset(depends)

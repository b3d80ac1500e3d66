"""The loop as a reducer: `next_action` names what is to be done, `apply` folds what came of it into the next state.

There is no I/O, no clock and no randomness here; drivers bring them in as actions performed and events applied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

from maymust.agent import batch, children
from maymust.agent.actions import (
    Action,
    Ask,
    CallModel,
    CallPending,
    Cancelled,
    ChildEvent,
    ChildStarted,
    Compact,
    Decided,
    EvaluateRules,
    Event,
    Finish,
    Interrupted,
    MessagesCompacted,
    MessageSent,
    ModelFailed,
    ModelReplied,
    Resumed,
    RulesGiven,
    RunTools,
    ToolFinished,
    ToolsChanged,
    ToolStarted,
)
from maymust.agent.admission import stale_requirements
from maymust.agent.budget import Budget
from maymust.agent.call_record import INTERRUPTED, Approval, CallRecord, find_call
from maymust.agent.compacting import compaction_due, take_compacted
from maymust.agent.ending import end_run
from maymust.agent.exposure import apply_changes
from maymust.agent.outside import is_untrusted, words_of
from maymust.agent.pending import pending_calls
from maymust.agent.planning import plan_of, plan_turn
from maymust.agent.prompt import build_request
from maymust.agent.state import RunState
from maymust.agent.turn import GivenRules
from maymust.errors import PermitError, PolicyError, RunError


def next_action(state: RunState) -> Action:
    """What has to be done now. Pure: asked twice it gives the same answer.

    Raises PermitError when the policy leaves no next turn, RunError for a state that belongs to no agent.
    """
    if state.phase == "ended":
        assert state.stop_reason is not None
        return Finish(state.stop_reason)
    if state.stale:
        return EvaluateRules(state.stale)
    if state.phase == "plan":
        raise state.failure if state.failure is not None else RunError("this run state belongs to no agent yet; give it to Agent.resume()")
    if state.phase == "model":
        if plan_of(state).compaction is not None and compaction_due(state):
            return Compact(state.messages[state.compacted :])
        if state.request is None:
            state.request = build_request(state)
        return CallModel(state.request)
    running = tuple([record for record in state.calls if record.status == "admitted"])
    if running:
        return RunTools(running)
    return Ask(pending_calls(state))


def apply(state: RunState, event: Event) -> RunState:
    """The state after `event`; `state` itself is left as it is.

    Raises RunError for an event that does not fit the state.
    """
    fold = _FOLDS.get(type(event))
    if fold is None:
        raise RunError(f"{type(event).__name__} is no event of a run")
    new = state.fork()
    fold(event, new)
    if fold is not _tool_started:
        settle(new)
    return new


def hear(state: RunState, said: Iterable[MessageSent]) -> RunState:
    """The state with these messages to read. Nothing follows from it yet, so it may be a state that belongs to no plan."""
    new = state.fork()
    for event in said:
        _message_sent(event, new)
    return new


def settle(state: RunState) -> None:
    """Do everything that needs nothing from outside. For a state under construction."""
    state.failure = None
    while True:
        if state.phase == "plan":
            if not _settle_plan(state):
                return
        elif state.phase == "batch":
            if not batch.advance(state):
                return
        else:
            return


def _settle_plan(state: RunState) -> bool:
    plan = plan_of(state)
    if state.inbox:
        for message in state.inbox:
            state.messages = state.messages.add(message)
        state.inbox = ()
    if state.exposure:
        # Changes that came by themselves, in a turn without calls.
        apply_changes(state)
    state.stale = ()
    if plan.policy.opaque:
        state.stale, state.stale_history = stale_requirements(state, state.history), state.history
        if state.stale:
            return False
        state.given = {name: replace(given, at=len(state.history)) for name, given in state.given.items()}
    try:
        coming = plan_turn(state)
    except (PermitError, PolicyError) as fault:
        # Raised by whoever asks what comes next: a state that waits for its deps can be made all the same.
        state.failure = fault
        return False
    if coming.ends is not None:
        end_run(state, coming.ends)
    else:
        state.coming, state.phase, state.request = coming, "model", None
    return True


# --- one function an event ---
def _model_replied(event: ModelReplied, state: RunState) -> None:
    if state.phase != "model":
        raise RunError(f"a model's reply came while the run was in phase {state.phase!r}")
    batch.open_turn(state, event.reply, event.seconds)


def _model_failed(event: ModelFailed, state: RunState) -> None:
    state.usage += event.usage
    state.lost = tuple(dict.fromkeys((*state.lost, *event.lost)))
    state.request = None


def _messages_compacted(event: MessagesCompacted, state: RunState) -> None:
    take_compacted(state, event.made)


def _tool_started(event: ToolStarted, state: RunState) -> None:
    _change(state, event.call_id, started=True, ran=True, interrupted=False, arguments=event.arguments)


def _tool_finished(event: ToolFinished, state: RunState) -> None:
    record = find_call(state.calls, event.call_id)
    if record.status != "admitted":
        raise RunError(
            f"call {event.call_id!r} has its result already" if record.status == "done" else f"call {event.call_id!r} is not under way"
        )
    untrusted = is_untrusted(state, record, event.outcome)
    done = record.changed(
        status="done", outcome=event.outcome, output=event.output, text=event.text, arguments=event.arguments, untrusted=untrusted
    )
    _put(state, record, done)
    if event.seconds > state.seconds:
        state.seconds = event.seconds
    if state.children:
        children.retire(state, event.call_id)
    if event.outcome == "ok" and (event.added or event.removed):
        state.exposure = (*state.exposure, (event.call_id, tuple(tool.name for tool in event.added), event.removed))
        state.arriving = {**state.arriving, **{tool.name: tool for tool in event.added}}


def _call_pending(event: CallPending, state: RunState) -> None:
    _change(state, event.call_id, status="pending", arguments=event.arguments, questions=event.questions, reasons=event.reasons)


def _interrupted(event: Interrupted, state: RunState) -> None:
    record = find_call(state.calls, event.call_id)
    if record.status != "admitted" or not record.started:
        raise RunError(f"call {event.call_id!r} was not under way, so it cannot have been interrupted")
    _change(state, event.call_id, status="pending", interrupted=True, questions=(INTERRUPTED,), reasons=(event.reason,))


def _decided(event: Decided, state: RunState) -> None:
    record = find_call(state.calls, event.call_id)
    if event.requirement is None and record.status != "pending":
        raise RunError(f"call {event.call_id!r} does not wait for a decision")
    names = record.questions if event.requirement is None else (event.requirement,)
    arguments = dict(record.arguments or {}) if event.arguments is None else event.arguments
    given = tuple(Approval(name, event.allow, arguments, event.reason, event.by) for name in names)
    status = "admitted" if event.requirement is None else record.status
    _change(state, event.call_id, status=status, approvals=(*record.approvals, *given), questions=(), reasons=())
    for name in names:
        asking = next((requirement for requirement in plan_of(state).policy.requirements if requirement.name == name), None)
        if event.remember or getattr(asking, "remember_choices", False):
            memory = state.memories.get(name, {})
            choice = {"allow": event.allow, "reason": event.reason, "by": event.by}
            state.memories = {**state.memories, name: {**memory, "choices": {**memory.get("choices", {}), record.name: choice}}}


def _rules_given(event: RulesGiven, state: RunState) -> None:
    history = state.stale_history if state.stale_history is not None else state.history
    state.given = {**state.given, **{name: GivenRules(tuple(rules), len(history)) for name, rules in event.rules.items()}}
    if event.memories:
        state.memories = {**state.memories, **event.memories}
    state.now = event.now if event.now is not None else state.now
    state.stale, state.stale_history = (), None


def _tools_changed(event: ToolsChanged, state: RunState) -> None:
    state.exposure = (*state.exposure, ("", tuple(tool.name for tool in event.added), event.removed))
    state.arriving = {**state.arriving, **{tool.name: tool for tool in event.added}}
    _plan_again_before_the_start(state)


def _message_sent(event: MessageSent, state: RunState) -> None:
    if event.number is not None:
        if event.number <= state.received:
            return
        state.received = event.number
    state.inbox = (*state.inbox, event.message)
    state.said = (*state.said, *words_of([event.message]))
    _plan_again_before_the_start(state)


def _plan_again_before_the_start(state: RunState) -> None:
    """What comes before the first model call is part of it."""
    if state.phase == "model" and not state.started:
        state.phase, state.coming = "plan", None


def _cancelled(event: Cancelled, state: RunState) -> None:
    if state.phase == "batch":
        batch.close_all(state, "the run was stopped" if event.error is None else "the run broke off")
    state.phase, state.stop_reason, state.error = "ended", ("aborted" if event.error is None else "error"), event.error
    state.coming, state.stale = None, ()


def _resumed(event: Resumed, state: RunState) -> None:
    if event.budget is not None:
        state.budget = Budget.from_dict(event.budget)
    if state.phase == "ended":
        if state.stop_reason in ("final_answer", "text_answer"):
            raise RunError(f"run {state.run_id} has ended with an answer; start a new one with previous= to go on talking")
        state.phase, state.stop_reason, state.error, state.unmet = "plan", None, None, ()
        if state.bad_replies:
            state.bad_replies = 0


def _child_started(event: ChildStarted, state: RunState) -> None:
    find_call(state.calls, event.call_id)
    state.children = {**state.children, event.call_id: event.state}


def _child_event(event: ChildEvent, state: RunState) -> None:
    children.move_child(state, event.call_id, event.event, event.seconds, apply)
    if isinstance(event.event, Decided | ChildEvent) and find_call(state.calls, event.call_id).status == "pending":
        # Somebody was answered in there: the call is entered again, and the child goes on.
        _change(state, event.call_id, status="admitted")


_FOLDS: dict[type, Callable[[Any, RunState], None]] = {
    ModelReplied: _model_replied,
    ModelFailed: _model_failed,
    MessagesCompacted: _messages_compacted,
    ToolStarted: _tool_started,
    ToolFinished: _tool_finished,
    CallPending: _call_pending,
    Interrupted: _interrupted,
    Decided: _decided,
    RulesGiven: _rules_given,
    ToolsChanged: _tools_changed,
    MessageSent: _message_sent,
    Cancelled: _cancelled,
    Resumed: _resumed,
    ChildStarted: _child_started,
    ChildEvent: _child_event,
}


def _change(state: RunState, call_id: str, **changes: Any) -> None:
    record = find_call(state.calls, call_id)
    _put(state, record, record.changed(**changes))


def _put(state: RunState, record: CallRecord, changed: CallRecord) -> None:
    state.calls = (changed,) if len(state.calls) == 1 else tuple(changed if one is record else one for one in state.calls)

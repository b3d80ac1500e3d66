"""A turn from the model's reply to its end: the batch is opened, recorded in the model's order, and closed."""

from __future__ import annotations

import json
import logging
from dataclasses import replace
from typing import TYPE_CHECKING

from maymust.agent import loop_guard
from maymust.agent.admission import admit_waiting, owed, step_of
from maymust.agent.call_record import CallRecord
from maymust.agent.children import retire
from maymust.agent.ending import end_run
from maymust.agent.exposure import apply_changes
from maymust.agent.ladder import NUDGE, nudge_text
from maymust.agent.planning import plan_of
from maymust.agent.prompt import build_request, note_request
from maymust.agent.secrets import shown_reply
from maymust.agent.state import RunState
from maymust.agent.turn import StopReason, Turn
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.models.chat_model import NO_USAGE, ModelReply
from maymust.models.message import Message, ToolCall
from maymust.tools.output import encodable

if TYPE_CHECKING:
    from collections.abc import Iterable

log: logging.Logger = logging.getLogger(__name__)


def open_turn(state: RunState, reply: ModelReply, seconds: float) -> None:
    """Record the reply as a turn, and its calls as the batch to admit."""
    coming = state.coming
    assert coming is not None
    assert coming.permit is not None
    number = len(state.turns) + 1
    request = state.request if state.request is not None else build_request(state)
    state.request = None
    written = _whole(reply)
    reply = shown_reply(written, state.present)
    calls = _with_own_ids(state, reply.calls, number)
    turn = Turn(
        number,
        coming.permit,
        reply.text,
        tuple([call.call_id for call in calls]),
        len(state.history) - state.carried,
        reply.usage,
        coming.relaxed,
        coming.grace,
        coming.measure,
        reply.enforced_by,
        request.guidance,
        reply.level,
        coming.finish,
    )
    note_request(state, request)
    if reply.lost:
        state.lost = tuple(dict.fromkeys((*state.lost, *(one.ability for one in reply.lost))))
    state.turns = state.turns.add(turn)
    if reply.usage is not NO_USAGE:
        state.usage += reply.usage
    state.seconds = max(state.seconds, seconds)
    counters = state.counters
    if coming.relaxed or coming.measure is not None:
        counters = replace(
            counters, relaxations=counters.relaxations + coming.relaxed, reissues=counters.reissues + (coming.measure is not None)
        )
        state.counters = counters
        if coming.relaxed:
            log.warning("run %s, turn %d: obligations are relaxed, for no usable reply came", state.run_id, number)
    state.coming = state.measure = None
    if calls or reply.text.strip():
        state.messages = state.messages.add(Message("assistant", reply.text, calls, extra=reply.extra))
    state.recorded, state.broken, state.call_permits, state.call_given = 0, None, {}, {}
    if calls:
        state.calls = tuple([_record(call, whole.raw_arguments) for call, whole in zip(calls, written.calls, strict=True)])
        state.phase = "batch"
    else:
        _text_reply(state, turn, reply.text)


def _whole(reply: ModelReply) -> ModelReply:
    """The reply without halves of characters, which no state could hold; the very same object where there are none."""
    said = reply.text
    for call in reply.calls:
        said += f" {call.call_id} {call.name} {call.raw_arguments}"
    if encodable(said) is said:
        return reply
    calls = tuple(ToolCall(encodable(call.call_id), encodable(call.name), encodable(call.raw_arguments)) for call in reply.calls)
    return replace(reply, text=encodable(reply.text), calls=calls)


def _record(call: ToolCall, written: str) -> CallRecord:
    """The record of a call, with what the model wrote; `call` is what may be shown of it."""
    return CallRecord(call.call_id, call.name, written, shown=None if call.raw_arguments is written else call.raw_arguments)


def _with_own_ids(state: RunState, calls: Iterable[ToolCall], turn: int) -> tuple[ToolCall, ...]:
    """The calls, with missing and repeated ids replaced by our own."""
    known, own = state.call_ids, []
    for place, call in enumerate(calls, 1):
        call_id, mark = call.call_id, ""
        while not call_id or call_id in known:
            call_id = f"turn{turn}_call{place}{mark}"
            mark += "_"
        known = known.add(call_id)
        own.append(call if call_id == call.call_id else ToolCall(call_id, call.name, call.raw_arguments))
    state.call_ids = known
    return tuple(own)


def _text_reply(state: RunState, turn: Turn, text: str) -> None:
    final = plan_of(state).final
    arguments = final.arguments_from_text(text) if text.strip() and turn.permit.may_stop else None
    if arguments is None:
        wrong_form = bool(text.strip()) and turn.permit.may_stop
        bad_reply(
            state, empty=not text.strip(), objection="it is not in the form that was asked for; call final_answer" if wrong_form else None
        )
        return
    raw = json.dumps(arguments, ensure_ascii=False)
    state.unmet = owed(state, state.history, answered=True)
    state.calls = (CallRecord(f"answer{turn.number}", FINAL_ANSWER, raw, status="admitted", text_answer=True),)
    state.phase = "batch"


def bad_reply(state: RunState, *, empty: bool, objection: str | None = None) -> None:
    """Climb one rung of the ladder."""
    turn = state.turns.last
    state.phase, state.calls = "plan", ()
    if turn.relaxed:
        end_run(state, "stalled")
        return
    state.bad_replies += 1
    log.warning("run %s, turn %d: no usable reply (%d running)", state.run_id, turn.number, state.bad_replies)
    if state.bad_replies == NUDGE or objection is not None:
        state.messages = state.messages.add(Message("user", nudge_text(turn.permit, empty=empty, objection=objection), kind="nudge"))
        state.counters = replace(state.counters, nudges=state.counters.nudges + 1)


def advance(state: RunState) -> bool:
    """Admit what can be admitted, record what is done; True when the batch is closed."""
    while True:
        before = state.recorded
        # First the record, so that what is decided next is decided about the history as it is.
        _record_prefix(state)
        if state.recorded == len(state.calls):
            state.stale = ()
            _close_turn(state)
            return True
        admit_waiting(state)
        if state.recorded == before:
            return False


def _record_prefix(state: RunState) -> None:
    while state.recorded < len(state.calls) and state.calls[state.recorded].status == "done":
        record = state.calls[state.recorded]
        state.recorded += 1
        if record.text_answer:
            continue
        state.history = state.history.add(step_of(record))
        state.messages = state.messages.add(Message("tool", record.text, call_id=record.call_id))
        if record.outcome is Outcome.REFUSED:
            # The reason may quote what the model wrote, which is for the record only.
            log.warning("run %s, turn %d: a call of %.80r was refused", state.run_id, len(state.turns), record.name)
            state.counters = replace(state.counters, refusals=state.counters.refusals + 1)
        elif record.outcome is Outcome.OK and state.choice is not None and not state.released and state.choice.released_by(record.name):
            state.released, state.standing = True, None


def _close_turn(state: RunState) -> None:
    turn, calls = state.turns.last, state.calls
    if calls[0].text_answer:
        _close_text(state, calls[0])
        return
    for record in calls:
        if record.name == FINAL_ANSWER and record.outcome is Outcome.OK:
            _take_answer(state, record, "final_answer")
            return
    outcomes = [record.outcome for record in calls]
    if Outcome.OK in outcomes:
        state.failing_turns = state.bad_replies = 0
    elif Outcome.FAILED in outcomes:
        state.failing_turns += 1
        if any(record.ran for record in calls):
            state.bad_replies = 0
    guard = plan_of(state).guard
    if guard is not None:
        first = state.carried + turn.first_step
        raw = [record.shown_arguments for record in calls]
        state.guard, state.measure = loop_guard.look(guard, state.guard, state.history, first, raw, state.present.repeatable)
        if state.measure is not None:
            log.warning("run %s: loop guard, hit %d: %s", state.run_id, state.guard.hits, state.measure.reason)
    state.calls, state.recorded, state.phase = (), 0, "plan"
    if state.exposure:
        apply_changes(state)
    if turn.relaxed:
        end_run(state, "stalled")


def _close_text(state: RunState, record: CallRecord) -> None:
    if record.outcome is not Outcome.OK:
        bad_reply(state, empty=False, objection=record.text)
        return
    _take_answer(state, record, "text_answer")
    expected = plan_of(state).answers_in_text or (state.choice is not None and state.choice.text_is_expected)
    if not expected:
        state.counters = replace(state.counters, coercions=state.counters.coercions + 1)
        log.warning("run %s: a text was taken for the answer where a call of final_answer was expected", state.run_id)


def _take_answer(state: RunState, record: CallRecord, reason: StopReason) -> None:
    state.answer, state.output = plan_of(state).final.text_of(record.output), record.output
    end_run(state, reason)


def close_all(state: RunState, why: str) -> None:
    """Give every call that is still open its one result, and record them."""
    calls = []
    for record in state.calls:
        if record.status != "done":
            if record.started:
                text = f"{why} while this call ran; it may still have taken effect"
                record = record.changed(status="done", outcome=Outcome.FAILED, text=text)
            else:
                record = record.changed(status="done", outcome=Outcome.REFUSED, text=record.refusal or f"{why} before this call ran")
        calls.append(record)
    for call_id in tuple(state.children):
        retire(state, call_id)
    state.calls = tuple(calls)
    _record_prefix(state)
    apply_changes(state)
    state.calls, state.recorded = (), 0

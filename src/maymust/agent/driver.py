"""The asyncio driver: performs the loop's actions and applies what comes back. There is no other loop."""

from __future__ import annotations

import asyncio
import copy
import inspect
import json
import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NoReturn

from maymust.agent import events
from maymust.agent.actions import (
    Ask,
    CallModel,
    Cancelled,
    Compact,
    EvaluateRules,
    Finish,
    ModelReplied,
    RulesGiven,
    RunTools,
)
from maymust.agent.answer_stream import AnswerStream, settle_answer, withdraw
from maymust.agent.around_model_call import checked_reply, compact_conversation, note_failure, note_losses
from maymust.agent.call_record import CallRecord
from maymust.agent.call_runner import CallRunner
from maymust.agent.fragments import check_rules
from maymust.agent.planning import run_view
from maymust.agent.question_order import QuestionOrder
from maymust.agent.recovering import recover
from maymust.agent.reducer import next_action
from maymust.agent.secrets import shown_reply, veil_of
from maymust.agent.session import Session
from maymust.agent.state import RunState
from maymust.core.rule import Rule
from maymust.errors import MaymustError, PolicyError, RunError, text_of
from maymust.models.chat_model import CallDelta, ModelReply, ModelRequest, TextDelta
from maymust.models.failures import ModelFailure, OutputError

log: logging.Logger = logging.getLogger(__name__)

PIECES = (events.TextDelta, events.ArgumentsDelta, events.AnswerDelta)


async def drive(session: Session) -> None:
    """Run until the run ends or waits for a person; `session.state` and `session.pending` tell which.

    Raises MaymustError (with `.state`) for what breaks the run; a cancellation passes unchanged. In both cases every call of the
    state has its result, and the state can be resumed.
    """
    flight: dict[str, asyncio.Task[None]] = {}
    order = QuestionOrder()
    try:
        await _start(session)
        if session.recovers:
            await recover(session)
        while True:
            if session.listeners.paced:
                await session.listeners.caught_up()
            action = next_action(session.state)
            if isinstance(action, Compact):
                await compact_conversation(session, action.messages)
            elif isinstance(action, CallModel):
                await _call_model(session, action.request)
            elif isinstance(action, RunTools):
                await _run_tools(session, action.calls, flight, order)
            elif isinstance(action, EvaluateRules):
                await _evaluate(session, action.requirements)
            elif isinstance(action, Ask):
                session.pending = action.calls
                _emit(session, events.RunPaused, pending=action.calls)
                return
            elif isinstance(action, Finish):
                _emit(session, events.RunFinished, stop_reason=action.stop_reason, answer=session.state.answer)
                return
    except asyncio.CancelledError:
        await _land(session, flight)
        session.apply(Cancelled())
        withdraw(session, "the run was stopped")
        _emit(session, events.RunFinished, stop_reason="aborted")
        raise
    except Exception as fault:
        await _land(session, flight)
        _break_off(session, fault)
    finally:
        session.close()


def _break_off(session: Session, fault: Exception) -> NoReturn:
    session.apply(Cancelled(error=f"{type(fault).__name__}: {text_of(fault)}"))
    error = fault if isinstance(fault, MaymustError) else RunError(f"the run broke off: {type(fault).__name__}: {text_of(fault)}")
    error.state = session.state
    withdraw(session, "the run broke off")
    _emit(session, events.RunFinished, stop_reason="error", error=text_of(error))
    if error is fault:
        raise error
    raise error from fault


async def _land(session: Session, flight: dict[str, asyncio.Task[None]]) -> None:
    """Cancel what is in flight and wait for it, whatever else is cancelled meanwhile."""
    session.over = True
    for task in flight.values():
        task.cancel()
    while flight:
        try:
            await asyncio.wait(flight.values())
        except asyncio.CancelledError:
            continue
        for task in flight.values():
            if not task.cancelled():
                task.exception()
        flight.clear()


async def _start(session: Session) -> None:
    resumed = session.state.started
    _emit(session, events.RunStarted, resumed=resumed, agent=session.plan.agent, model=session.model.name)
    if not resumed:
        memories: dict[str, dict[str, Any]] = {}
        for requirement in session.plan.policy.requirements:
            hook = getattr(requirement, "on_start", None)
            if hook is not None:
                view = replace(run_view(session.state, requirement.name), memory={})
                answer = hook(view)
                if inspect.isawaitable(answer):
                    await answer
                if view.memory:
                    memories[requirement.name] = view.memory
        session.state.started = True
        if memories:
            session.apply(RulesGiven({}, memories))


async def _call_model(session: Session, request: ModelRequest) -> None:
    state = session.state
    number = len(state.turns) + 1
    if session.listeners.any:
        _announce(session, number)
    reply: ModelReply | None = None
    if session.listeners.wants(events.ModelCallStarted):
        started = events.ModelCallStarted(state.run_id, number, request)
        await session.listeners.ask(started)
        if started.refusal is not None:
            raise RunError(f"the model call of turn {number} was refused: {started.refusal}")
        if started.output is not None:
            given = ModelReply(text=started.output) if isinstance(started.output, str) else started.output
            reply = checked_reply(given, f"a listener to the model call of turn {number}")
    if reply is None:
        streams = session.listeners.any and any(map(session.listeners.wants, PIECES))
        try:
            given = await (_stream(session, request) if streams else session.model.complete(request))
        except (ModelFailure, OutputError) as failure:
            note_failure(session, number, failure)
            raise
        reply = checked_reply(given, f"the model {session.model.name}")
    if reply.lost or reply.retries:
        note_losses(session, number, reply)
    before = session.state
    if session.listeners.any:
        _emit(session, events.ModelCallFinished, number=number, reply=shown_reply(reply, before.present))
    session.apply(ModelReplied(reply, session.seconds))
    if session.listeners.any:
        _report(session, before)
        settle_answer(session)


def _announce(session: Session, number: int) -> None:
    coming = session.state.coming
    if coming is None or coming.permit is None:
        return
    if session.state.tools is not session.told_tools:
        session.told_tools = session.state.tools
        _emit(session, events.ToolsChanged, tools=tuple(tool.name for tool in session.told_tools))
    measure = coming.measure.reason if coming.measure is not None else None
    told = {"relaxed": coming.relaxed, "grace": coming.grace, "measure": measure, "seconds": session.deciding}
    _emit(session, events.TurnStarted, number=number, permit=coming.permit, **told)
    for tool, requirement in coming.permit.lapsed:
        _emit(session, events.ForceLapsed, tool=tool, requirement=requirement)
    if coming.relaxed:
        _emit(session, events.LadderRung, rung=3, text="obligations are relaxed and the answer is forced")


def _report(session: Session, before: RunState) -> None:
    """Tell what applying the reply has changed apart from calls."""
    after = session.state
    if after.bad_replies > before.bad_replies and after.bad_replies < 3:
        nudged = after.counters.nudges > before.counters.nudges
        _emit(session, events.LadderRung, rung=after.bad_replies, text=after.messages[-1].text if nudged else "")


async def _stream(session: Session, request: ModelRequest) -> ModelReply:
    coming = session.state.coming
    answer = AnswerStream(session, coming.permit) if coming is not None and coming.permit is not None else None
    reply: ModelReply | None = None
    async for item in session.model.stream(request):
        if isinstance(item, TextDelta):
            _emit(session, events.TextDelta, text=item.text)
            if answer is not None:
                answer.text(item.text)
        elif isinstance(item, CallDelta):
            piece = item.arguments if veil_of(item.name, session.state.present) is None else ""
            _emit(session, events.ArgumentsDelta, call_id=item.call_id, tool=item.name, arguments=piece)
            if answer is not None:
                answer.arguments(item)
        else:
            reply = item
        if session.listeners.paced:
            await session.listeners.caught_up()
    if reply is None:
        raise RunError(f"the model {session.model.name} ended its stream without a reply")
    return reply


async def _run_tools(session: Session, calls: tuple[CallRecord, ...], flight: dict[str, asyncio.Task[None]], order: QuestionOrder) -> None:
    fresh = [call for call in calls if call.call_id not in flight] if flight else calls
    order.open([call.call_id for call in fresh])
    if session.listeners.any:
        _tell_admitted(session, fresh)
    before = session.state
    if len(fresh) == 1 and not flight:
        await CallRunner(session, fresh[0], order).run()
    else:
        for call in fresh:
            flight[call.call_id] = asyncio.create_task(CallRunner(session, call, order).run(), name=f"maymust call {call.call_id}")
        done, _ = await asyncio.wait(flight.values(), return_when=asyncio.FIRST_COMPLETED)
        for call_id in [call_id for call_id, task in flight.items() if task in done]:
            flight.pop(call_id).result()
    if session.listeners.any:
        _report_batch(session, before)


def _tell_admitted(session: Session, calls: Sequence[CallRecord]) -> None:
    for call in calls:
        # A call that was started, or that a person was asked about, was admitted before the pause.
        if call.refusal is None and not (call.text_answer or call.started or call.approvals):
            _emit(session, events.CallAdmitted, call_id=call.call_id, tool=call.name)


def _report_batch(session: Session, before: RunState) -> None:
    after = session.state
    if after.guard.hits > before.guard.hits and after.measure is not None:
        _emit(session, events.GuardHit, tool=after.measure.tool, hits=after.guard.hits, reason=after.measure.reason)
    if after.counters.coercions > before.counters.coercions:
        _emit(session, events.TextCoerced, text=after.answer or "")
    if after.bad_replies > before.bad_replies:
        _emit(session, events.LadderRung, rung=after.bad_replies, text=after.messages[-1].text)
    settle_answer(session)


async def _evaluate(session: Session, names: tuple[str, ...]) -> None:
    """Ask custom requirements. One that raises, or gives no rules, stops the run: its tools stay closed."""
    state, now = session.state, time.time()
    history = state.stale_history if state.stale_history is not None else state.history
    rules: dict[str, tuple[Rule, ...]] = {}
    memories: dict[str, dict[str, Any]] = {}
    for requirement in session.plan.policy.requirements:
        if requirement.name not in names:
            continue
        before = state.memories.get(requirement.name)
        memory = copy.deepcopy(before) if before else {}
        view = run_view(state, requirement.name)
        view = replace(view, memory=memory, now=now)
        try:
            said: Any = requirement.rules(history, view)
            if inspect.isawaitable(said):
                said = await said
            rules[requirement.name] = () if said is None else (said,) if isinstance(said, Rule) else tuple(said)
            check_rules(requirement.name, rules[requirement.name])
        except MaymustError:
            raise
        except Exception as fault:
            raise PolicyError(
                f"the requirement {requirement.name!r} raised {type(fault).__name__}: {text_of(fault)}; nothing was called"
            ) from fault
        if memory or before:
            kept = _as_json(memory, requirement.name)
            if kept != (before or {}):
                memories[requirement.name] = kept
    session.apply(RulesGiven(rules, memories, now))


def _as_json(memory: dict[str, Any], requirement: str) -> dict[str, Any]:
    """A copy of a requirement's memory. Raises PolicyError for what is no JSON, since it could not be stored."""
    try:
        kept: dict[str, Any] = json.loads(json.dumps(memory, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as fault:
        raise PolicyError(
            f"the requirement {requirement!r} put something into run.memory that has no JSON form: {fault}; "
            "keep text, numbers, lists and dicts there, and what is not to be stored in deps"
        ) from fault
    return kept


def _emit(session: Session, kind: type[Any], **fields: Any) -> None:
    if session.listeners.wants(kind):
        session.listeners.emit(kind(run_id=session.state.run_id, **fields))

"""Calls whose process ended while their body ran: what is done about them when the run goes on elsewhere.

A tool that changes nothing, or nothing more, is run again with the same key: that needs no code here. One that may do harm is never
repeated blindly: its `resolve` function finds out what became of the call, or a person is asked.
"""

from __future__ import annotations

import asyncio
import inspect
import logging

from maymust.agent.actions import Decided, Interrupted, ToolFinished
from maymust.agent.call_arguments import read_arguments
from maymust.agent.call_outcome import shorten
from maymust.agent.call_record import CallRecord
from maymust.agent.events import QuestionAsked
from maymust.agent.pending import pending_calls
from maymust.agent.present import Present
from maymust.agent.secrets import veil_of
from maymust.agent.session import Session
from maymust.core.step import Outcome
from maymust.errors import RunError
from maymust.requirements.permission import Decision
from maymust.tools.context import FunctionInvocationContext
from maymust.tools.function_tool import Tool
from maymust.tools.happened import Happened
from maymust.tools.output import render_output

log: logging.Logger = logging.getLogger(__name__)


async def recover(session: Session) -> None:
    """Settle the calls that were under way when the process ended. Raises RunError for an answer of `resolve` that is none."""
    present = session.state.present
    for record in session.state.calls:
        tool = present.by_name.get(record.name)
        under_way = record.status == "admitted" and record.started and not record.interrupted and record.refusal is None
        if not under_way or tool is None or tool.effect != "once":
            continue
        found = await _found_out(session, tool, record)
        if isinstance(found, Happened):
            session.apply(event_of_happened(present, record, found))
            continue
        session.apply(Interrupted(record.call_id, f"the process ended while {tool.name} ran, so it may have taken effect"))
        if found is False:
            # What has not happened needs nobody's word to be done.
            session.apply(Decided(record.call_id, True, "it had not taken effect", "resolve"))
        elif session.listeners.wants(QuestionAsked):
            asked = next(call for call in pending_calls(session.state) if call.call_id == record.call_id)
            session.listeners.emit(QuestionAsked(session.state.run_id, asked))


async def _found_out(session: Session, tool: Tool, record: CallRecord) -> Happened | bool | None:
    """What the tool's `resolve` says: it happened, it did not (False), or nobody knows (None)."""
    if tool.resolve is None:
        return None
    arguments, _ = read_arguments(record.raw_arguments)
    context = FunctionInvocationContext(
        name=record.name,
        function=tool,
        call_id=record.call_id,
        arguments=arguments,
        raw_arguments=record.raw_arguments,
        idempotency_key=f"{session.state.run_id}/{len(session.state.turns)}/{record.call_id}",
        run=session,
    )
    try:
        is_async = inspect.iscoroutinefunction(tool.resolve)
        said = await tool.resolve(context) if is_async else await asyncio.to_thread(tool.resolve, context)
        if inspect.isawaitable(said):
            said = await said
    except Exception:
        log.exception("run %s: resolve of %s raised, so a person is asked about call %s", session.state.run_id, tool.name, record.call_id)
        return None
    if said is None or said is False or isinstance(said, Happened):
        return said
    raise RunError(
        f"resolve of {tool.name} gave {type(said).__name__}; give Happened(output), False (it did not happen), or None (not known)"
    )


def event_of_happened(present: Present, record: CallRecord, said: Happened) -> ToolFinished:
    """The event of an interrupted call that took effect."""
    output, text = None, f"{record.name} took effect before the process ended; what it returned is not known"
    if said.output is not None:
        output, text = render_output(said.output)
        veil = veil_of(record.name, present)
        if veil is not None:
            veil.learn(read_arguments(record.raw_arguments)[0])
            output, text = veil.value(output), veil.text(text)
    return ToolFinished(record.call_id, Outcome.OK, text, output, record.arguments)


def event_of_left(record: CallRecord, said: Decision) -> ToolFinished:
    """The event of an interrupted call that is not to be repeated. It ran, so it counts as failed, not as denied."""
    why = f": {said.reason}" if said.reason else ""
    text = f"the process ended while {record.name} ran, so it may have taken effect; {said.by or 'a person'} decided not to repeat it{why}"
    return ToolFinished(record.call_id, Outcome.FAILED, shorten(text), None, record.arguments)

"""What goes with a model call beside the call: the conversation is made shorter before it, what was lost or failed is told after it."""

from __future__ import annotations

import logging
from typing import Any

from maymust.agent import events
from maymust.agent.actions import MessagesCompacted, ModelFailed
from maymust.agent.compaction import Compacted, tokens_of, valid
from maymust.agent.session import Session
from maymust.errors import RunError
from maymust.models.chat_model import ModelReply, Usage
from maymust.models.failures import ModelFailure, OutputError
from maymust.models.message import Message, ToolCall

log: logging.Logger = logging.getLogger(__name__)


async def compact_conversation(session: Session, messages: tuple[Message, ...]) -> None:
    """Make the conversation shorter. What fails here costs nothing but the attempt: the run goes on with all messages."""
    compaction, made = session.plan.compaction, None
    assert compaction is not None
    try:
        made = await compaction.compact(messages, session.model)
        if not isinstance(made, Compacted | None):
            raise TypeError(
                f"{compaction!r}.compact() gave {made!r}; it has to give a Compacted, or None to leave the conversation as it is"
            )
    except Exception:
        made = None
        log.exception("run %s: the conversation could not be compacted; it goes on as it is", session.state.run_id)
    if made is not None and (wrong := valid(messages, made)):
        log.error("run %s: the compaction %r is not used: %s", session.state.run_id, compaction, wrong)
        made = Compacted((), 0, made.usage)
    before = session.state.messages
    session.apply(MessagesCompacted(made))
    if made is not None and made.replaces and session.listeners.wants(events.ConversationCompacted):
        sizes = tokens_of(before), tokens_of(session.state.messages)
        session.listeners.emit(events.ConversationCompacted(session.state.run_id, *sizes))


def note_losses(session: Session, number: int, reply: ModelReply) -> None:
    """Tell what the provider refused, and how often it was tried."""
    for lost in reply.lost:
        session.listeners.emit(events.AbilityLost(session.state.run_id, number, lost.ability, lost.why))
    if reply.retries:
        session.listeners.emit(events.ModelRetried(session.state.run_id, number, reply.retries))


def note_failure(session: Session, number: int, failure: ModelFailure | OutputError) -> None:
    """What was used is counted, though nothing came of it."""
    kind, attempts = (failure.kind, failure.attempts) if isinstance(failure, ModelFailure) else ("output", failure.usage.requests)
    lost = failure.lost if isinstance(failure, ModelFailure) else ()
    session.apply(ModelFailed(failure.usage, tuple(one.ability for one in lost)))
    session.listeners.emit(events.ModelCallFailed(session.state.run_id, number, kind, attempts, str(failure)))


def checked_reply(reply: Any, who: str) -> ModelReply:
    """The reply. Raises RunError for what is none, and for one whose parts are not of the kinds they have to be: models are anybody's."""
    if not isinstance(reply, ModelReply):
        raise RunError(f"{who} gave {reply!r:.80}, and a reply is a ModelReply")
    if not _is_whole(reply):
        raise RunError(f"{who} {_fault_of(reply)}")
    return reply


def _is_whole(reply: Any) -> bool:
    whole = isinstance(reply.text, str) and isinstance(reply.usage, Usage) and isinstance(reply.calls, (tuple, list))
    return whole and not any(map(_call_fault, reply.calls))


def _fault_of(reply: Any) -> str:
    for name, kind in (("text", str), ("usage", Usage), ("calls", tuple | list)):
        if not isinstance(getattr(reply, name), kind):
            return f"gave a ModelReply with {name}={getattr(reply, name)!r:.80}"
    return next(filter(None, map(_call_fault, reply.calls)))


def _call_fault(call: Any) -> str:
    # What stands in the arguments is not shown: there may be secrets in them.
    if not issubclass(type(call), ToolCall):
        return f"gave a {type(call).__name__} for a call, and a call is a ToolCall"
    if not isinstance(call.name, str):
        return f"asked for a tool called {call.name!r:.80}, and a name is a text"
    if not isinstance(call.raw_arguments, str):
        return f"asked for {call.name} with a {type(call.raw_arguments).__name__} as raw_arguments; give the text of a JSON object"
    return ""

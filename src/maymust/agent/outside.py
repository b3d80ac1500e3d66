"""What of a run is from outside, and what of it goes on into other runs: conversations that continue, and child agents."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from maymust.agent.call_record import CallRecord
from maymust.agent.state import RunState
from maymust.core.history import History
from maymust.core.step import Outcome, Step
from maymust.models.message import Message

_KEPT = 300


def is_untrusted(state: RunState, record: CallRecord, outcome: Outcome) -> bool:
    """Whether the result of this call brings output from outside: by its tool, or because a child agent has read such output."""
    if not outcome.is_invocation:
        return False
    if record.name in state.present.untrusted:
        return True
    child = state.children.get(record.call_id)
    return child is not None and any(step.untrusted for step in child.history)


def read_before(earlier: RunState | None, *, carries_history: bool) -> tuple[Step, ...]:
    """What the model may have read in the conversation that goes on: for each tool one step, one from outside if there is any."""
    if earlier is None:
        return ()
    steps = earlier.before if carries_history else (*earlier.before, *_read(earlier.history))
    return tuple(_one_each(steps))


def read_by_caller(caller: RunState) -> tuple[Step, ...]:
    """What the agent that calls a child has read from outside: its words to the child may come from there."""
    return tuple(step for step in _one_each((*caller.before, *_read(caller.history))) if step.untrusted)


def words_of(messages: Iterable[Message]) -> tuple[str, ...]:
    """What the user says in these messages."""
    theirs = [message for message in messages if message.role == "user" and not message.kind]
    return tuple(text for message in theirs for text in (message.text, *(part.text or "" for part in message.parts)) if text.strip())


def _read(history: History) -> Iterable[Step]:
    return (step for step in history if step.outcome.is_invocation)


def _one_each(steps: Iterable[Step]) -> list[Step]:
    found: dict[str, Step] = {}
    for step in steps:
        known = found.get(step.tool)
        if known is None or (step.untrusted and not known.untrusted):
            found[step.tool] = replace(step, arguments=None, output=None, text=(step.text or "")[:_KEPT] or None)
    return list(found.values())

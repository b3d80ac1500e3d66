"""The calls of a run that wait for a person."""

from __future__ import annotations

from dataclasses import replace

from maymust.agent.call_record import PendingCall
from maymust.agent.state import RunState


def pending_calls(state: RunState) -> tuple[PendingCall, ...]:
    """The calls that wait for a person, as copies; those of a child agent as `parent/child`."""
    found: list[PendingCall] = []
    for record in state.calls:
        if record.status != "pending":
            continue
        child = state.children.get(record.call_id)
        if child is None:
            arguments = dict(record.arguments or {})
            found.append(PendingCall(record.call_id, record.name, arguments, record.questions, record.reasons, record.interrupted))
        else:
            found += [replace(call, call_id=f"{record.call_id}/{call.call_id}") for call in pending_calls(child)]
    return tuple(found)

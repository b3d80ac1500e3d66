"""When a conversation is compacted, and what that changes in the state of a run."""

from __future__ import annotations

from dataclasses import replace

from maymust.agent.compaction import Compacted, tokens_of
from maymust.agent.planning import plan_of
from maymust.agent.state import RunState
from maymust.core.log import Log


def compaction_due(state: RunState) -> bool:
    """Whether the conversation has grown over the limit, and by a quarter of it since it was compacted last.

    At most one attempt a turn: where compacting gains little, it must not break the prefix every turn. The provider's count goes
    before our estimate.
    """
    compaction = plan_of(state).compaction
    if compaction is None or state.compacted_at == len(state.turns) or state.compacted >= len(state.messages):
        return False
    counted, estimated = state.turns[-1].usage.input_tokens if state.turns else 0, tokens_of(state.messages)
    grown = not state.compacted or estimated >= state.compacted_size + compaction.limit // 4
    return grown and (counted or estimated) >= compaction.limit


def take_compacted(state: RunState, made: Compacted | None) -> None:
    """Put what was made in the place of what it stands for. For a state under construction."""
    state.compacted_at = len(state.turns)
    if made is None:
        return
    state.usage += made.usage
    if not made.replaces:
        return
    plan, done = plan_of(state), state.compacted
    rest = state.messages[done + made.replaces :]
    fresh = made.messages
    if plan.status_stays:
        # The prefix is another one now: what was said about tools is said anew, and reasoning that is bound to the old one is void.
        rest = tuple(message for message in rest if message.kind != "status")
        fresh = tuple(message for message in fresh if message.kind != "status")
    if plan.told.prefix_bound:
        rest, fresh = (tuple(replace(message, extra={}) if message.extra else message for message in part) for part in (rest, fresh))
    state.offers, state.last_status, state.request = (), "", None
    state.messages = Log((*state.messages[:done], *fresh, *rest))
    state.compacted, state.compacted_size = done + len(fresh), tokens_of(state.messages)

"""How the offer changed in the course of a run, for models that are told so inside the conversation (design 3.11)."""

from __future__ import annotations

from maymust.agent.planning import plan_of
from maymust.agent.state import RunState
from maymust.models.chat_model import Offer, ToolDefinition


def offers_of(state: RunState, menu: tuple[ToolDefinition, ...], allowed: tuple[str, ...], choice: str) -> tuple[Offer, ...]:
    """The offers so far and, if it differs, that of the coming turn. Empty for models that need none."""
    if not plan_of(state).tracks_offers:
        return ()
    before = state.offers
    known = {tool.name for offer in before for tool in offer.added}
    added = tuple(tool for tool in menu if tool.name not in known)
    wanted = allowed if choice in ("auto", "required", "none") else (choice,)
    if choice == "none" and before:
        wanted = before[-1].allowed
    if before and not added and wanted == before[-1].allowed:
        return before
    return (*before, Offer(len(state.messages), added, wanted))

"""The ladder: what a model that gives no usable reply hears, one rung a turn (design 3.6)."""

from __future__ import annotations

from maymust.core.permit import Permit
from maymust.core.tool_spec import FINAL_ANSWER

NUDGE, AGAIN, RELAX = 1, 2, 3
"""The rungs: after so many bad replies running the model is nudged, asked again, relaxed."""


def nudge_text(permit: Permit, *, empty: bool, objection: str | None = None) -> str:
    """What to say after a reply that cannot be used.

    `objection` is what is wrong with a text that was given as the answer.
    """
    if objection:
        return f"That is not accepted as the answer: {objection}"
    opening = "Your reply was empty." if empty else "A text is not enough here."
    if permit.forced and permit.forced != FINAL_ANSWER:
        return f"{opening} You have to call {permit.forced} now."
    missing = "; ".join(permit.reasons.get(FINAL_ANSWER, ()))
    if not permit.may_stop and missing:
        return f"{opening} You cannot finish yet: {missing}. Call one of: {', '.join(permit.allowed)}."
    return f"{opening} Call one of: {', '.join(permit.allowed)}."

"""What the model reads when a call is not admitted: why, and what would unlock it."""

from __future__ import annotations

from collections.abc import Sequence

from maymust.core.permit import Permit
from maymust.core.tool_spec import did_you_mean
from maymust.core.verdict import Verdict

_LONGEST = 100
"""Characters of a name that are said back to a model which has made it up."""


def refusal(permit: Permit | None, name: str, offered: Sequence[str]) -> str:
    """Return the text for a refused call.

    permit    the permit that refuses the call; None for a name that is no tool
    name      the name the model wrote
    offered   the tools that the model may call now

    A hidden tool reads exactly like a name that does not exist.
    """
    on_offer = f"you may call: {', '.join(offered)}" if offered else "no tool may be called now"
    verdict = permit.verdict(name) if permit is not None and name in permit.tools else None
    if permit is None or verdict is None or verdict is Verdict.HIDDEN:
        near = did_you_mean(name, offered if permit is None else _visible(permit))
        shown = name if len(name) <= _LONGEST else f"{name[:_LONGEST]}…"
        return f"there is no tool called '{shown}'{near or ';'} {on_offer}"
    if verdict is Verdict.WITHHELD:
        return f"not now: {permit.forced} has to be called first; {on_offer}"
    if verdict is Verdict.DENIED:
        texts = tuple(dict.fromkeys((*permit.reasons[name], *permit.unlocks(name))))
        return f"not now: {'; '.join(texts) if texts else f'{name} is closed at this point'}; {on_offer}"
    return f"not now: {name} was not on offer in this turn; {on_offer}"


def _visible(permit: Permit) -> tuple[str, ...]:
    return tuple(name for name in permit.tools if name not in permit.hidden)

"""The error of a permit that allows nothing."""

from __future__ import annotations

from maymust.core.folded import Folded
from maymust.core.permit import Permit
from maymust.errors import DeadEndError


def dead_end(permit: Permit, folded: Folded) -> DeadEndError:
    """The error of a permit that allows nothing, naming everyone who has a part in it."""
    parts = []
    names: dict[str, None] = {}
    for tool in folded.tools:
        closers = folded.closers(tool)
        by = dict.fromkeys(voice.requirement for voice in closers)
        names.update(by)
        why = "; ".join(dict.fromkeys(reason for voice in closers if (reason := voice.reason)))
        parts.append(f"{tool} is closed by {' and '.join(by)}{f' ({why})' if why else ''}")
    return DeadEndError(
        f"nothing may be called and the run may not end: {', '.join(parts)}. Loosen one of these requirements",
        permit=permit,
        requirements=tuple(names),
    )

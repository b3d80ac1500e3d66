"""The run can go on for ever, and never end."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.core.tool_spec import FINAL_ANSWER
from maymust.requirements.wording import listed
from maymust.verify.checks.way_out import way_out
from maymust.verify.finding import LIVELOCK, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """At most one finding: the nearest state without a way to the end, unless there is none anywhere."""
    doom = survey.livelock
    if doom is None or (survey.min_steps is None and survey.complete):
        return
    witness = words(doom.path)
    why = (
        f": {listed(doom.owing)} still {'owes' if len(doom.owing) == 1 else 'owe'} a call that can no longer be made" if doom.owing else ""
    )
    if not why and doom.forced is not None:
        why = f": {doom.forced} is forced, and one force follows the other"
    yield found(
        LIVELOCK,
        f"{after_text(witness)}, the run can go on but never end{why}",
        way_out(survey, doom),
        rules=doom.owing or doom.closed.get(FINAL_ANSWER, ()) or survey.forcing(doom),
        witness=witness,
    )

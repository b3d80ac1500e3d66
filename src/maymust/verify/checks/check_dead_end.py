"""Custom checks may close everything that is open: as long as they say no, the run raises DeadEndError."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import CHECK_DEAD_END, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """At most one finding."""
    if survey.check_dead_end is None:
        return
    path, names = survey.check_dead_end
    witness = words(path)
    yield found(
        CHECK_DEAD_END,
        f"{after_text(witness)}, nothing may be called and the run may not end "
        f"as long as {listed(names)} {'says' if len(names) == 1 else 'say'} no",
        "Leave a tool open that the check does not close",
        rules=tuple(dict.fromkeys(one.name for one in survey.automaton.opaque if one.text in names)),
        witness=witness,
    )

"""A rule closes, forces and prevents nothing in any run."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.verify.finding import SILENT_RULE, Finding, found
from maymust.verify.survey import Survey


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each rule."""
    for rule in survey.silent:
        yield found(
            SILENT_RULE,
            f"{rule} never says anything: no run gets where it would speak",
            "Leave it out, or check what it is for",
            rules=(rule,),
        )

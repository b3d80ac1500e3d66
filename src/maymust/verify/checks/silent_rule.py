"""A rule closes, forces, prevents and narrows nothing in any run."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.verify.finding import SILENT_RULE, Finding, found
from maymust.verify.survey import Survey


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each rule. What limits arguments says something in every run that calls its tool."""
    narrowing = {one.name for one in survey.automaton.requirements if getattr(one, "narrows", None) is not None}
    for rule in survey.silent:
        if rule in narrowing:
            continue
        yield found(
            SILENT_RULE,
            f"{rule} never says anything: no run gets where it would speak",
            "Leave it out, or check what it is for",
            rules=(rule,),
        )

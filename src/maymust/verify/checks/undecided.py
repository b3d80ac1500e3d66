"""The search hit its limit: what was not found may still be there."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.verify.finding import UNDECIDED, Finding, found
from maymust.verify.survey import Survey


def check(survey: Survey) -> Iterator[Finding]:
    """At most one finding."""
    if not survey.complete:
        yield found(
            UNDECIDED,
            f"the search stopped at its limit after {survey.states} states: what it did not find may still be there",
            "Give verify a higher limit, or verify parts of the policy",
        )

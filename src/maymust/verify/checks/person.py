"""An owed tool rests on a person's yes: with a no for ever the run cannot end."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import RESTS_ON_PERSON, Finding, found
from maymust.verify.survey import Survey


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each tool that every run needs and a person is asked about."""
    for tool in survey.needed:
        rules = survey.automaton.asked.get(survey.automaton.place(tool), ())
        if rules:
            yield found(
                RESTS_ON_PERSON,
                f"every run that ends needs {tool}, and {listed(rules)} asks a person about it: a no keeps the run from ending",
                "Give the run another way to end, or leave the obligation out",
                rules=rules,
            )

"""A tool can be called in no run."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import DEAD_TOOL, Finding, found
from maymust.verify.survey import Survey


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each tool."""
    for tool in survey.dead_tools:
        rules = survey.rules_on(tool)
        yield found(
            DEAD_TOOL,
            f"{tool} can never be called{f' ({listed(rules)})' if rules else ''}",
            "Loosen its rules, or leave the tool out",
            rules=rules,
        )

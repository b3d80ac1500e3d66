"""The shortest run that ends takes more turns than there are."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.core.tool_spec import FINAL_ANSWER
from maymust.verify.finding import OVER_BUDGET, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import words


def check(survey: Survey) -> Iterator[Finding]:
    """At most one finding."""
    if survey.max_turns is None or survey.min_steps is None or survey.finish is None or survey.min_steps <= survey.max_turns:
        return
    way = ", ".join((*words(survey.finish), FINAL_ANSWER))
    yield found(
        OVER_BUDGET,
        f"no run ends within {survey.max_turns} turns: the shortest one takes {survey.min_steps} ({way})",
        f"Allow at least {survey.min_steps} turns, or owe less",
        rules=survey.owing_at_start(),
    )

"""A rule names a tool that nobody provides."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.core.tool_spec import FINAL_ANSWER
from maymust.requirements.wording import listed
from maymust.verify.explore import named_by
from maymust.verify.finding import ABSENT_TOOL, Finding, found
from maymust.verify.survey import Survey


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each such tool, with the rules that name it."""
    automaton = survey.automaton
    world = automaton.world
    provided = {*world.present, *(name for names in world.loads.values() for name in names), FINAL_ANSWER}
    for tool in automaton.tools:
        if tool in provided:
            continue
        rules = tuple(dict.fromkeys(name for name, guard in automaton.compiled.guards if tool in named_by(guard)))
        if rules:
            yield found(
                ABSENT_TOOL,
                f"{listed(rules)} {'names' if len(rules) == 1 else 'name'} {tool}, which is not there and which no tool loads",
                "Provide the tool, or leave the rule out; of a rule on an absent tool only its obligation is left",
                rules=rules,
            )

"""No run can end, whatever is called."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.core.tool_spec import FINAL_ANSWER
from maymust.requirements.wording import listed
from maymust.verify.explore import named_by
from maymust.verify.finding import UNREACHABLE, Finding, found
from maymust.verify.survey import Survey


def check(survey: Survey) -> Iterator[Finding]:
    """At most one finding, once everything was looked at."""
    if not survey.complete or survey.min_steps is not None:
        return
    rules = _in_the_way(survey)
    by = f": {listed(rules)} can never {'be' if len(rules) == 1 else 'all be'} satisfied" if rules else ""
    yield found(
        UNREACHABLE,
        f"no run can reach the final answer{by}",
        "Loosen one of these rules, or the prerequisites of their tools",
        rules=rules,
    )


def _in_the_way(survey: Survey) -> tuple[str, ...]:
    """The rules that owe or close the end, and those on the tools they wait for in vain."""
    guards = survey.automaton.compiled.guards
    rules = dict.fromkeys(survey.owing_at_start())
    waiting, seen = [FINAL_ANSWER, *survey.owed_tools(rules)], set[str]()
    while waiting:
        tool = waiting.pop()
        if tool in seen:
            continue
        seen.add(tool)
        for name, guard in guards:
            if guard.target == tool and (guard.needs or tool in survey.dead_tools):
                rules[name] = None
                waiting.extend(name for name in named_by(guard) if name in survey.dead_tools)
    return tuple(rules)

"""One file for each kind of finding. `ALL` is what `verify` asks, in the order of the codes."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from maymust.verify.checks import (
    absent_tool,
    check_conflict,
    check_dead_end,
    check_stuck,
    dead_end,
    dead_tool,
    equal_forces,
    force_closed,
    force_lapses,
    force_unmet,
    foreign_priority,
    livelock,
    over_budget,
    overridden,
    person,
    silent_rule,
    undecided,
    unreachable,
)
from maymust.verify.finding import Finding
from maymust.verify.survey import Survey

ALL: tuple[Callable[[Survey], Iterator[Finding]], ...] = (
    force_closed.check,
    force_unmet.check,
    equal_forces.check,
    overridden.check,
    unreachable.check,
    over_budget.check,
    dead_end.check,
    livelock.check,
    foreign_priority.check,
    force_lapses.check,
    dead_tool.check,
    silent_rule.check,
    person.check,
    absent_tool.check,
    check_dead_end.check,
    check_conflict.check,
    check_stuck.check,
    undecided.check,
)

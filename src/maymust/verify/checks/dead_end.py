"""Nothing may be called, and the run may not end: it raises DeadEndError."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.checks.way_out import way_out
from maymust.verify.finding import DEAD_END, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """At most one finding: the nearest dead end."""
    doom = survey.dead_end
    if doom is None:
        return
    witness = words(doom.path)
    parts = [f"{name} is closed by {listed(rules)}" for name, rules in doom.closed.items()]
    if doom.owing:
        parts.append(f"{listed(doom.owing)} still {'owes' if len(doom.owing) == 1 else 'owe'} a call")
    early = ""
    if survey.doomed is not None and len(survey.doomed.path) < len(doom.path):
        early = f" (already {after_text(words(survey.doomed.path))} the end is out of reach)"
    rules = tuple(dict.fromkeys((*(rule for rules in doom.closed.values() for rule in rules), *doom.owing)))
    yield found(
        DEAD_END,
        f"{after_text(witness)}, nothing may be called and the run may not end: {'; '.join(parts)}{early}",
        way_out(survey, survey.doomed or doom),
        rules=rules,
        witness=witness,
    )

"""A rule forces its tool at a step at which it closes it itself: the run raises ForceUnmetError."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.verify.finding import FORCE_UNMET, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each rule."""
    for note, path in survey.notes.items():
        if note.kind == FORCE_UNMET.name:
            (tool,), (rule,), witness = note.tools, note.rules, words(path)
            yield found(
                FORCE_UNMET,
                f"{after_text(witness)}, {rule} forces {tool} at this step and closes it itself",
                "Change force_at_step, or the condition that closes the tool there",
                rules=note.rules,
                witness=witness,
            )

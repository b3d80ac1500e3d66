"""Several tools are forced by rules of equal rank: which one is called is decided by the order of the tools."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import EQUAL_FORCES, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each set of tools."""
    seen = set()
    for note, path in survey.notes.items():
        if note.kind != EQUAL_FORCES.name or note.tools in seen:
            continue
        seen.add(note.tools)
        witness = words(path)
        yield found(
            EQUAL_FORCES,
            f"{after_text(witness)}, {listed(note.tools)} are forced with equal priority: {note.tools[0]} is called "
            f"only because it is registered first, and the force of {listed(note.tools[1:])} may be lost",
            "Give one of the rules a higher priority, or let one tool be forced after the other",
            rules=note.rules,
            witness=witness,
        )

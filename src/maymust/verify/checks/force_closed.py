"""A tool is forced by one rule while another closes it: the run raises ConflictError."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import FORCE_CLOSED, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each tool and set of forcing rules."""
    seen = set()
    for note, path in survey.notes.items():
        if note.kind != FORCE_CLOSED.name or (note.tools, note.rules) in seen:
            continue
        seen.add((note.tools, note.rules))
        (tool,), witness = note.tools, words(path)
        yield found(
            FORCE_CLOSED,
            f"{after_text(witness)}, {tool} is forced by {listed(note.rules)} and closed by {listed(note.others)}: no call satisfies both",
            "Where the force should lapse, write force and condition in one requirement",
            rules=(*note.rules, *note.others),
            witness=witness,
        )

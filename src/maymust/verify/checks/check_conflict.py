"""A tool is forced that a custom check may close: if it says no, the run raises."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import CHECK_CONFLICT, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each tool and check."""
    seen = set()
    for note, path in survey.notes.items():
        if note.kind != CHECK_CONFLICT.name or (note.tools, note.others) in seen:
            continue
        seen.add((note.tools, note.others))
        (tool,), witness = note.tools, words(path)
        yield found(
            CHECK_CONFLICT,
            f"{after_text(witness)}, {listed(note.rules)} forces {tool}, "
            f"which a check of {listed(note.others)} may close: the run raises if it does",
            "Write force and check in one requirement, without force_at_step, so that the force lapses",
            rules=tuple(dict.fromkeys((*note.rules, *note.others))),
            witness=witness,
        )

"""The final answer is forced while calls are still owed: the force wins, and the obligation is not met."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import OVERRIDDEN, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each set of obligations."""
    seen = set()
    for note, path in survey.notes.items():
        if note.kind != OVERRIDDEN.name or note.others in seen:
            continue
        seen.add(note.others)
        witness = words(path)
        yield found(
            OVERRIDDEN,
            f"{after_text(witness)}, {listed(note.rules)} forces the final answer while {listed(note.others)} still "
            f"{'owes' if len(note.others) == 1 else 'owe'} a call: the answer wins",
            "Force the answer later, or make the obligation a permission: final_answer only_after the tool",
            rules=(*note.rules, *note.others),
            witness=witness,
        )

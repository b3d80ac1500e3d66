"""Which of two forced tools is called is decided by the priority of a rule that forces nothing."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import FOREIGN_PRIORITY, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each pair of tools."""
    seen = set()
    for note, path in survey.notes.items():
        if note.kind != FOREIGN_PRIORITY.name or note.tools in seen:
            continue
        seen.add(note.tools)
        (winner, loser), witness = note.tools, words(path)
        yield found(
            FOREIGN_PRIORITY,
            f"{after_text(witness)}, {winner} and {loser} are both forced, and {winner} wins by the priority of another rule on it, "
            f"not by that of {listed(note.rules)}",
            f"Give {listed(note.rules)} the priority that is meant",
            rules=(*note.rules, *note.others),
            witness=witness,
        )

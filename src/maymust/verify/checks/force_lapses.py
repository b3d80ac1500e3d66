"""A force is given up, because its tool is closed just then."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.requirements.wording import listed
from maymust.verify.finding import FORCE_LAPSES, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each rule whose force lapses."""
    seen = set()
    for note, path in survey.notes.items():
        if note.kind != FORCE_LAPSES.name or note.rules in seen:
            continue
        seen.add(note.rules)
        (tool,), (rule,), witness = note.tools, note.rules, words(path)
        by = "the rule itself" if note.others == note.rules else listed(note.others)
        yield found(
            FORCE_LAPSES,
            f"{after_text(witness)}, {rule} would force {tool}, but {by} closes it: the force lapses",
            "Nothing to do if that is meant; otherwise loosen what closes the tool",
            rules=tuple(dict.fromkeys((*note.rules, *note.others))),
            witness=witness,
        )

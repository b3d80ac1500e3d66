"""A custom check is needed for the end, and nothing that could change its answer can be called any more."""

from __future__ import annotations

from collections.abc import Iterator

from maymust.verify.finding import CHECK_STUCK, Finding, found
from maymust.verify.survey import Survey
from maymust.verify.witness import after_text, words


def check(survey: Survey) -> Iterator[Finding]:
    """One finding for each check."""
    for one, path in survey.check_stuck.items():
        witness = words(path)
        yield found(
            CHECK_STUCK,
            f"{after_text(witness)}, the end needs a yes of {one.text}, and no tool it depends on can be called any more",
            "Loosen the rules on those tools, or add to depends_on what changes the answer",
            rules=(one.name,),
            witness=witness,
        )

"""Steps as words: `tool`, `tool!failed`, `tool!denied`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from maymust.core.history import History
from maymust.core.step import Outcome


@dataclass(frozen=True, slots=True)
class Event:
    """A tool was called, and came back with an outcome."""

    tool: str
    outcome: Outcome = Outcome.OK

    @property
    def word(self) -> str:
        """The tool, with its outcome unless that is ok."""
        return self.tool if self.outcome is Outcome.OK else f"{self.tool}!{self.outcome.value}"


def words(events: Iterable[Event]) -> tuple[str, ...]:
    """The events as words."""
    return tuple(event.word for event in events)


def history_of(witness: Iterable[str], history: History | None = None) -> History:
    """The history after a witness, or after `history` and the witness. Raises ValueError for an unknown outcome."""
    result = history if history is not None else History()
    for word in witness:
        tool, _, outcome = word.partition("!")
        result = result.add(tool, outcome=outcome or Outcome.OK)
    return result


def after_text(witness: Sequence[str]) -> str:
    """`at the start`, or `after a, b!failed`."""
    return f"after {', '.join(witness)}" if witness else "at the start"

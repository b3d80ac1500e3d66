"""What is known of a batch while some of its calls are still open."""

from __future__ import annotations

from collections.abc import Iterable

from maymust.core.history import History
from maymust.core.step import Outcome


class Bounds:
    """Least and greatest values of the history's counts, whatever becomes of the open calls.

    history   the history before the batch
    tail      the earlier calls of the batch in the model's order, as (tool, outcome); None: still open. An open call
              may come back ok or failed, or may turn out to be no invocation at all (denied, refused).

    Combinations of outcomes are never tried: each question is answered in one pass over the tail.
    """

    __slots__ = ("history", "open", "tail")

    def __init__(self, history: History, tail: Iterable[tuple[str, Outcome | None]] = ()) -> None:
        self.history: History = history
        self.tail: tuple[tuple[str, Outcome | None], ...] = tuple(tail)
        self.open: frozenset[str] = frozenset(tool for tool, outcome in self.tail if outcome is None)

    def count(self, name: str, failures: bool = False) -> tuple[int, int]:
        """Least and greatest number of invocations of the tool that count."""
        least = greatest = self.history.count(name, failures)
        for tool, outcome in self.tail:
            if tool == name:
                certain = _counts(outcome, failures)
                least += certain
                greatest += certain or outcome is None
        return least, greatest

    def step(self, failures: bool = False) -> tuple[int, int]:
        """Least and greatest number of the current step, counted from 1."""
        least = greatest = self.history.total(failures) + 1
        for _, outcome in self.tail:
            certain = _counts(outcome, failures)
            least += certain
            greatest += certain or outcome is None
        return least, greatest

    def last(self, failures: bool = False) -> frozenset[str | None]:
        """Tools that may turn out to be the last one that counts; None stands for "no tool yet"."""
        possible = {self.history.last_invocation if failures else self.history.last}
        for tool, outcome in self.tail:
            if outcome is None:
                possible.add(tool)
            elif _counts(outcome, failures):
                possible = {tool}
        return frozenset(possible)


def _counts(outcome: Outcome | None, failures: bool) -> bool:
    return outcome is Outcome.OK or (failures and outcome is Outcome.FAILED)

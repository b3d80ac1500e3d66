"""Which values a parameter may have, apart from bounds: those known from the start, those of earlier calls, those of a function."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from maymust.core.history import History
from maymust.core.requirement import RunView
from maymust.errors import PolicyError, text_of
from maymust.requirements.fit import Fit
from maymust.requirements.gathered import Gathered, Snapshot, Source, as_values
from maymust.requirements.predicate import function_text, is_async, takes_run


class ValuesCheck(NamedTuple):
    """For verification: that an author's function gives a value at all. It is code, so it may say no."""

    text: str
    is_named: bool


class ValuesOf:
    """The values a parameter may have, apart from bounds.

    fixed    those that are known from the start
    sources  the calls that others come from
    schema   what the parameter takes by itself, and `bounds` what the requirement adds; others are no values for it
    """

    def __init__(
        self, one_of: Any, sources: Sequence[Source], label: str, *, last_only: bool, schema: Mapping[str, Any], bounds: Mapping[str, Any]
    ) -> None:
        self.label = label
        self.last_only = last_only
        self.sources: tuple[Source, ...] = tuple(sources)
        self.function: Callable[..., object] | None = one_of if callable(one_of) else None
        if self.function is not None:
            if is_async(self.function):
                raise PolicyError(f"{label}: one_of is async; it has to answer at once with a list of values")
            self._takes_run = takes_run(self.function, f"{label}: one_of")
        self.fit: Fit = Fit(schema, bounds)
        self.fixed: tuple[Any, ...] = (
            () if one_of is None or callable(one_of) else tuple(fit for value in one_of for fit in self.fit(value))
        )
        if one_of is not None and self.function is None and not self.fixed:
            raise PolicyError(f"{label}: the tool takes none of the values in one_of")
        self.limits: bool = one_of is not None or bool(sources)
        """Whether there is such a set at all."""
        places = [[source.tool, source.side, source.text] for source in self.sources]
        shared = json.dumps([places, last_only, schema, bounds], sort_keys=True, default=repr)
        self.key: object = self if any(source.is_code for source in self.sources) else shared

    def gathered(self, history: History) -> Gathered:
        """The values of the sources in this run; requirements with the same sources share them."""
        return history.derived(self.key, self.gather)

    def gather(self) -> Gathered:
        """A new, empty one."""
        return Gathered(self.sources, self.last_only, self.fit)

    def asked(self, history: History, run: RunView) -> list[Any]:
        """The values that the author's function gives."""
        if self.function is None:
            return []
        text = function_text(self.function)
        try:
            found = self.function(history, run) if self._takes_run else self.function(history)
        except Exception as error:
            raise PolicyError(f"{self.label}: {text} raised {type(error).__name__}: {text_of(error)}") from error
        return [fit for value in as_values(found, f"{self.label}: {text}") for fit in self.fit(value)]

    def all(self, history: History, run: RunView) -> Snapshot:
        """Every value in this history."""
        found: list[Any] = [*self.fixed, *self.asked(history, run)]
        if self.sources:
            gathered = self.gathered(history)
            found += gathered.after(gathered.calls(history)).values
        return Snapshot(found)

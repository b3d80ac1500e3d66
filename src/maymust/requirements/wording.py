"""The sentences in which requirements give their reasons. They are read by models, so they name tools and say what to do."""

from __future__ import annotations

from collections.abc import Iterable, Sequence


def listed(names: Iterable[str], word: str = "and") -> str:
    """`a`, `a and b`, `a, b and c`."""
    names = list(names)
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} {word} {names[-1]}"


def times(count: int, kind: str) -> str:
    """`0 ok calls`, `1 ok call`."""
    return f"{count} {kind} call{'' if count == 1 else 's'}"


def after_text(groups: Sequence[Sequence[str]], failures: bool) -> str:
    """What is missing: each group needs one of its tools."""
    verb = "be called" if failures else "succeed"
    names = [listed(group, "or") for group in groups]
    plural = len(groups) > 1
    return f"{listed(names)} {'have' if plural else 'has'} to {verb} first"


def before_text(target: str, names: Sequence[str]) -> str:
    """What has closed the tool for good."""
    return f"{listed(names)} {'was' if len(names) == 1 else 'were'} already called, and {target} is possible only before that"


def limit_text(target: str, limit: int) -> str:
    """The limit that is used up."""
    if limit == 0:
        return f"{target} may not be called at all (limit 0)"
    return f"{target} was already called {limit} time{'' if limit == 1 else 's'} (limit {limit})"


def never_closed_text(target: str, limit: int) -> str:
    """What a value has to be of which there may be so many calls."""
    return f"{target} was not called with yet" if limit == 1 else f"{target} was called with fewer than {limit} times"


def owed_text(target: str, least: int, failures: bool) -> str:
    """What has to have happened before the end."""
    verb = "be called" if failures else "succeed"
    return f"{target} has to {verb}" if least == 1 else f"{target} has to {verb} {least} times"


def rest_text(target: str, cooldown: int, failures: bool) -> str:
    """How long the tool has to rest."""
    calls = "call of another tool has" if cooldown == 1 else "calls of other tools have"
    return f"{cooldown} {calls} to {'come' if failures else 'succeed'} between two calls of {target}"


def followed_with_text(target: str, group: Sequence[str], failures: bool, parameter: str, values: str) -> str:
    """What is owed since the tool was called with some values."""
    return f"{listed(group, 'or')} has to {'be called' if failures else 'succeed'} with {parameter} {values} after {target}"


def followed_text(target: str, group: Sequence[str], failures: bool) -> str:
    """What is owed since the tool was called."""
    return f"{listed(group, 'or')} has to {'be called' if failures else 'succeed'} after {target}"

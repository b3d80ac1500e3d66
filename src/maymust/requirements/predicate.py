"""Functions of an author that take (history) or (history, run)."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from maymust.core.history import History
from maymust.core.requirement import RunView
from maymust.errors import PolicyError, text_of


def takes_run(function: Callable[..., Any], label: str) -> bool:
    """True for a function of (history, run), False for one of (history). Raises PolicyError for any other."""
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return False  # a builtin without a signature
    places = [one for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)]
    needed = [one for one in places if one.default is one.empty]
    keywords = [one for one in parameters if one.kind is one.KEYWORD_ONLY and one.default is one.empty]
    open_ended = any(one.kind is one.VAR_POSITIONAL for one in parameters)
    if keywords or len(needed) > 2 or not (places or open_ended):
        raise PolicyError(f"{label}: {function_text(function)} has to take (history) or (history, run), not {inspect.signature(function)}")
    # A second parameter with a default is the author's own, as in a closure over a loop variable.
    return len(needed) == 2


def function_text(function: Any) -> str:
    """Return how a function is called in an error."""
    return str(getattr(function, "__name__", None) or repr(function))


def is_async(function: Any) -> bool:
    """True for an async function or an object whose call is one."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(getattr(function, "__call__", None))  # noqa: B004


def check_denials(number: Any, label: str) -> int | None:
    """Return the number. Raises PolicyError unless it is a whole number above 0, or None."""
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
        raise PolicyError(f"{label}: max_denials has to be a whole number above 0, got {number!r}")
    return number


class Check:
    """A predicate that gives a real bool, or an error that names the requirement."""

    __slots__ = ("_function", "_takes_run", "depends_on", "label", "max_denials", "stable_once_true", "text")

    def __init__(self, function: Callable[..., Any], label: str) -> None:
        self._function = function
        self._takes_run = takes_run(function, f"{label}: custom_checks")
        self.label: str = label
        self.text: str = function_text(function)
        # What its author promises of it, as attributes of the function: verification relies on it, nothing else does.
        self.stable_once_true: bool = bool(getattr(function, "stable_once_true", False))
        self.max_denials: int | None = check_denials(getattr(function, "max_denials", None), f"{label}: the check {self.text}")
        self.depends_on: Any = getattr(function, "depends_on", None)

    def __call__(self, history: History, run: RunView) -> bool:
        """Ask it. Raises PolicyError when it raises, or gives anything but True or False."""
        try:
            answer = self._function(history, run) if self._takes_run else self._function(history)
        except Exception as error:
            raise PolicyError(f"{self.label}: the check {self.text} raised {type(error).__name__}: {text_of(error)}") from error
        if isinstance(answer, bool):
            return answer
        if inspect.iscoroutine(answer):
            answer.close()
            raise PolicyError(f"{self.label}: the check {self.text} is async; a check has to answer at once with True or False")
        raise PolicyError(f"{self.label}: the check {self.text} has to give True or False, got {answer!r}")

    @property
    def is_named(self) -> bool:
        """False for a lambda, whose name tells a reader nothing."""
        return self.text.isidentifier()


def as_check(function: Any, label: str) -> Check:
    """Return the predicate. Raises PolicyError for what cannot be one."""
    if not callable(function) or isinstance(function, type):
        raise PolicyError(f"{label}: custom_checks has to hold functions of (history), got {function!r}")
    if is_async(function):
        raise PolicyError(f"{label}: the check {function_text(function)} is async; a check has to answer at once with True or False")
    return Check(function, label)

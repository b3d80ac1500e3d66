"""`same=`: conditions that hold for each value of a parameter by itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from maymust.errors import PolicyError


class Same(NamedTuple):
    """Which parameters have to have the same value.

    own     the parameter of the target
    theirs  the parameter of the other tools
    """

    own: str
    theirs: str

    def described(self) -> Any:
        """As an author writes it."""
        return self.own if self.own == self.theirs else {self.own: self.theirs}


_SPEAKS_OF = ("only_after", "only_after_any", "only_before", "max_invocations", "max_attempts", "followed_by")
"""The conditions that can hold for each value by itself."""


def as_same(given: Any, requirement: Any, label: str) -> Same:
    """Read what an author wrote for `same`, and hold the other parameters of the requirement against it.

    Raises PolicyError for anything but the name of a parameter or a mapping of one name to another, and for conditions that are not
    about values.
    """
    names = next(iter(given.items())) if isinstance(given, Mapping) and len(given) == 1 else (given, given)
    if any(not isinstance(name, str) or not name or not name.isprintable() for name in names):
        raise PolicyError(
            f"{label}: same has to be the name of a parameter, or {{parameter of the target: parameter of the other tools}}, got {given!r}"
        )
    others = {
        "force_at_step": requirement.force_at_step is not None,
        "force_after": bool(requirement.force_after),
        "min_invocations": bool(requirement.min_invocations),
        "cooldown": requirement.cooldown is not None,
        "consecutive_allowed": not requirement.consecutive_allowed,
        "custom_checks": bool(requirement.custom_checks),
    }
    for parameter, is_given in others.items():
        if is_given:
            raise PolicyError(
                f"{label}: {parameter} is no condition on a value; write it in a requirement of its own (same speaks of "
                f"{', '.join(_SPEAKS_OF)})"
            )
    if not any(getattr(requirement, parameter) not in (None, ()) for parameter in _SPEAKS_OF):
        raise PolicyError(f"{label}: same speaks of {', '.join(_SPEAKS_OF)}, and there is none of them")
    return Same(*names)

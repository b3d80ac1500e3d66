"""What a person decided, and what of it is remembered."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NoReturn

from maymust.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Decision:
    """A person's answer to one call.

    allow     True: the call runs
    reason    shown to the model after a no
    by        who decided
    remember  keep the choice for this tool, also where the requirement does not remember by itself
    """

    allow: bool
    reason: str | None = None
    by: str | None = None
    remember: bool = False

    def __post_init__(self) -> None:
        if not isinstance(self.allow, bool):
            raise PolicyError(f"a decision has to be True or False, got {self.allow!r}")
        for field in ("reason", "by"):
            if getattr(self, field) is not None and not isinstance(getattr(self, field), str):
                raise PolicyError(f"the {field} of a decision has to be a text, got {getattr(self, field)!r}")

    def choice(self) -> dict[str, Any]:
        """The JSON form in which a choice is remembered."""
        return {"allow": self.allow, "reason": self.reason, "by": self.by}


class ApprovalMemory:
    """Choices that are shared between the runs of whoever holds it. Safe to use from several threads."""

    def __init__(self, choices: Mapping[str, Mapping[str, Any]] | None = None) -> None:
        self._lock = threading.Lock()
        self._choices: dict[str, dict[str, Any]] = {}
        for tool, choice in (choices or {}).items():
            self.put(tool, Decision(choice["allow"], choice.get("reason"), choice.get("by")))

    def put(self, tool: str, decision: Decision) -> None:
        """Remember a choice for a tool, in the place of an earlier one."""
        with self._lock:
            # Replaced as a whole, so that `choices` may be read without a lock.
            self._choices = {**self._choices, tool: decision.choice()}

    def get(self, tool: str) -> dict[str, Any] | None:
        """The remembered choice for a tool."""
        return self._choices.get(tool)

    def forget(self, tool: str | None = None) -> None:
        """Forget the choice for a tool, or all of them."""
        with self._lock:
            self._choices = {} if tool is None else {name: choice for name, choice in self._choices.items() if name != tool}

    @property
    def choices(self) -> Mapping[str, dict[str, Any]]:
        """All remembered choices, as JSON. The mapping does not change; a later `put` makes a new one."""
        return self._choices

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            "an ApprovalMemory is shared by whoever holds it, and a copy would share nothing; "
            "give its choices to a new one: ApprovalMemory(memory.choices)"
        )

"""The policy as a gate asks it inside another framework's run."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from maymust.core.bounds import Bounds
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.requirement import BoundRequirement, RunView


class Judge:
    """The policy as the gate asks it: over the tools that are there, with obligations switched off on the ladder's last rung."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self.opaque: tuple[BoundRequirement, ...] = policy.opaque
        self.relaxed = False
        self.present: tuple[str, ...] | None = None

    def permit(self, history: History, run: RunView | None = None, *, memories: Mapping[str, dict[str, Any]] | None = None) -> Permit:
        """The permit after this history."""
        return self.policy.permit(history, run, memories=memories, relaxed=self.relaxed, present=self.present)

    def surely_admits(
        self, tool: str, bounds: Bounds, *, run: RunView | None = None, memories: Mapping[str, dict[str, Any]] | None = None
    ) -> bool:
        """True when the tool may run however the open calls end."""
        return self.policy.surely_admits(tool, bounds, run=run, memories=memories, present=self.present)

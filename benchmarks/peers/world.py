"""The tools' part, the same for every framework: bodies that note what ran, and the judgement on what they noted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field

KINDS: dict[str, str] = {
    "order": "`search` only after `think` has succeeded",
    "limit": "`refund` at most twice",
    "spacing": "`search` never twice in a row",
    "approval": "`refund` only after a person's yes (who says no)",
    "bounds": "`refund` of at most 100",
    "first": "`think` is the first step",
    "answer": "no answer before `search` has succeeded",
}
"""The rules that are tried, one a run."""


@dataclass
class World:
    """What happened in one run: bodies as they began, which of them had ended by then, and whether an answer came out."""

    began: list[tuple[str, float]] = field(default_factory=list)
    ended: list[str] = field(default_factory=list)
    early: list[str] = field(default_factory=list)
    answered: bool = False
    broke: str = ""

    def begin(self, name: str, amount: float = 0) -> None:
        """A body begins."""
        if name == "search" and "think" not in self.ended:
            self.early.append(name)
        self.began.append((name, amount))

    def end(self, name: str) -> str:
        """A body ends well."""
        self.ended.append(name)
        return f"{name} went well"

    async def think(self) -> str:
        """Think."""
        self.begin("think")
        await asyncio.sleep(0)
        return self.end("think")

    async def search(self, q: str) -> str:
        """Search."""
        self.begin("search")
        await asyncio.sleep(0)
        return self.end("search")

    async def refund(self, amount: float) -> str:
        """Refund."""
        self.begin("refund", amount)
        await asyncio.sleep(0)
        return self.end("refund")

    def breaks(self, kind: str) -> bool:
        """Whether what ran, or the answer that came out, breaks the rule."""
        return BREAKS[kind](self)


def _first(world: World) -> bool:
    return world.began[0][0] != "think" if world.began else world.answered


BREAKS: dict[str, Callable[[World], bool]] = {
    "order": lambda world: bool(world.early),
    "limit": lambda world: sum(name == "refund" for name, _ in world.began) > 2,
    "spacing": lambda world: any(a[0] == b[0] == "search" for a, b in zip(world.began, world.began[1:], strict=False)),
    "approval": lambda world: any(name == "refund" for name, _ in world.began),
    "bounds": lambda world: any(name == "refund" and amount > 100 for name, amount in world.began),
    "first": _first,
    "answer": lambda world: world.answered and "search" not in world.ended,
}

"""The model's part, the same for every framework: it is asked for a reply and told which tools the request offered.

A framework's own model class turns a `Reply` into that framework's messages. Nothing here waits.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from random import Random
from typing import Any, Literal, Protocol

Way = Literal["one", "batch", "text", "unoffered"]
WAYS: tuple[Way, ...] = ("one", "batch", "text", "unoffered")
"""How an adversary tries: one offered call a turn; several in a turn; an answer at any time; tools that were not offered.

In the first two the provider holds the model to a tool that the request names, in the others it does not.
"""

DESK = ("think", "search", "refund")
TIRED = 8
"""After so many turns an adversary only answers."""
STUCK = 24
"""After so many turns a run is broken off: the framework keeps asking."""


class Stuck(Exception):
    """A run that does not end."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool."""

    call_id: str
    name: str
    arguments: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Reply:
    """What the model says. `answers`: this is its final answer, given in the way of the framework (a text, or a tool of its own)."""

    text: str = ""
    calls: tuple[Call, ...] = ()
    answers: bool = False


class Brain(Protocol):
    """Says what comes next."""

    def reply(self, offered: Sequence[str], named: str | None = None) -> Reply:
        """The next reply, given the names of the offered tools without the final answer, and the one that the request demands."""
        ...


class Walker:
    """Calls `search` so many times, each time with other arguments, then answers."""

    def __init__(self, steps: int) -> None:
        self.steps, self.turn = steps, 0

    def reply(self, offered: Sequence[str], named: str | None = None) -> Reply:
        """One more step."""
        self.turn += 1
        if self.turn > self.steps:
            return Reply("done", answers=True)
        return Reply(calls=(Call(f"c{self.turn}", "search", {"q": str(self.turn)}),))


class Scripted:
    """Says what it is given; its last reply again when there are no more. `asked` counts."""

    def __init__(self, *replies: Reply) -> None:
        self.replies, self.asked = replies, 0

    def reply(self, offered: Sequence[str], named: str | None = None) -> Reply:
        """The next reply of the script."""
        self.asked += 1
        if self.asked > STUCK:
            raise Stuck
        return self.replies[min(self.asked, len(self.replies)) - 1]


class Adversary:
    """Tries in one way, at random."""

    def __init__(self, way: Way, seed: int) -> None:
        self.way, self.rng, self.turn = way, Random(seed), 0

    def reply(self, offered: Sequence[str], named: str | None = None) -> Reply:
        """Whatever comes to mind."""
        self.turn += 1
        rng, offers = self.rng, sorted(set(offered) & set(DESK))
        if self.turn > STUCK:
            raise Stuck
        held = named in offers and self.way in ("one", "batch")
        if not held and (self.turn > TIRED or rng.random() < (0.4 if self.way == "text" else 0.05)):
            return Reply(f"answer {self.turn}", answers=True)
        pool: Sequence[str] = [str(named)] if held else DESK if self.way == "unoffered" else offers
        if not pool:
            return Reply(f"answer {self.turn}", answers=True)
        count = rng.choice((2, 3, 4)) if self.way == "batch" else 1
        return Reply(calls=tuple(self._call(rng.choice(pool), place) for place in range(count)))

    def _call(self, name: str, place: int) -> Call:
        given: dict[str, dict[str, Any]] = {"search": {"q": f"{self.turn}.{place}"}, "refund": {"amount": self.rng.randint(1, 200)}}
        return Call(f"c{self.turn}x{place}", name, given.get(name, {}))

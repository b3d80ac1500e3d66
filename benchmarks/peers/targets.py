"""What was aimed at, and what came of it. Ratios are of medians measured in one go."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from benchmarks.peers.versions import MAYMUST

NOT_MEASURED = "not measured"


@dataclass(frozen=True)
class Target:
    """One target: what is measured, what was aimed at, what was got, and why it was missed if it was."""

    what: str
    wanted: str
    got: str
    met: bool
    why: str = ""


def median_of(rows: list[dict[str, Any]], key: str, **given: Any) -> float | None:
    """The median of the row with these values, if it was measured."""
    for row in rows:
        if all(row.get(name) == value for name, value in given.items()) and ("rules" in given or "rules" not in row):
            return float(row[key]["median"]) if key in row else None
    return None


def at_most(what: str, value: float | None, limit: float, unit: str, why: str) -> Target:
    """A target with an upper bound."""
    got = NOT_MEASURED if value is None else f"{value:,.{1 if unit else 0}f} {unit}".strip()
    return Target(what, f"≤ {limit:g} {unit}".strip(), got, value is not None and value <= limit, why)


def at_least(what: str, value: float | None, limit: float, why: str) -> Target:
    """A target with a lower bound, as a ratio."""
    got = NOT_MEASURED if value is None else f"{value:,.1f} ×" if value < 100 else f"{value:,.0f} ×"
    return Target(what, f"≥ {limit:,g} ×", got, value is not None and value >= limit, why)


def over(value: float | None, own: float | None) -> float | None:
    """A ratio, if both were measured."""
    return None if value is None or not own else value / own


SHARED = "Other work on the machine while this was measured makes it dearer, by half and more."
PROMPT = "see [the prompt and the cache](explanation/prompt-cache.md)."
IMPORT = "a third of it is asyncio and its kin from the standard library, most of the rest the making of some hundred frozen dataclasses. "


def of_the_pass(parts: dict[str, Any]) -> list[Target]:
    """Targets of the pass."""
    rows = parts["permit"]["rows"]

    def own(tools: int, rules: int, history: int) -> float | None:
        return median_of(rows, "us", peer=MAYMUST, tools=tools, requirements=rules, history=history)

    def beeai(history: int) -> float | None:
        return median_of(rows, "us", peer="beeai", tools=10, requirements=10, history=history)

    ten, none = own(10, 10, 1000), own(10, 10, 0)
    growth = parts["growth"]["ratio"]["median"]
    return [
        at_least("pass, 10 tools, 10 requirements, against BeeAI, empty history", over(beeai(0), none), 200, SHARED),
        at_least("the same at 1,000 steps", over(beeai(1000), ten), 2500, SHARED),
        at_most("pass, 10 tools, 10 requirements, 1,000 steps", ten, 10, "µs", SHARED),
        Target(
            "pass at 100,000 steps against 10 steps",
            "≤ 1.1 ×",
            f"{growth:.2f} ×",
            growth <= 1.1,
            "a test counts the operations, and they are the same to the last one; what differs is how warm the caches are.",
        ),
        at_most("pass, 1,000 tools, 100 requirements, 1,000 steps", own(1000, 100, 1000), 120, "µs", SHARED),
    ]


def of_the_loop(parts: dict[str, Any]) -> list[Target]:
    """Targets of the loop."""
    rows, calls = parts["loop"]["rows"], parts["profile"]["rows"]["calls_per_step"]
    why = (
        f"what is left is spread over the whole step, as the profile below shows. A step makes {calls} calls of small functions (each call "
        "is judged by itself, each change of the state is an event, a message and a step are kept), and in pure Python each takes 50 to "
        "150 ns with what it does. Going much below would take a compiled core, which is not wanted. " + SHARED
    )

    def step(name: str, steps: int) -> float | None:
        return median_of(rows, "us_per_step", peer=name, steps=steps)

    own = step(MAYMUST, 1000)
    growth = over(step(MAYMUST, 10_000), own)
    return [
        at_least("loop, 1,000 steps, against Microsoft Agent Framework", over(step("agent_framework", 1000), own), 10, why),
        at_least("loop, 1,000 steps, against LangChain", over(step("langchain", 1000), own), 20, why),
        at_least("loop, 1,000 steps, against BeeAI", over(step("beeai", 1000), own), 500, why),
        at_most("loop, a step of 1,000", own, 60, "µs", why),
        Target(
            "loop, a step of 10,000 against one of 1,000",
            "flat (≤ 1.1 ×)",
            NOT_MEASURED if growth is None else f"{growth:.2f} ×",
            growth is not None and growth <= 1.1,
            "the number of calls is the same (a test counts them); the garbage collector has more to walk through.",
        ),
    ]


def of_the_rest(parts: dict[str, Any]) -> list[Target]:
    """Targets of imports, installs and the prompt."""
    part, local = parts["imports"], parts["local"]
    plain, agent = part["rows"][:2]
    return [
        at_most("1,000 function tools to the first request", part["register_1000"]["ms"]["median"], 400, "ms", SHARED),
        at_most("`import maymust`", plain["ms"], 30, "ms", SHARED),
        at_most("`from maymust import Agent`", agent["ms"], 150, "ms", IMPORT + SHARED),
        at_most("core install, distributions", plain["distributions"], 9, "", ""),
        at_most("core install", plain["mb"], 20, "MB", ""),
        at_least(
            "local model, seconds a turn, classic ÷ stable",
            local["ratio"],
            6,
            PROMPT,
        ),
    ]


def targets(parts: dict[str, Any]) -> list[Target]:
    """All of them."""
    return [*of_the_pass(parts), *of_the_loop(parts), *of_the_rest(parts)]

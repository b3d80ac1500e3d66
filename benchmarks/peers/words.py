"""How single results are put into words: times, spreads, rates, ends, and tables of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from benchmarks.peers.brain import STUCK
from benchmarks.peers.versions import MAYMUST, PEERS


def title_of(name: str) -> str:
    """A framework's name for a table."""
    return "**maymust**" if name == MAYMUST else PEERS[name].title


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table; every column but the first is flushed right."""
    lines = [f"| {' | '.join(head)} |", f"| --- |{' ---: |' * (len(head) - 1)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def micro(microseconds: float) -> str:
    """A time, with the unit that suits it."""
    if microseconds >= 1e6:
        return f"{microseconds / 1e6:.1f} s"
    if microseconds >= 1e4:
        return f"{microseconds / 1e3:.0f} ms"
    if microseconds >= 1e3:
        return f"{microseconds / 1e3:.1f} ms"
    return f"{microseconds:.0f} µs" if microseconds >= 100 else f"{microseconds:.1f} µs"


def cell(row: dict[str, Any] | None, key: str) -> str:
    """A median with its spread, or why there is none."""
    if row is None:
        return "-"
    if "left_out" in row:
        return "left out"
    if key not in row:
        return "stopped" if row.get("failed", "").startswith("stopped") else "failed"
    value = row[key]
    spread = "" if row.get("repeats", 1) < 2 else f" ({micro(value['low'])} – {micro(value['high'])})"
    return micro(value["median"]) + spread


def find(rows: Sequence[dict[str, Any]], **given: Any) -> dict[str, Any] | None:
    """The row with these values; one with rules is found only when it is asked for."""
    for row in rows:
        if all(row.get(key) == value for key, value in given.items()) and ("rules" in given or "rules" not in row):
            return row
    return None


def made(part: dict[str, Any]) -> str:
    """When and on what a part was measured."""
    text = f"Measured {part['date']} at commit `{part['commit']}` on {part['machine']}."
    if "again" in part:
        names = ", ".join(title_of(name).strip("*") for name in part["again"]["peers"])
        text += f" {names}: measured again, at commit `{part['again']['commit']}`."
    return text


def memory(row: dict[str, Any]) -> str:
    """Peak memory, and what the run added."""
    if "peak_mb" not in row:
        return "-"
    peak = row["peak_mb"]["median"]
    return f"{peak:.0f} MB (+{max(peak - row['peak_mb_before']['median'], 0):.0f})"


def rate(found: dict[str, Any], way: str, kinds: Sequence[str]) -> str:
    """Runs in a thousand in which a rule was broken."""
    cells = [found["table"][kind][way] for kind in kinds if kind in found["table"]]
    runs = sum(one["runs"] for one in cells)
    return f"{1000 * sum(one['broken'] for one in cells) / runs:.0f}" if runs else "n/a"


def ending(seen: dict[str, Any], usual: int) -> str:
    """Calls beyond the usual, and the end where it is no answer."""
    if seen["calls"] > STUCK:
        return "did not end"
    # An unknown name takes the place of the first of the two calls.
    spent = f"{seen['calls'] - usual:+d}".replace("+0", "0").replace("-", "−")
    return spent if seen["end"] == "answered" else f"{spent}, {seen['end']}"

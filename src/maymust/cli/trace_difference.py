"""`maymust diff` of two traces."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from maymust.cli.console import Console, UnusableError
from maymust.cli.exit_codes import CLEAN, FINDINGS
from maymust.cli.recorded import damage_told, differences_text, note_torn, read_recording
from maymust.reports.machine import document
from maymust.trace import compare_runs, is_trace
from maymust.views.paint import clean

if TYPE_CHECKING:
    from maymust.trace import Difference


def are_traces(one: str, other: str) -> bool:
    """Whether two traces are to be compared. Raises UnusableError for one trace beside something else."""
    found = [is_trace(path) for path in (one, other)]
    if any(found) and not all(found):
        trace, rest = (one, other) if found[0] else (other, one)
        raise UnusableError(f"{trace} is a trace and {rest} is none: give two policies, or two traces")
    return all(found)


def compare_traces(arguments: argparse.Namespace) -> int:
    """Compare two traces, and tell where they differ."""
    if arguments.format not in ("text", "json"):
        raise UnusableError(f"--format {arguments.format} is for policies; for traces it is text or json")
    console = Console(arguments.output)
    with damage_told(arguments.old, arguments.new):
        runs = [read_recording(path) for path in (arguments.old, arguments.new)]
        found = compare_runs(*runs)
    for run, path in zip(runs, (arguments.old, arguments.new), strict=True):
        note_torn(run, path, console)
    code = FINDINGS if found else CLEAN
    if arguments.format == "json":
        names = {"a": arguments.old, "b": arguments.new}
        console.result(document("diff-traces", **names, exit_code=code, differences=[one.to_dict() for one in found]))
    else:
        console.result(_text(found, arguments, console))
    return code


def _text(found: tuple[Difference, ...], arguments: argparse.Namespace, console: Console) -> str:
    blocks = differences_text(found, console, ("in A", "in B"))
    names = f"{clean(arguments.old)} and {clean(arguments.new)}"
    if found:
        count = f"{len(found)} difference{'' if len(found) == 1 else 's'}"
        blocks.append(console.paint("bad", f"✗ {names}: {count}"))
    else:
        blocks.append(console.paint("good", f"✓ {names}: nothing differs"))
    return "\n\n".join(blocks) + "\n"

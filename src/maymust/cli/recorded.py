"""Runs that were recorded: traces, and states as JSON."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from maymust.cli.console import UnusableError
from maymust.core.policy import Policy
from maymust.errors import MaymustError, RunError

if TYPE_CHECKING:
    from maymust.cli.console import Console
    from maymust.trace import Difference, Recording

MOST_BYTES = 256 * 1024 * 1024
MOST_SHOWN = 300
"""How many characters of a text are shown on a terminal."""
SHOWN = 10
"""How many differences are shown on a terminal; JSON has all of them."""


@contextlib.contextmanager
def damage_told(*paths: str) -> Iterator[None]:
    """Raise UnusableError for what comes of a file whose parts have the right names and the wrong content."""
    try:
        yield
    except MaymustError:
        raise
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, RecursionError) as fault:
        raise UnusableError(f"{' or '.join(dict.fromkeys(paths))} is damaged: {type(fault).__name__}: {str(fault)[:MOST_SHOWN]}") from fault


def read_recording(path: str) -> Recording:
    """Read a trace, or the JSON of a state; `-` is standard input. Raises UnusableError for what is neither."""
    from maymust.agent.state import RunState
    from maymust.trace import TraceError, recording_of
    from maymust.trace.reader import MARK, parse_trace

    content = _content(path)
    try:
        if content.startswith(MARK):
            return recording_of(parse_trace(content, "<stdin>" if path == "-" else path))
        return recording_of(RunState.from_json(content))
    except TraceError as error:
        raise UnusableError(str(error)) from error
    except (RunError, RecursionError) as error:
        if not content.lstrip().startswith(b"{"):
            what = "is empty" if not content.strip() else "is neither a trace nor the state of a run"
            raise UnusableError(f"{path} {what}; `maymust run --trace FILE` and write_trace() write traces") from error
        raise UnusableError(f"{path}: {error}") from error


def _content(path: str) -> bytes:
    try:
        if path == "-":
            content = sys.stdin.buffer.read(MOST_BYTES + 1)
        elif os.path.isfile(path):
            with open(path, "rb") as file:
                content = file.read(MOST_BYTES + 1)
        else:
            raise UnusableError(f"{path}: {'this is no file' if os.path.exists(path) else 'there is no such file'}")
    except OSError as error:
        raise UnusableError(f"{path} cannot be read: {error.strerror}") from error
    if len(content) > MOST_BYTES:
        raise UnusableError(f"{path} is larger than {MOST_BYTES // 1024 // 1024} MiB")
    return content


def note_torn(recording: Recording, path: str, console: Console) -> None:
    """Say when the last line of a trace was left out."""
    from maymust.views.paint import clean

    if recording.torn:
        console.say(f"maymust: the last line of {clean(path)} is torn, and left out")


def policy_recorded(recording: Recording, path: str) -> tuple[Policy, tuple[str, ...]]:
    """The policy that a recording describes, and the names of the requirements that are Python code and so not in it.

    Raises UnusableError when it describes none.
    """
    from maymust.policyfile.write import policy_of

    described = recording.policy
    if described is None:
        raise UnusableError(f"{path} does not say what the policy was: give it, --policy POLICY")
    kept: list[Any] = []
    taken: list[str] = []
    for one in described.get("requirements", ()):
        if policy_of({**described, "requirements": [one]}) is not None:
            kept.append(one)
        elif one.get("enabled", True):
            taken.append(str(one.get("name")))
    policy = policy_of({**described, "requirements": kept})
    if policy is None:
        raise UnusableError(f"the policy that {path} describes cannot be made: give it, --policy POLICY")
    return policy, tuple(taken)


def difference_text(found: Difference, console: Console, sides: tuple[str, str]) -> str:
    """One difference in some lines. `sides` are the words for before and after."""
    paint = console.paint
    about = f"{found.tool} is " if found.tool and found.kind == "verdict" else f"{found.tool}: " if found.tool else ""
    what = f"{about}{found.before} {sides[0]}, {found.after} {sides[1]}"
    lines = [paint("bold", f"step {found.step} (turn {found.turn}): {_short(what)}")]
    lines += [f"    {paint('note', 'why')}: {_short(reason)}" for reason in found.reasons]
    lines += [f"    {paint('note', 'rule')}: {_short(', '.join(found.rules))}"] if found.rules else []
    return "\n".join(lines)


def differences_text(found: tuple[Difference, ...], console: Console, sides: tuple[str, str]) -> list[str]:
    """The first differences, and how many more there are."""
    blocks = [difference_text(one, console, sides) for one in found[:SHOWN]]
    if len(found) > SHOWN:
        blocks.append(console.paint("dim", f"… and {len(found) - SHOWN} more differences (--json has them all)"))
    return blocks


def _short(text: str) -> str:
    from maymust.views.paint import clean

    return clean(text) if len(text) <= MOST_SHOWN else f"{clean(text[:MOST_SHOWN])}…"

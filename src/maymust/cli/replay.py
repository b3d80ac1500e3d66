"""`maymust replay`: a recorded run, folded again."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from maymust.cli.exit_codes import CLEAN, FINDINGS, UNDECIDED
from maymust.cli.options import add_command, add_format, path_argument

if TYPE_CHECKING:
    from maymust.cli.console import Console
    from maymust.cli.options import Subparsers
    from maymust.core.policy import Policy
    from maymust.trace import Recording, Replay

ABOUT = """\
Folds the history of a recorded run again, under the policy it ran under or another one, and says where
that one decides otherwise: the step, the tool, both verdicts, and the rule. Nothing is called.

TRACE is a trace (`maymust run --trace`, write_trace), or the state of a run as JSON. What the run itself
has decided (budget, loop guard, tool_choice) and what Python code has is taken as it was recorded; where
a policy has such code and nothing differs, the exit code is 3."""
EXAMPLES = """\
  maymust replay run.jsonl
  maymust replay run.jsonl --policy stricter.policy.yaml"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `replay`."""
    parser = add_command(subparsers, "replay", "fold a recorded run again", "[options] TRACE [--policy POLICY]", ABOUT, EXAMPLES)
    path_argument(parser, "trace", metavar="TRACE", help="a trace or the state of a run as JSON, - for stdin")
    about = "the policy to fold under (default: the one the run had, as the trace describes it)"
    path_argument(parser, "--policy", metavar="POLICY", help=about)
    add_format(parser, ("text", "json"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Fold, and tell the differences."""
    from maymust.cli.console import Console, UnusableError
    from maymust.cli.recorded import damage_told, note_torn, policy_recorded, read_recording
    from maymust.cli.target import load_target
    from maymust.trace import replay

    if arguments.trace == arguments.policy == "-":
        raise UnusableError("only one of trace and policy can come from stdin")
    console = Console(arguments.output)
    with damage_told(arguments.trace):
        recording = read_recording(arguments.trace)
        note_torn(recording, arguments.trace, console)
        taken: tuple[str, ...] = ()
        policy: Policy
        if arguments.policy is not None:
            policy = load_target(arguments.policy).policy
        else:
            policy, taken = policy_recorded(recording, arguments.trace)
        with console.progress(f"folding {arguments.trace}"):
            done = replay(recording, policy, taken=taken)
    code = FINDINGS if done.differences else UNDECIDED if done.undecided else CLEAN
    if arguments.format == "json":
        console.result(_document(recording, done, arguments, code))
    else:
        console.result(_text(done, arguments, console))
    return code


def _text(done: Replay, arguments: argparse.Namespace, console: Console) -> str:
    from maymust.cli.recorded import differences_text
    from maymust.views.paint import clean

    paint = console.paint
    name = clean(arguments.policy or "its own policy")
    blocks = differences_text(done.differences, console, ("in the record", "now"))
    turns = f"{done.turns} turn{'' if done.turns == 1 else 's'}"
    if done.differences:
        count = f"{len(done.differences)} difference{'' if len(done.differences) == 1 else 's'} in {turns}"
        lines = [paint("bad", f"✗ {clean(arguments.trace)} under {name}: {count}")]
    elif done.undecided:
        lines = [paint("warning", f"? {clean(arguments.trace)} under {name}: nothing differs in {turns}, as far as it could be folded")]
    else:
        lines = [paint("good", f"✓ {clean(arguments.trace)} under {name}: nothing differs in {turns}")]
    lines += [f"  - {clean(sentence)}" for sentence in done.undecided]
    return "\n\n".join([*blocks, "\n".join(lines)]) + "\n"


def _document(recording: Recording, done: Replay, arguments: argparse.Namespace, code: int) -> str:
    from maymust.reports.machine import document

    return document(
        "replay",
        exit_code=code,
        run=recording.run_id,
        trace=arguments.trace,
        policy=arguments.policy,
        turns=done.turns,
        torn=recording.torn,
        differences=[difference.to_dict() for difference in done.differences],
        undecided=list(done.undecided),
    )

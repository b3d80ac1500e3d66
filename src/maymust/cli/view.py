"""`maymust view`: runs as a page to look at."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from maymust.cli.exit_codes import CLEAN
from maymust.cli.options import add_command, path_argument

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.trace import Recording
    from maymust.web.known import Known

ABOUT = """\
Writes a page that shows a run as a matrix: rows are tools, columns are steps, and each cell says why it
is what it is and what would change it. Beside it is the automaton of the policy, with the way of the run.

The page is one file with all that it needs. It opens from disk, and asks for nothing on the network.
Of several runs the first one is compared with the others. TRACE is a trace (`maymust run --trace`,
write_trace), or the state of a run as JSON."""
EXAMPLES = """\
  maymust view run.jsonl -o run.html
  maymust view before.jsonl after.jsonl -o both.html
  maymust run demo.agent:desk "Pay it back." --trace /dev/stdout | maymust view - -o run.html"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `view`."""
    parser = add_command(subparsers, "view", "a run as a page to look at", "[options] TRACE... [-o FILE]", ABOUT, EXAMPLES)
    path_argument(parser, "traces", nargs="+", metavar="TRACE", help="a trace or the state of a run as JSON, - for stdin")
    path_argument(parser, "--policy", metavar="POLICY", help="the policy of the runs, where the traces do not say what it was")
    path_argument(parser, "-o", "--output", metavar="FILE", help="write the page to a file instead of stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Write the page."""
    from maymust.cli.console import Console, UnusableError
    from maymust.cli.recorded import damage_told, note_torn, read_recording
    from maymust.cli.target import load_target
    from maymust.web.data import file_data
    from maymust.web.known import Known, known_policy
    from maymust.web.page import page

    if [*arguments.traces, arguments.policy].count("-") > 1:
        raise UnusableError("only one of the traces and the policy can come from stdin")
    console = Console(arguments.output)
    given = None if arguments.policy is None else Known(load_target(arguments.policy).policy)
    runs: list[tuple[str, Recording, Known]] = []
    with damage_told(*arguments.traces):
        for path in arguments.traces:
            recording = read_recording(path)
            note_torn(recording, path, console)
            known = known_policy(recording)
            runs.append((path, recording, given if known.policy is None and given is not None else known))
        with console.progress("drawing"):
            text = page(file_data(runs), title=f"maymust: {', '.join(arguments.traces)}")
    console.result(text)
    return CLEAN

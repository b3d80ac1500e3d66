"""`maymust explain`: why a tool had its verdict at a step of a run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN
from maymust.cli.options import add_command, add_format, path_argument, whole

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.core.permit import Permit
    from maymust.explanation import Explanation
    from maymust.trace import Recording
    from maymust.trace.recording import RecordedTurn

ABOUT = """\
Says why a tool had its verdict when a step of a run was decided, and what would have changed it.

TRACE is a trace (`maymust run --trace`, write_trace), or the state of a run as JSON: the file
`maymust run --state` writes, or the text of RunState.to_json()."""
EXAMPLES = """\
  maymust explain run.jsonl --step 3 --tool refund
  maymust explain state.json --policy desk.policy.yaml"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `explain`."""
    usage = "[options] TRACE [--step K] [--tool T]"
    parser = add_command(subparsers, "explain", "why a tool had its verdict at a step of a run", usage, ABOUT, EXAMPLES)
    path_argument(parser, "trace", metavar="TRACE", help="a trace or the state of a run as JSON, - for stdin")
    about = "the permit under which step K was called, counted from 1 (default: the last permit)"
    parser.add_argument("--step", type=whole, metavar="K", help=about)
    parser.add_argument("--tool", metavar="T", help="the tool (default: all of them)")
    about = "the policy of the run, if the trace does not say what would change a verdict"
    path_argument(parser, "--policy", metavar="POLICY", help=about)
    add_format(parser, ("text", "json"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Explain one verdict, or a whole permit."""
    from maymust.cli.console import Console
    from maymust.cli.recorded import damage_told, note_torn, read_recording

    console = Console(arguments.output)
    with damage_told(arguments.trace):
        recording = read_recording(arguments.trace)
        note_torn(recording, arguments.trace, console)
        turn = _turn(recording, arguments.step)
        tools = _tools(turn.permit, arguments.tool)
        with console.progress("explaining"):
            explanations = _explain(recording, turn, tools, arguments.policy)
        if arguments.format == "json":
            said = _document(recording, turn, explanations)
        else:
            said = _text(recording, turn, explanations, arguments, console)
    console.result(said)
    return CLEAN


def _tools(permit: Permit, tool: str | None) -> tuple[str, ...]:
    """The tools to explain. Raises UnusableError for a name that is none."""
    from maymust.cli.console import UnusableError
    from maymust.core.tool_spec import did_you_mean

    if tool is None:
        return permit.tools
    if tool not in permit.tools:
        raise UnusableError(f"--tool: there is no tool called {tool} in this run{did_you_mean(tool, permit.tools)}")
    return (tool,)


def _turn(recording: Recording, step: int | None) -> RecordedTurn:
    """The turn in which a step was called. Raises UnusableError when there is none."""
    from maymust.cli.console import UnusableError

    turns = tuple(recording.turns)
    if not turns:
        raise UnusableError("this run has no turns yet, so there is no permit to explain")
    if step is None:
        return turns[-1]
    if step > len(recording.steps):
        raise UnusableError(f"--step: this run has {len(recording.steps)} steps")
    return next(turn for turn in reversed(turns) if turn.first_step < step)


def _explain(recording: Recording, turn: RecordedTurn, tools: tuple[str, ...], policy: str | None) -> dict[str, Explanation]:
    """Explain with the recorded permit; with one made anew, where that says the same, to find what would change it."""
    from maymust.explanation import explain

    permit, anew = turn.permit, _made_anew(recording, turn, policy)
    explanations = {}
    for tool in tools:
        same = anew is not None and tool in anew.tools and anew.verdict(tool) is permit.verdict(tool)
        explanations[tool] = explain(anew if same and anew is not None else permit, tool)
    return explanations


def _made_anew(recording: Recording, turn: RecordedTurn, policy: str | None) -> Permit | None:
    from maymust.cli.target import load_target
    from maymust.policyfile.write import policy_of
    from maymust.views.anew import permit_anew

    known = load_target(policy).policy if policy is not None else policy_of(recording.policy or {})
    return None if known is None else permit_anew(turn, known)


def _text(
    recording: Recording, turn: RecordedTurn, explanations: dict[str, Explanation], arguments: argparse.Namespace, console: Any
) -> str:
    from maymust.views.paint import clean
    from maymust.views.permit_text import permit_text

    after = ", ".join(
        clean(step.tool if step.outcome == "ok" else f"{step.tool}!{step.outcome}") for step in recording.steps[: turn.first_step]
    )
    head = f"turn {turn.number} {f'after {after}' if after else 'at the start'}{' (obligations relaxed)' if turn.relaxed else ''}"
    if arguments.tool is None:
        return f"{console.paint('bold', head)}\n\n{permit_text(turn.permit, explanations, console.paint)}"
    said = "\n".join(clean(line) for line in str(explanations[arguments.tool]).splitlines())
    return f"{console.paint('bold', head)}\n\n{said}\n"


def _document(recording: Recording, turn: RecordedTurn, explanations: dict[str, Explanation]) -> str:
    from maymust.reports.machine import document
    from maymust.views.permit_text import permit_to_dict

    steps = [{"tool": step.tool, "outcome": step.outcome.value} for step in recording.steps[: turn.first_step]]
    permit = permit_to_dict(turn.permit, explanations)
    permit["tools"] = [said for said in permit["tools"] if said["tool"] in explanations]
    return document("explain", run=recording.run_id, turn=turn.number, relaxed=turn.relaxed, after=steps, permit=permit)

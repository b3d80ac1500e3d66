"""`maymust check`: what a policy makes of some calls, and what may come next."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN, FINDINGS
from maymust.cli.options import add_command, add_format, names, path_argument

if TYPE_CHECKING:
    from maymust.cli.calls import Played
    from maymust.cli.options import Subparsers

ABOUT = """\
Puts calls to a policy one after another and prints the permit that follows: what may be called, what
must be called, whether the run may stop, and why. A call the policy refuses is a finding."""
EXAMPLES = """\
  maymust check research.policy.yaml
  maymust check research.policy.yaml --calls think,search!failed"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `check`."""
    parser = add_command(subparsers, "check", "what may come after some calls", "[options] POLICY [--calls CALLS]", ABOUT, EXAMPLES)
    path_argument(parser, "policy", metavar="POLICY", help="a policy file, - for stdin, or module:name in Python")
    about = "calls so far: a,b!failed; outcomes are ok, failed, denied and refused"
    parser.add_argument("--calls", type=names, action="extend", default=[], metavar="CALLS", help=about)
    add_format(parser, ("text", "json"))
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Play the calls, and print what came of them."""
    from maymust.cli.calls import parse_calls, play
    from maymust.cli.console import Console
    from maymust.cli.target import load_target

    console = Console(arguments.output)
    target = load_target(arguments.policy)
    with console.progress(f"checking {target.name}"):
        played = play(target.policy, parse_calls(arguments.calls, target.policy.tools))
        said = _document(target.name, played) if arguments.format == "json" else _text(target.name, played, console)
    console.result(said)
    return FINDINGS if played.refused is not None or played.error is not None else CLEAN


def _text(name: str, played: Played, console: Any) -> str:
    from maymust.views.paint import clean
    from maymust.views.permit_text import explain_all, permit_text

    paint = console.paint
    lines = [f"{paint('good', '✓')} {number}. {clean(call.word)}" for number, call in enumerate(played.admitted, 1)]
    if played.refused is not None:
        call, reason = played.refused
        lines.append(f"{paint('bad', '✗')} {len(played.admitted) + 1}. {clean(call.word)}: {clean(reason)}")
    blocks = ["\n".join(lines) + "\n"] if lines else []
    after = ", ".join(clean(call.word) for call in played.admitted)
    blocks.append(f"{paint('bold', clean(name))} {f'after {after}' if after else 'at the start'}\n")
    if played.ended:
        blocks.append("the run has ended\n")
    elif played.error is not None:
        blocks.append(f"{paint('bad', 'no next step')}: {clean(str(played.error))}\n")
    if played.permit is not None:
        blocks.append(permit_text(played.permit, explain_all(played.permit), paint))
    return "\n".join(blocks)


def _document(name: str, played: Played) -> str:
    from maymust.policyfile.judge import fault_name
    from maymust.reports.machine import document
    from maymust.views.permit_text import explain_all, permit_to_dict

    calls: list[dict[str, Any]] = [{"tool": call.tool, "outcome": call.outcome.value, "admitted": True} for call in played.admitted]
    if played.refused is not None:
        call, reason = played.refused
        calls.append({"tool": call.tool, "outcome": call.outcome.value, "admitted": False, "reason": reason})
    permit = None if played.permit is None else permit_to_dict(played.permit, explain_all(played.permit))
    error = None if played.error is None else {"name": fault_name(played.error), "message": str(played.error)}
    return document("check", policy=name, calls=calls, ended=played.ended, permit=permit, error=error)

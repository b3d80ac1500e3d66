"""`maymust diff`: what a policy allows that another does not; or where two traces differ."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN, FINDINGS, UNDECIDED
from maymust.cli.options import add_command, add_format, path_argument, whole

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.cli.target import Target
    from maymust.reports.diagnostic import Diagnostic
    from maymust.reports.difference import Difference, Gain

ABOUT = """\
Says what policy B allows that policy A does not: for each tool, and each rule of A that closes it, the
shortest sequence of calls, allowed by both, after which only B lets it through, or asks no person
where A does. Being stricter is no finding. What cannot be compared (values of arguments, Python code) is told, and makes it undecided.

Of two traces it says where the runs differ: in verdicts, in calls, in their end."""
EXAMPLES = """\
  maymust diff old.policy.yaml new.policy.yaml
  git show main:p.policy.yaml | maymust diff - p.policy.yaml --format github
  maymust diff yesterday.jsonl today.jsonl"""
FORMATS = ("text", "json", "sarif", "github")
_ALLOWS = "allows what is refused or asked about by"
_NOTHING = "allows nothing that is refused or asked about by"
_STOPPED = "was not compared to the end with"
_WORDS = {"allowed": ("MD001", "allows more"), "unasked": ("MD002", "asks no person")}


def add_parser(subparsers: Subparsers) -> None:
    """Add `diff`."""
    parser = add_command(subparsers, "diff", "what policy B allows that A does not; or two traces", "[options] A B", ABOUT, EXAMPLES)
    path_argument(parser, "old", metavar="A", help="the policy to compare with, e.g. the one before a change; - for stdin")
    path_argument(parser, "new", metavar="B", help="the policy that may allow more")
    parser.add_argument("--limit", type=whole, metavar="N", help="give up after N pairs of states")
    add_format(parser, FORMATS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Compare two policies, or two traces."""
    from maymust.cli.console import Console, UnusableError
    from maymust.cli.target import load_target
    from maymust.cli.trace_difference import are_traces, compare_traces
    from maymust.reports.difference import compare

    if arguments.old == arguments.new == "-":
        raise UnusableError("only one of the two policies can come from stdin")
    if are_traces(arguments.old, arguments.new):
        return compare_traces(arguments)
    console = Console(arguments.output)
    old, new = load_target(arguments.old), load_target(arguments.new)
    with console.progress(f"comparing {old.name} and {new.name}"):
        difference = compare(old.policy, new.policy, limit=arguments.limit)
    undecided = not difference.complete or bool(difference.uncompared)
    code = FINDINGS if difference.gains else UNDECIDED if undecided else CLEAN
    _write(old, new, difference, code, arguments.format, console)
    return code


def _write(old: Target, new: Target, difference: Difference, code: int, format: str, console: Any) -> None:
    from maymust import __version__
    from maymust.reports.diagnostic import FileResult
    from maymust.reports.github import github_document
    from maymust.reports.sarif import sarif_document

    found = tuple(_diagnostic(old, new, gain) for gain in difference.gains)
    result = FileResult(new.name, "ok", found, tools=new.locator.tools())
    if format == "json":
        console.result(_document(old, new, difference, found, code))
    elif format == "sarif":
        console.result(sarif_document([result], version=__version__, exit_code=code))
    elif format == "github":
        console.result(github_document([result]))
    else:
        console.result(_text(old, new, difference, found, console))


def _diagnostic(old: Target, new: Target, gain: Gain) -> Diagnostic:
    from maymust.reports.diagnostic import Diagnostic, Related

    code, name = _WORDS[gain.kind]
    after = f"after {', '.join(gain.witness)}" if gain.witness else "at the start"
    freely = "" if gain.kind == "allowed" else " without a person's yes"
    why = "; ".join(gain.reasons)
    message = f"{after}, {gain.tool} may be called{freely}, and {old.name} {'refuses it' if not freely else 'asks for one'}"
    place = new.locator.tools().get(gain.tool) or new.locator.rule("")
    related = tuple(Related(f"rule {rule}", at) for rule in gain.rules if (at := old.locator.rule(rule)) is not None)
    message = f"{message}: {why}" if why else message
    return Diagnostic(code, name, "error", message, place, rules=gain.rules, related=related, witness=(*gain.witness, gain.tool))


def _text(old: Target, new: Target, difference: Difference, found: tuple[Diagnostic, ...], console: Any) -> str:
    from maymust.reports.text import render_diagnostic
    from maymust.views.paint import clean

    paint = console.paint
    blocks = [render_diagnostic(diagnostic, paint) for diagnostic in found]
    names = f"{clean(new.name)} {{}} {clean(old.name)}"
    if found:
        count = f"{len(found)} finding{'' if len(found) == 1 else 's'}"
        lines = [f"{paint('bad', f'✗ {names.format(_ALLOWS)}')} ({count})"]
    elif difference.complete:
        lines = [paint("good", f"✓ {names.format(_NOTHING)}")]
    else:
        lines = [paint("warning", f"? {names.format(_STOPPED)}")]
    if found and not difference.complete:
        lines.append("  - there may be more: not every pair of states was looked at; --limit N looks at more")
    lines.extend(f"  - not compared: {clean(what)}" for what in difference.uncompared)
    return "\n".join([*blocks, "\n".join(lines) + "\n"])


def _document(old: Target, new: Target, difference: Difference, found: tuple[Diagnostic, ...], code: int) -> str:
    from maymust.reports.machine import document

    gains = [{"tool": gain.tool, "kind": gain.kind, "witness": list(gain.witness), "rules": list(gain.rules)} for gain in difference.gains]
    return document(
        "diff",
        a=old.name,
        b=new.name,
        exit_code=code,
        gains=gains,
        complete=difference.complete,
        uncompared=list(difference.uncompared),
        diagnostics=[diagnostic.to_dict() for diagnostic in found],
    )

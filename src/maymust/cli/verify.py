"""`maymust verify`: what can go wrong in any run of a policy."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN, FINDINGS, UNDECIDED, UNUSABLE
from maymust.cli.options import add_command, add_format, names, path_argument, whole

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.cli.target import Target
    from maymust.reports.diagnostic import FileResult
    from maymust.verify.report import Report

FORMATS = ("text", "json", "sarif", "junit", "github")
ABOUT = """\
Looks at every run that a policy permits and reports contradictions, dead ends, obligations that can
no longer be met and tools that can never be called, each with a shortest sequence of calls."""
EXAMPLES = """\
  maymust verify research.policy.yaml
  maymust verify policies/*.policy.yaml --format sarif -o maymust.sarif
  maymust verify myapp.agents:desk --may-fail lookup --max-turns 20"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `verify`."""
    parser = add_command(subparsers, "verify", "look for what can go wrong in any run", "[options] POLICY...", ABOUT, EXAMPLES)
    path_argument(parser, "policies", nargs="+", metavar="POLICY", help="a policy file, - for stdin, or module:name in Python")
    parser.add_argument(
        "--may-fail", type=names, action="extend", default=[], metavar="TOOLS", help="tools whose calls may fail, beside those of the file"
    )
    parser.add_argument(
        "--may-be-denied", type=names, action="extend", default=[], metavar="TOOLS", help="tools a person may say no to, likewise"
    )
    parser.add_argument("--max-turns", type=whole, metavar="N", help="a run has at most N turns (default: what the file says)")
    parser.add_argument(
        "--limit",
        type=whole,
        default=None,
        metavar="N",
        help="give up after N states; the verdict is then undecided, unless the extra bdd finds it",
    )
    parser.add_argument("--strict", action="store_true", help="warnings count as findings")
    add_format(parser, FORMATS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Verify each policy."""
    from maymust.cli.console import Console, UnusableError
    from maymust.errors import PolicyError

    console = Console(arguments.output)
    results: list[FileResult] = []
    is_whole = True
    for text in arguments.policies:
        try:
            results.append(_verify(text, arguments, console))
        except (UnusableError, PolicyError) as error:
            said = str(error)
            console.error(said if said.startswith(text) or len(arguments.policies) == 1 else f"{text}: {said}")
            is_whole = False
    code = exit_code(results, strict=arguments.strict) if is_whole else UNUSABLE
    write(results, arguments.format, code, console)
    return code


def exit_code(results: list[FileResult], *, strict: bool = False) -> int:
    """The exit code of some results: the gravest of them."""
    if any(result.verdict == "unusable" for result in results):
        return UNUSABLE
    if any(result.count("error") or (strict and result.count("warning")) for result in results):
        return FINDINGS
    return UNDECIDED if any(result.verdict == "undecided" for result in results) else CLEAN


def write(results: list[FileResult], format: str, code: int, console: Any) -> None:
    """Write results in a format. In text, what is unusable goes to stderr."""
    from maymust import __version__
    from maymust.reports.github import github_document
    from maymust.reports.junit import junit_document, verify_cases
    from maymust.reports.machine import results_document
    from maymust.reports.sarif import sarif_document
    from maymust.reports.text import render_result

    if format == "json":
        console.result(results_document(results, code))
    elif format == "sarif":
        console.result(sarif_document(results, version=__version__, exit_code=code))
    elif format == "junit":
        console.result(junit_document(verify_cases(results)))
    elif format == "github":
        console.result(github_document(results))
    else:
        usable = [result for result in results if result.verdict != "unusable"]
        for result in results:
            if result.verdict == "unusable":
                console.say(render_result(result, console.err_paint).rstrip("\n"))
        console.result("\n".join(render_result(result, console.paint) for result in usable))


def _verify(text: str, arguments: argparse.Namespace, console: Any) -> FileResult:
    from maymust.cli.target import load_target
    from maymust.policyfile.problem import PolicyFileError
    from maymust.reports.diagnostic import FileResult, of_file_error

    try:
        target = load_target(text)
    except PolicyFileError as error:
        return of_file_error(error)
    with console.progress(f"verifying {target.name}"):
        report = _report(target, arguments)
    locator = target.locator
    found = tuple(locator.diagnostic(finding) for finding in report.findings)
    return FileResult(target.name, report.verdict, found, _facts(report), report, locator.tools())


def _report(target: Target, arguments: argparse.Namespace) -> Report:
    from maymust.verify.prove import verify

    file = target.file
    may_fail = (*(file.may_fail if file is not None else ()), *arguments.may_fail)
    denied = (*(file.may_be_denied if file is not None else ()), *arguments.may_be_denied)
    turns = arguments.max_turns or (file.max_turns if file is not None else None)
    return verify(target.policy, max_turns=turns, may_fail=may_fail, may_be_denied=denied, limit=arguments.limit)


def _facts(report: Report) -> tuple[str, ...]:
    """What holds. The time is told only when it was felt, so that the same policy gives the same text."""
    time = f" in {report.seconds:.1f} s" if report.seconds >= 1 else ""
    counted = f"{report.states} state{'' if report.states == 1 else 's'}, {report.moves} move{'' if report.moves == 1 else 's'}{time}"
    return (counted, *report.facts[1:], *(f"assumed: {assumption}" for assumption in report.assumptions))

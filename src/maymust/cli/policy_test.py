"""`maymust test`: run policy tests without pytest."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN, FINDINGS, UNUSABLE
from maymust.cli.options import add_command, add_format, path_argument

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.policyfile.cases import Case, CaseFile
    from maymust.reports.diagnostic import Diagnostic, FileResult

ABOUT = """\
Runs the cases of policy tests (*.policy-test.yaml), which say what a policy allows after some calls,
and why it does not. With pytest and maymust installed, pytest collects the same files."""
EXAMPLES = "  maymust test policies/*.policy-test.yaml --format junit -o results.xml"
FORMATS = ("text", "json", "junit", "github")


def add_parser(subparsers: Subparsers) -> None:
    """Add `test`."""
    parser = add_command(subparsers, "test", "run policy tests", "[options] FILE...", ABOUT, EXAMPLES)
    path_argument(parser, "files", nargs="+", metavar="FILE", help="a policy test (*.policy-test.yaml)")
    add_format(parser, FORMATS)
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Run each file."""
    from maymust.cli.console import Console

    console = Console(arguments.output)
    results = [_run(path) for path in arguments.files]
    failed = any(result.diagnostics for result, _ in results)
    code = UNUSABLE if any(result.verdict == "unusable" for result, _ in results) else FINDINGS if failed else CLEAN
    _write(results, arguments.format, code, console)
    return code


Outcomes = list[tuple[str, tuple["Diagnostic", ...]]]


def _run(path: str) -> tuple[FileResult, Outcomes]:
    """What came of one file: as a whole, and case by case."""
    from maymust.policyfile.cases import read_case_file
    from maymust.policyfile.problem import PolicyFileError
    from maymust.reports.diagnostic import FileResult, of_file_error

    try:
        file = read_case_file(path)
    except PolicyFileError as error:
        return of_file_error(error), []
    cases = [(case.name, _diagnostics(file, case)) for case in file.cases]
    failed = sum(bool(found) for _, found in cases)
    facts = (f"{len(cases) - failed} of {len(cases)} cases hold",)
    found = tuple(diagnostic for _, diagnostics in cases for diagnostic in diagnostics)
    return FileResult(path, "failed" if failed else "ok", found, facts), cases


def _diagnostics(file: CaseFile, case: Case) -> tuple[Diagnostic, ...]:
    from maymust.policyfile.cases import position_in
    from maymust.policyfile.judge import judge
    from maymust.reports.diagnostic import Diagnostic, place_in

    made = []
    for failure in judge(file.policy.policy, case):
        code, name = ("MT002", "history cannot happen") if failure.unlawful else ("MT001", "case does not hold")
        place = place_in(file.source.path, position_in(case, failure.key), file.source.lines)
        hint = "change the history, or write lawful: false" if failure.unlawful else ""
        made.append(Diagnostic(code, name, "error", f"{case.name}: {failure.message}", place, hint, notes=failure.why))
    return tuple(made)


def _write(results: list[tuple[FileResult, Outcomes]], format: str, code: int, console: Any) -> None:
    from maymust.reports.github import github_document
    from maymust.reports.junit import Case, junit_document
    from maymust.reports.machine import document
    from maymust.reports.text import render_result

    files = [result for result, _ in results]
    if format == "json":
        console.result(document("test", exit_code=code, files=[_to_dict(result, cases) for result, cases in results]))
    elif format == "junit":
        made = [Case(name, result.path, found) for result, cases in results for name, found in cases]
        made.extend(Case("read", result.path, result.diagnostics, is_error=True) for result in files if result.verdict == "unusable")
        console.result(junit_document(made))
    elif format == "github":
        console.result(github_document(files))
    else:
        for result in files:
            if result.verdict == "unusable":
                console.say(render_result(result, console.err_paint).rstrip("\n"))
        console.result("\n".join(render_result(result, console.paint) for result in files if result.verdict != "unusable"))


def _to_dict(result: FileResult, cases: Outcomes) -> dict[str, Any]:
    return {
        "path": result.path,
        "verdict": result.verdict,
        "cases": [{"name": name, "holds": not found, "diagnostics": [one.to_dict() for one in found]} for name, found in cases],
        "diagnostics": [] if cases else [one.to_dict() for one in result.diagnostics],
    }

"""Results as JUnit XML, which every CI reads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from xml.etree import ElementTree as Xml

from maymust.reports.diagnostic import Diagnostic, FileResult
from maymust.reports.text import render_diagnostic
from maymust.views.paint import Paint, clean


@dataclass(frozen=True, slots=True)
class Case:
    """One test case: a policy that was verified, or a case of a policy test. `failures` are empty when it passed."""

    name: str
    suite: str
    failures: tuple[Diagnostic, ...] = ()
    output: str = ""
    is_error: bool = False


def junit_document(cases: Sequence[Case]) -> str:
    """One document; cases are grouped by their suite."""
    root = Xml.Element("testsuites", _counts(cases) | {"name": "maymust"})
    for suite in dict.fromkeys(case.suite for case in cases):
        members = [case for case in cases if case.suite == suite]
        element = Xml.SubElement(root, "testsuite", _counts(members) | {"name": clean(suite)})
        for case in members:
            _add(element, case)
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="utf-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def verify_cases(results: Iterable[FileResult]) -> list[Case]:
    """A case for each file. Errors are failures; warnings are its output."""
    made = []
    for result in results:
        failures = tuple(diagnostic for diagnostic in result.diagnostics if diagnostic.severity == "error")
        others = (diagnostic for diagnostic in result.diagnostics if diagnostic.severity != "error")
        output = "\n".join([*(render_diagnostic(other, Paint(False)) for other in others), *result.facts])
        made.append(Case("verify", result.path, failures, output, result.verdict == "unusable"))
    return made


def _counts(cases: Sequence[Case]) -> dict[str, str]:
    failing = [case for case in cases if case.failures]
    errors = sum(case.is_error for case in failing)
    return {"tests": str(len(cases)), "failures": str(len(failing) - errors), "errors": str(errors)}


def _add(suite: Xml.Element, case: Case) -> None:
    element = Xml.SubElement(suite, "testcase", {"name": clean(case.name), "classname": clean(case.suite)})
    for failure in case.failures:
        told = Xml.SubElement(
            element, "error" if case.is_error else "failure", {"message": clean(failure.message), "type": f"{failure.code} {failure.name}"}
        )
        told.text = render_diagnostic(failure, Paint(False))
    if case.output:
        Xml.SubElement(element, "system-out").text = "\n".join(clean(line) for line in case.output.splitlines())

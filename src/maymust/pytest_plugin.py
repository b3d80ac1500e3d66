"""The pytest plugin: collects policy tests (`*.policy-test.yaml`), one test for each case."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from maymust.policyfile.cases import Case, CaseFile

SUFFIX = ".policy-test.yaml"


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    """Collect a policy test. Nothing of maymust is loaded before there is one."""
    if file_path.name.endswith(SUFFIX):
        collector: pytest.Collector = PolicyTestFile.from_parent(parent, path=file_path)
        return collector
    return None


class PolicyTestFile(pytest.File):
    """A file of cases."""

    def collect(self) -> Iterator[pytest.Item]:
        from maymust.policyfile.cases import read_case_file
        from maymust.policyfile.problem import PolicyFileError

        try:
            file = read_case_file(self.path)
        except PolicyFileError as error:
            raise self.CollectError(str(error)) from None
        for case in file.cases:
            yield PolicyTestCase.from_parent(self, name=case.name, file=file, case=case)


class CaseFailed(Exception):
    """A case does not hold."""


class PolicyTestCase(pytest.Item):
    """One case."""

    def __init__(self, *, file: CaseFile, case: Case, **settings: Any) -> None:
        super().__init__(**settings)
        self.file = file
        self.case = case

    def runtest(self) -> None:
        from maymust.policyfile.cases import position_in
        from maymust.policyfile.judge import judge

        failures = judge(self.file.policy.policy, self.case)
        if failures:
            places = (position_in(self.case, failure.key) for failure in failures)
            lines = [f"{self.path}:{place.line}:{place.column}: {failure}" for place, failure in zip(places, failures, strict=True)]
            raise CaseFailed("\n".join(lines))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, CaseFailed):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, self.case.at.line - 1, self.name

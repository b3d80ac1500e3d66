"""`maymust test`: policy tests without pytest."""

import json
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.cli.commands import command, write
from tests.policyfile.test_cases import GOOD, POLICY

BAD = "  the answer may come at once:\n    may_stop: true\n  nobody calls twice:\n    after: [think, think]\n    allows: search\n"


@pytest.fixture
def here(tmp_path: Path) -> Path:
    write(tmp_path, "p.policy.yaml", POLICY)
    write(tmp_path, "good.policy-test.yaml", f"version: 1\npolicy: p.policy.yaml\ncases:\n{GOOD}")
    write(tmp_path, "bad.policy-test.yaml", f"version: 1\npolicy: p.policy.yaml\ncases:\n{BAD}")
    write(tmp_path, "odd.policy-test.yaml", "version: 1\npolicy: p.policy.yaml\ncases:\n  x: {allow: search}\n")
    return tmp_path


def test_cases_that_hold_are_counted(here: Path) -> None:
    done = command(here, "test", "good.policy-test.yaml")
    assert (done.code, done.out, done.err) == (0, "✓ good.policy-test.yaml: ok\n  - 3 of 3 cases hold\n", "")


def test_a_case_that_does_not_hold_is_shown_where_it_stands(here: Path) -> None:
    done = command(here, "test", "bad.policy-test.yaml", "good.policy-test.yaml")
    assert done.code == 1
    assert done.out.startswith(
        "error[MT001]: the answer may come at once: the run may not stop, and should\n"
        "  --> bad.policy-test.yaml:5:5\n"
        "     |\n"
        "   5 |     may_stop: true\n"
        "     |     ^^^^^^^^\n"
        "    = note: think-first forces think and prevents the end: think has to be called now (step 1)\n"
        "    = note: answer-last denies final_answer: search has to succeed first (search: 0 ok calls)\n"
    )
    assert "error[MT002]: nobody calls twice: step 2 cannot happen: think is refused" in done.out
    assert "✗ bad.policy-test.yaml: failed (2 errors)\n  - 0 of 2 cases hold\n" in done.out


def test_a_file_that_is_no_test_is_unusable(here: Path) -> None:
    done = command(here, "test", "odd.policy-test.yaml")
    assert (done.code, done.out) == (2, "")
    assert "--> odd.policy-test.yaml:4:7" in done.err


def test_json_junit_and_annotations(here: Path) -> None:
    files = ("good.policy-test.yaml", "bad.policy-test.yaml", "odd.policy-test.yaml")
    data = json.loads(command(here, "test", *files, "--json").out)
    assert (data["schema"], data["exit_code"]) == ("maymust.test/1", 2)
    assert [len(file["cases"]) for file in data["files"]] == [3, 2, 0]
    root = ElementTree.fromstring(command(here, "test", *files, "--format", "junit").out)
    assert (root.get("tests"), root.get("failures"), root.get("errors")) == ("6", "2", "1")
    names = [case.get("name") for case in root.iter("testcase")]
    assert names[:2] == ["thinking comes first", "search opens after think"]
    lines = command(here, "test", *files, "--format", "github").out.splitlines()
    assert lines[0].startswith("::error file=bad.policy-test.yaml,line=5,col=5,title=MT001 case does not hold,endColumn=13::")

"""The pytest plugin: cases of `*.policy-test.yaml` are tests like any other."""

import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

from tests.policyfile.test_cases import GOOD, POLICY

BAD = "  the answer may come at once:\n    may_stop: true\n"


def run_pytest(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    # Where the package is installed, the plugin is there already, and naming it again would be an error.
    named = [] if any(point.name == "maymust" for point in entry_points(group="pytest11")) else ["-p", "maymust.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", *named, "-p", "no:cacheprovider", "-p", "no:hypothesispytest", *arguments]
    return subprocess.run(command, cwd=directory, capture_output=True, text=True, check=False)


def write(directory: Path, cases: str) -> None:
    (directory / "p.policy.yaml").write_text(POLICY, encoding="utf-8")
    (directory / "p.policy-test.yaml").write_text(f"version: 1\npolicy: p.policy.yaml\ncases:\n{cases}", encoding="utf-8")


def test_each_case_is_a_test(tmp_path: Path) -> None:
    write(tmp_path, GOOD)
    done = run_pytest(tmp_path, "-v")
    assert done.returncode == 0, done.stdout
    assert "p.policy-test.yaml::thinking comes first PASSED" in done.stdout
    assert "3 passed" in done.stdout


def test_a_failure_says_where_and_why_without_a_traceback(tmp_path: Path) -> None:
    write(tmp_path, GOOD + BAD)
    done = run_pytest(tmp_path)
    assert done.returncode == 1
    assert "1 failed, 3 passed" in done.stdout
    assert "p.policy-test.yaml:20:5: the run may not stop, and should" in done.stdout
    assert "answer-last denies final_answer: search has to succeed first (search: 0 ok calls)" in done.stdout
    assert "judge.py" not in done.stdout


def test_one_case_can_be_chosen(tmp_path: Path) -> None:
    write(tmp_path, GOOD + BAD)
    done = run_pytest(tmp_path, "-k", "opens")
    assert "1 passed, 3 deselected" in done.stdout


def test_a_bad_file_is_an_error_of_collection_with_a_place(tmp_path: Path) -> None:
    write(tmp_path, "  x: {allow: search}\n")
    done = run_pytest(tmp_path)
    assert done.returncode == 2
    assert "p.policy-test.yaml:4:7: the key allow is unknown; did you mean allows" in done.stdout


def test_the_plugin_costs_nothing_where_there_are_no_policy_tests(tmp_path: Path) -> None:
    probe = "import sys, maymust.pytest_plugin; print(sorted(n for n in sys.modules if n.startswith(('maymust.', 'yaml', 'pydantic'))))"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout == "['maymust.pytest_plugin']\n"

"""Every example has the same parts, its policy is clean, and its folder runs wherever it is copied to."""

from __future__ import annotations

import os
import re
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from maymust.cli.main import main as maymust

EXAMPLES = Path(__file__).resolve().parent.parent.parent / "examples"
FOLDERS = sorted(path.parent for path in EXAMPLES.glob("*/__main__.py"))
each_example = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def run(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {name: value for name, value in os.environ.items() if not name.endswith("_API_KEY")}
    return subprocess.run(
        [sys.executable, "-m", *arguments], cwd=directory, env=environment, capture_output=True, text=True, stdin=subprocess.DEVNULL
    )


@each_example
def test_it_has_a_readme_a_policy_and_its_tests(folder: Path) -> None:
    names = {path.name for path in folder.iterdir()}
    assert {"README.md", f"{folder.name}.policy.yaml", f"{folder.name}.policy-test.yaml", "script.py"} <= names
    readme = (folder / "README.md").read_text(encoding="utf-8")
    assert readme.count("\n") <= 45
    assert f"python -m examples.{folder.name}" in readme
    assert [name for name in re.findall(r"`(\w+\.(?:py|sql|yaml))`", readme) if name not in names] == []


@each_example
def test_its_policy_is_proved_clean_also_of_warnings(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert maymust(["verify", "--strict", str(folder / f"{folder.name}.policy.yaml")]) == 0
    assert "the end stays reachable whatever happens" in capsys.readouterr().out


@each_example
def test_its_policy_tests_hold(folder: Path) -> None:
    assert maymust(["test", str(folder / f"{folder.name}.policy-test.yaml")]) == 0


@each_example
def test_a_copy_of_the_folder_runs_by_itself(folder: Path, tmp_path: Path) -> None:
    shutil.copytree(folder, tmp_path / "mine", ignore=shutil.ignore_patterns("__pycache__"))
    done = run(tmp_path, "mine")
    if folder.name == "many_workers" and sys.version_info >= (3, 12) and sqlite3.sqlite_version_info < (3, 42):
        # Its default is a file; on Postgres it is tested everywhere.
        assert done.returncode == 1
        assert "DBOS needs SQLite 3.42" in done.stderr
        return
    assert done.returncode == 0, done.stdout + done.stderr
    assert "NOT ALLOWED" not in done.stdout
    assert not re.search("(?m)^Traceback", done.stderr)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["mine"]
    made = {path.name for path in (tmp_path / "mine").rglob("*")} - {path.name for path in folder.rglob("*")}
    assert {name for name in made if not name.endswith(".pyc")} <= {"__pycache__"}


@each_example
def test_a_model_that_cannot_be_had_is_told_in_a_line(folder: Path) -> None:
    done = run(EXAMPLES.parent, f"examples.{folder.name}", "--model", "opennai:x")
    assert done.returncode == 1
    assert "unknown provider 'opennai'" in done.stderr
    assert "Traceback" not in done.stderr

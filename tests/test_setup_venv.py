"""What `make` says when a machine lacks something."""

import json
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

from scripts import setup_venv

SCRIPT = Path(setup_venv.__file__)


def told(output: str) -> str:
    with pytest.raises(SystemExit) as caught:
        setup_venv.explain_failure(output)
    return str(caught.value)


def test_a_missing_wheel_names_the_package_the_platform_and_what_to_do() -> None:
    text = told("ERROR: Could not find a version ... (from versions: none)\nERROR: No matching distribution found for xllamacpp>=2026.10")
    assert "no prebuilt wheel of `xllamacpp`" in text
    assert sysconfig.get_platform() in text
    assert "pip install maymust" in text


def test_no_network_is_told_from_a_missing_wheel() -> None:
    text = told("WARNING: Retrying ... NewConnectionError(...)\nERROR: No matching distribution found for xllamacpp>=2026.10")
    assert "could not reach the package index" in text


def test_any_other_failure_keeps_what_pip_said_and_names_the_platform() -> None:
    assert "pip failed" in told("ERROR: something new")


def test_another_python_version_is_refused_with_the_line_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_venv, "NEWEST", (3, 10))
    with pytest.raises(SystemExit, match="PYTHON="):
        setup_venv.check_python()


def test_a_finished_virtualenv_is_used_as_it_is(tmp_path: Path) -> None:
    directory = tmp_path / "venv"
    python = directory / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    python.parent.mkdir(parents=True)
    python.write_text("never run")
    (directory / "installed-local.json").write_text(json.dumps(setup_venv.wanted("local")))
    done = subprocess.run([sys.executable, SCRIPT, directory, "local"], capture_output=True, text=True, check=True)
    assert done.stdout + done.stderr == ""


def test_where_no_virtualenv_can_be_made_the_error_says_why(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("in the way")
    done = subprocess.run([sys.executable, SCRIPT, blocked / "venv", "local"], capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert "no virtualenv could be made" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.parametrize("version", ["(2, 7)", "(3, 6)"])
def test_a_python_too_old_to_read_the_script_is_told_what_is_needed(version: str, tmp_path: Path) -> None:
    old = tmp_path / "python"
    old.write_text(f'#!/bin/sh\nexec {sys.executable} -c "import sys; sys.version_info = {version}; exec(sys.argv[1])" "$2"\n')
    old.chmod(0o755)
    done = subprocess.run(["make", "demo", f"PYTHON={old}"], cwd=SCRIPT.parent.parent, capture_output=True, text=True)
    assert done.returncode
    assert "this needs Python 3.11, 3.12 or 3.13" in done.stderr


@pytest.mark.parametrize("target", ["demo", "test", "test-adapters", "test-all-pythons", "system"])
@pytest.mark.parametrize("absent", ["python9", "/nowhere/python"])
def test_a_python_that_is_not_there_is_named_in_one_line_with_what_to_type(target: str, absent: str) -> None:
    done = subprocess.run(["make", target, f"PYTHON={absent}"], cwd=SCRIPT.parent.parent, capture_output=True, text=True)
    assert done.returncode
    said, of_make = done.stderr.splitlines()
    needs = f"maymust: this needs Python 3.11, 3.12 or 3.13, and there is no {absent} here."
    assert said == f"{needs} Name another one: make {target} PYTHON=/path/to/python3.13"
    assert ": *** [" in of_make

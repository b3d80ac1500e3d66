"""`make test-all-pythons` knows which versions there are, and says which one is missing."""

import sys
from pathlib import Path

import pytest

from scripts import all_pythons


def test_the_supported_versions_are_those_of_the_metadata() -> None:
    assert all_pythons.supported() == ["3.11", "3.12", "3.13"]


def test_the_running_interpreter_is_found_for_its_version() -> None:
    assert all_pythons.find(f"{sys.version_info[0]}.{sys.version_info[1]}") == sys.executable


def test_a_file_that_is_no_interpreter_and_a_missing_one_are_none(tmp_path: Path) -> None:
    shim = tmp_path / "python3.12"
    shim.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    shim.chmod(0o755)
    assert not all_pythons.is_version(str(shim), "3.12")
    assert not all_pythons.is_version(str(tmp_path / "nothing"), "3.12")


def test_a_version_that_is_not_here_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setenv("PATH", str(tmp_path))
    other = next(version for version in all_pythons.supported() if version != f"{sys.version_info[0]}.{sys.version_info[1]}")
    assert all_pythons.test(other, []) == f"there is no Python {other} here; put python{other} on the path"
    monkeypatch.setattr(sys, "argv", ["all_pythons", "--only", "2.7"])
    with pytest.raises(SystemExit, match=r"Python 2\.7 is not supported"):
        all_pythons.main()

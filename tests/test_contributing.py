"""The recipes of CONTRIBUTING.md, followed word for word in a copy of the tree."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
TEXT = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^(?P<fence>`{3,4})(?P<kind>python|diff|text) (?P<path>\S+)\n(?P<body>.*?)^(?P=fence)$", re.DOTALL | re.MULTILINE)


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of what the recipes touch, with all of them followed."""
    folder = tmp_path_factory.mktemp("recipes")
    ignore = shutil.ignore_patterns("__pycache__", "data", "released")
    for name in ("src", "tests", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=ignore)
    for name in ("pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    for fence in FENCE.finditer(TEXT):
        follow(folder / fence["path"], fence["kind"], fence["body"])
    return folder


def follow(path: Path, kind: str, body: str) -> None:
    """Write a new file, add lines where a diff says, or append a text."""
    if kind == "python":
        assert not path.exists(), f"{path} is there already"
        path.write_text(body, encoding="utf-8")
        return
    before = path.read_text(encoding="utf-8")
    if kind == "text":
        path.write_text(before + body, encoding="utf-8")
        return
    lines = body.splitlines()
    old = "".join(f"{line[1:]}\n" for line in lines if line.startswith(" "))
    new = "".join(f"{line[1:]}\n" for line in lines)
    assert before.count(old) == 1, f"{path} has not once what the recipe goes by:\n{old}"
    path.write_text(before.replace(old, new), encoding="utf-8")


def recipes() -> Iterator[tuple[str, list[str]]]:
    """The title of each recipe, with the tests it writes."""
    for section in TEXT.split("\n## Add ")[1:]:
        tests = [fence["path"] for fence in FENCE.finditer(section) if fence["path"].startswith("tests/")]
        if tests:
            yield section.partition("\n")[0], tests


def python(copy: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src")}
    return subprocess.run([sys.executable, *arguments], cwd=copy, env=environment, capture_output=True, text=True)


def test_the_tests_that_the_recipes_write_pass_beside_those_that_are_there(copy: Path) -> None:
    written = [path for _, tests in recipes() for path in tests]
    assert [title for title, _ in recipes()] == ["a requirement", "a finding", "an adapter"]
    beside = ["tests/test_public_names.py", "tests/verify/test_docs.py"]
    # How fast it is imported is not what a recipe is about.
    done = python(copy, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", "not at_most_30_ms", *written, *beside)
    assert done.returncode == 0, done.stdout[-3000:]


def test_what_the_recipes_write_has_the_style_of_the_tree(copy: Path) -> None:
    written = [fence["path"] for fence in FENCE.finditer(TEXT) if fence["path"].startswith("src/")]
    done = python(copy, "-m", "ruff", "check", *dict.fromkeys(written))
    assert done.returncode == 0, done.stdout


def test_the_targets_and_files_it_names_are_there() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for line in re.findall(r"^make ([a-z -]+?)(?: +[#A].*)?$", TEXT, re.MULTILINE):
        for target in line.split():
            assert re.search(rf"^{target}:", makefile, re.MULTILINE), target
    named = {path for path in re.findall(r"`((?:scripts|tests|docs)/[\w./-]+)`", TEXT) if "NAME" not in path}
    assert [path for path in named if not (ROOT / path).exists()] == []

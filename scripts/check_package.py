"""Build the source archive and the wheel, check what is in them, and install the wheel into a virtualenv of its own.

    python -m scripts.check_package [DIRECTORY]

With a directory the two files are kept there. Needs `build`, `hatchling`, `twine` and `check-wheel-contents`, all in the extra `dev`.
"""

from __future__ import annotations

import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from collections.abc import Iterable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
VERSION: str = PROJECT["project"]["version"]
NEEDED = ("README.md", "LICENSE", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md", "llms.txt", "Makefile", "pyproject.toml")
"""What a source archive has beside the folders."""


def package_files(root: Path = ROOT) -> set[str]:
    """The files of the package, as paths in the wheel."""
    source = root / "src"
    return {
        path.relative_to(source).as_posix()
        for path in source.rglob("*")
        if path.is_file() and "__pycache__" not in path.parts and ".egg-info" not in str(path)
    }


def wheel_faults(names: Iterable[str], expected: set[str]) -> list[str]:
    """What is wrong with the files of a wheel."""
    found = {name for name in names if not name.startswith(f"maymust-{VERSION}.dist-info/")}
    faults = [f"the wheel lacks {name}" for name in sorted(expected - found)]
    return faults + [f"the wheel has {name}, which is no part of the package" for name in sorted(found - expected)]


def archive_faults(names: Iterable[str]) -> list[str]:
    """What is wrong with the files of a source archive."""
    inside = {name.partition("/")[2] for name in names}
    faults = [f"the source archive lacks {name}" for name in NEEDED if name not in inside]
    folders = ("src/maymust", "tests", "examples", "docs", "scripts", "benchmarks")
    faults += [f"the source archive lacks {folder}/" for folder in folders if not any(name.startswith(f"{folder}/") for name in inside)]
    return faults + [f"the source archive has {name}" for name in sorted(inside) if "__pycache__" in name or name.startswith(".venv")]


def run(*command: str | Path, cwd: Path = ROOT) -> str:
    """Run a command; its output. Ends the program with what it said when it fails."""
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}\n{done.stdout}{done.stderr}")
    return done.stdout


def build(directory: Path) -> tuple[Path, Path]:
    """Build both; the wheel is made from the source archive, as an installer would."""
    run(sys.executable, "-m", "build", "--no-isolation", "--outdir", directory, ROOT)
    archive, wheel = directory / f"maymust-{VERSION}.tar.gz", directory / f"maymust-{VERSION}-py3-none-any.whl"
    run(sys.executable, "-m", "twine", "check", "--strict", archive, wheel)
    run(sys.executable, "-m", "check_wheel_contents", wheel)
    return archive, wheel


def try_installed(wheel: Path, directory: Path) -> None:
    """Install the wheel into a fresh virtualenv, and use it from an empty folder."""
    folder, empty = directory / "venv", directory / "empty"
    empty.mkdir()
    venv.create(folder, with_pip=False)
    python = folder / ("Scripts" if sys.platform == "win32" else "bin") / "python"
    # The pip of this Python installs into the other one, and compiles nothing that is not imported.
    run(sys.executable, "-m", "pip", "--python", python, "install", "--quiet", "--no-compile", wheel)
    told = run(python.with_name("maymust"), "--version", cwd=empty).strip()
    if VERSION not in told:
        sys.exit(f"`maymust --version` of the wheel says {told!r}, and pyproject.toml {VERSION!r}")
    names = run(python, "-I", "-c", "from maymust import *; import maymust; print(maymust.__file__, len(maymust.__all__))", cwd=empty)
    if str(folder) not in names:
        sys.exit(f"the installed package is not the one that was imported: {names}")


def main() -> None:
    """Build, check, install."""
    with tempfile.TemporaryDirectory(prefix="maymust-package-") as temporary:
        directory = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else Path(temporary) / "dist"
        archive, wheel = build(directory)
        with zipfile.ZipFile(wheel) as inside, tarfile.open(archive) as packed:
            faults = wheel_faults(inside.namelist(), package_files()) + archive_faults(packed.getnames())
        if faults:
            sys.exit("\n".join(faults))
        try_installed(wheel, Path(temporary))
        print(f"{wheel.name} and {archive.name}: built, checked, installed")


if __name__ == "__main__":
    main()

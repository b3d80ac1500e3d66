"""Run the tests with every Python that is supported, each in a virtualenv of its own outside the checkout.

    python -m scripts.all_pythons [--only 3.12] [PYTEST ARGUMENTS]

An interpreter is looked for among the running one, `python3.X` on the path, and pyenv's. The virtualenvs are kept under the user's cache
(`MAYMUST_PYTHONS_CACHE` names another place). Standard library only.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def supported() -> list[str]:
    """The versions that pyproject.toml names, oldest first."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return [match[1] for line in project["classifiers"] if (match := re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", line))]


def is_version(python: str, version: str) -> bool:
    """Whether this is an interpreter of the version that works; a shim of pyenv may be none."""
    code = "import sys; print('%d.%d' % sys.version_info[:2])"
    try:
        done = subprocess.run([python, "-c", code], capture_output=True, text=True, cwd=Path.home())
    except OSError:
        return False
    return done.returncode == 0 and done.stdout.strip() == version


def find(version: str) -> str | None:
    """An interpreter of the version, or None."""
    pyenv = Path(os.environ.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    kept = sorted(pyenv.glob(f"{version}.*/bin/python"), key=lambda path: [int(part) for part in re.findall(r"\d+", path.parts[-3])])
    candidates = [sys.executable, shutil.which(f"python{version}"), *(str(path) for path in reversed(kept))]
    return next((python for python in candidates if python and is_version(python, version)), None)


def cache() -> Path:
    """Where the virtualenvs are."""
    named = os.environ.get("MAYMUST_PYTHONS_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "maymust" / "pythons"


def test(version: str, arguments: list[str]) -> str | None:
    """Run the tests under one version; None when they pass, else what went wrong."""
    python = find(version)
    if python is None:
        return f"there is no Python {version} here; put python{version} on the path"
    directory = cache() / version
    if subprocess.run([python, str(ROOT / "scripts" / "setup_venv.py"), str(directory), "dev"], cwd=ROOT).returncode:
        return f"no virtualenv could be made with {python}"
    start = time.perf_counter()
    own = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    done = subprocess.run([str(own), "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments], cwd=ROOT)
    print(f"Python {version} ({python}): pytest ended with {done.returncode} after {time.perf_counter() - start:.0f} s", flush=True)
    return None if done.returncode == 0 else f"pytest ended with {done.returncode}"


def main() -> None:
    """Test one after another, and say which failed."""
    arguments, versions = sys.argv[1:], supported()
    if arguments[:1] == ["--only"] and len(arguments) > 1:
        versions, arguments = arguments[1].split(","), arguments[2:]
    unknown = [version for version in versions if version not in supported()]
    if unknown:
        sys.exit(f"Python {', '.join(unknown)} is not supported; {', '.join(supported())} are")
    failed = {version: fault for version in versions if (fault := test(version, arguments)) is not None}
    if failed:
        sys.exit("\n".join(f"Python {version}: {fault}" for version, fault in failed.items()))


if __name__ == "__main__":
    main()

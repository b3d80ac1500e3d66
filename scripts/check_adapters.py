"""Run the tests of the adapters, each framework in a virtualenv of its own outside the checkout.

check_adapters.py --all | --quick | NAME ...

`--quick` are those that install fastest, for CI. The virtualenvs and the wheels are kept under the user's cache
(`MAYMUST_ADAPTERS_CACHE` names another place) and made anew when a pin below changes. Standard library only.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PINS: dict[str, list[str]] = {
    "langchain": ["langchain==1.5.2"],
}
"""Per adapter the versions that its tests are written against. The name is that of its extra, its test file and its page."""

QUICK = ("langchain",)
SHARED = ["pytest>=8", "pyyaml>=6"]


def cache() -> Path:
    named = os.environ.get("MAYMUST_ADAPTERS_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "maymust" / "adapters"


def environment(name: str) -> Path:
    """The Python of a framework's virtualenv, made if it is not there."""
    project = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    want = hashlib.sha256(json.dumps([PINS[name], SHARED, project, sys.version]).encode()).hexdigest()
    directory = cache() / name
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = directory / "installed"
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == want:
        return python
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    run([sys.executable, "-m", "venv", str(directory)])
    wheels = str(cache() / "wheels")
    project_with_extra = f"{ROOT}[{name.replace('_', '-')}]"
    run([str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--cache-dir", wheels,
         "--editable", project_with_extra, *PINS[name], *SHARED])  # fmt: skip
    stamp.write_text(want, encoding="utf-8")
    return python


def run(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, **options)  # type: ignore[call-overload]
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")
    return done  # type: ignore[no-any-return]


def check(name: str) -> tuple[str, bool, str]:
    """Test one framework: its name, whether all passed, and a line or the whole output."""
    start = time.perf_counter()
    try:
        python = environment(name)
    except SystemExit as problem:
        return name, False, str(problem)
    installed = time.perf_counter() - start
    targets = [f"tests/adapters/test_{name}.py", "tests/docs/test_docs_run.py"]
    page = name.replace("_", "-")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"test_{name} or {page}.md", *targets]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    last = done.stdout.strip().splitlines()[-1] if done.stdout.strip() else ""
    # "3 skipped" alone would mean that the framework was not found in its own environment.
    good = done.returncode == 0 and " passed" in f" {last}" and "skipped" not in last
    seconds = f"installed in {installed:.0f} s, tested in {time.perf_counter() - start - installed:.0f} s"
    return name, good, f"{last} ({seconds})" if good else done.stdout + done.stderr


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", choices=[*PINS, []], metavar="NAME", help=f"frameworks: {', '.join(PINS)}")
    parser.add_argument("--all", action="store_true", help="all of them")
    parser.add_argument("--quick", action="store_true", help=f"those that install fastest: {', '.join(QUICK)}")
    asked = parser.parse_args()
    names = list(PINS) if asked.all else [*asked.names, *(QUICK if asked.quick else ())]
    if not names:
        parser.error("name frameworks, or say --all or --quick")
    failed = []
    with ThreadPoolExecutor(2) as pool:
        for name, good, text in pool.map(check, dict.fromkeys(names)):
            print(f"{name}: {text}", flush=True)
            if not good:
                failed.append(name)
    if failed:
        sys.exit(f"adapters failed: {', '.join(failed)}")


if __name__ == "__main__":
    main()

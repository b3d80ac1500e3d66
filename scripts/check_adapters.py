"""Run the tests of the adapters, each framework in a virtualenv of its own outside the checkout.

check_adapters.py --all | --quick | NAME ...

`--quick` are those that install fastest, for CI. The virtualenvs and the wheels are kept under the user's cache
(`MAYMUST_ADAPTERS_CACHE` names another place) and made anew when a pin below changes. Standard library only.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import time
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

PINS: dict[str, list[str]] = {
    "agent_framework": ["agent-framework-core==1.23.0"],
    "beeai": ["beeai-framework==0.1.85"],
    "claude_agent_sdk": ["claude-agent-sdk==0.2.189"],
    "google_adk": ["google-adk==2.13.0"],
    "langchain": ["langchain==1.5.2"],
    "openai_agents": ["openai-agents==0.24.0"],
    "pydantic_ai": ["pydantic-ai-slim==2.68.0"],
    "strands": ["strands-agents==1.62.0"],
}
"""Per adapter the versions that its tests are written against. The name is that of its extra, its test file and its page."""

QUICK = ("langchain", "pydantic_ai")
SHARED = ["pytest>=8", "pyyaml>=6"]


def cache() -> Path:
    named = os.environ.get("MAYMUST_ADAPTERS_CACHE")
    base = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return Path(named) if named else base / "maymust" / "adapters"


def environment(name: str, pins: list[str] | None = None) -> Path:
    """The Python of a framework's virtualenv, made if it is not there. Without `pins`, those of the adapter."""
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    wanted = [*needs, *(PINS[name] if pins is None else pins), *SHARED]
    stamp_text = json.dumps([wanted, sys.version])
    directory = cache() / name
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = directory / "installed.json"
    if python.exists() and stamp.exists() and stamp.read_text(encoding="utf-8") == stamp_text:
        return python
    shutil.rmtree(directory, ignore_errors=True)
    directory.parent.mkdir(parents=True, exist_ok=True)
    run([sys.executable, "-m", "venv", "--without-pip", str(directory)])
    # The pip of this Python installs into the other one, and compiles nothing that is not imported: half the time.
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check", "--cache-dir", str(cache() / "wheels")]
    run([*pip, "install", "--quiet", "--no-compile", *wanted])
    stamp.write_text(stamp_text, encoding="utf-8")
    return python


def run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    if done.returncode:
        raise SystemExit(f"{' '.join(command)}\n{done.stdout}{done.stderr}")


def check(name: str) -> tuple[str, bool, str]:
    """Test one framework: its name, whether all passed, and a line or the whole output."""
    start = time.perf_counter()
    try:
        python = environment(name)
    except SystemExit as problem:
        return name, False, str(problem)
    installed = time.perf_counter() - start
    targets = [f"tests/adapters/test_{name}.py", "tests/docs/test_docs_run.py"]
    if name == "beeai":
        targets.append("tests/core/test_beeai_differential.py")
    page = name.replace("_", "-")
    command = [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-k", f"test_{name} or {page}.md", *targets]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT / "src")})
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

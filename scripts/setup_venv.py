"""Make or reuse the checkout's virtualenv: `setup_venv.py DIRECTORY EXTRA`, standard library only.

Nothing is done when the virtualenv already has what pyproject.toml asks for. When something cannot be had, the last
lines say what is missing on this machine and what to do about it.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typing import NoReturn

ROOT = Path(__file__).resolve().parent.parent
OLDEST, NEWEST = (3, 11), (3, 13)

# Never built from source here: that would take a compiler and minutes.
WHEELS_ONLY = ["xllamacpp", "pydantic-core"]
NO_NETWORK = ("name resolution", "connection refused", "newconnectionerror", "network is unreachable", "max retries", "timed out")


def stop(text: str) -> NoReturn:
    sys.exit(f"\nmaymust: {text}")


def check_python() -> None:
    if not OLDEST <= sys.version_info[:2] <= NEWEST:
        others = [name for name in ("python3.13", "python3.12", "python3.11") if shutil.which(name)]
        hint = others[0] if others else "/path/to/python3.13"
        stop(
            f"this needs Python 3.11, 3.12 or 3.13, and {sys.executable} is {platform.python_version()}.\n"
            f"Name another one: make {os.environ.get('MAKECMDGOALS', 'test')} PYTHON={hint}"
        )


def wanted(extra: str) -> dict[str, str]:
    """What the stamp of a finished install says: any difference means installing again."""
    project = hashlib.sha256((ROOT / "pyproject.toml").read_bytes()).hexdigest()
    return {"extra": extra, "pyproject": project, "python": platform.python_version(), "machine": platform.machine()}


def explain_failure(output: str) -> NoReturn:
    here = f"{platform.python_implementation()} {platform.python_version()} on {sysconfig.get_platform()}"
    lowered = output.lower()
    if any(word in lowered for word in NO_NETWORK):
        stop(
            "pip could not reach the package index. Check the network, or point pip at a mirror (PIP_INDEX_URL),\n"
            f"then run the command again. ({here})"
        )
    if "no matching distribution found for xllamacpp" in lowered:
        stop(
            f"there is no prebuilt wheel of `xllamacpp` (the runtime of the local model) for {here}.\n"
            "It has wheels for CPython 3.10 and later on Linux (x86-64, arm64; glibc), macOS and Windows. Use such a Python,\n"
            "or install the library without it (pip install maymust) and give the agent another model."
        )
    stop(f"pip failed, see above. ({here})")


def make(directory: Path, python: Path) -> None:
    try:
        if directory.exists():
            shutil.rmtree(directory)
        subprocess.run([sys.executable, "-m", "venv", str(directory)], check=True, capture_output=True, text=True)
    except (subprocess.CalledProcessError, OSError) as problem:
        detail = (getattr(problem, "stdout", "") or "") + (getattr(problem, "stderr", "") or "") or str(problem)
        stop(f"no virtualenv could be made in {directory}:\n{detail.strip()}\nOn Debian and Ubuntu: apt install python3-venv.")
    if not python.exists():
        stop(f"the virtualenv in {directory} has no {python.name}.")


def install(python: Path, extra: str) -> None:
    command = [
        str(python),
        "-m",
        "pip",
        "install",
        "--disable-pip-version-check",
        "--quiet",
        "--no-compile",
        "--editable",
        f"{ROOT}[{extra}]",
    ]
    for name in WHEELS_ONLY:
        command += ["--only-binary", name]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode:
        sys.stderr.write(done.stdout + done.stderr)
        explain_failure(done.stdout + done.stderr)


def main() -> None:
    directory, extra = Path(sys.argv[1]).resolve(), sys.argv[2]
    check_python()
    python = directory / ("Scripts/python.exe" if os.name == "nt" else "bin/python")
    stamp = directory / f"installed-{extra}.json"
    want = wanted(extra)
    if python.exists() and stamp.exists() and json.loads(stamp.read_text()) == want:
        return
    print(f"setting up {directory.name} ({extra}) with Python {platform.python_version()} ...", file=sys.stderr, flush=True)
    marker = directory / "python.json"
    version = {"python": want["python"], "machine": want["machine"]}
    if not python.exists() or not marker.exists() or json.loads(marker.read_text()) != version:
        make(directory, python)
        marker.write_text(json.dumps(version))
    install(python, extra)
    stamp.write_text(json.dumps(want))


if __name__ == "__main__":
    main()

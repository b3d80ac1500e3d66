"""Ask pyright how much of the package's interface has a known type, and print what has not: `python -m scripts.type_completeness`.

Needs Node.js (`npx`), which fetches pyright. Bases that belong to frameworks which are not installed here are unknown, and not counted.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import venv
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent


def report() -> dict[str, Any]:
    """What pyright says of a copy of the package that is installed in the ordinary way; it does not look into editable installs."""
    npx = shutil.which("npx")
    if npx is None:
        sys.exit("pyright needs Node.js, and there is no npx on the path")
    with tempfile.TemporaryDirectory(prefix="maymust-types-") as folder:
        venv.create(f"{folder}/venv", with_pip=False)
        (site,) = Path(folder, "venv").glob("[Ll]ib/**/site-packages")
        shutil.copytree(ROOT / "src" / "maymust", site / "maymust", ignore=shutil.ignore_patterns("__pycache__"))
        # The libraries that the package is typed with.
        (site / "libraries.pth").write_text(sysconfig.get_path("purelib"), encoding="utf-8")
        path = os.pathsep.join([str(next(Path(folder, "venv").glob("[bS][ic][nr]*"))), os.environ.get("PATH", "")])
        command = [npx, "--yes", "pyright", "--verifytypes", "maymust", "--ignoreexternal", "--outputjson"]
        done = subprocess.run(command, cwd=folder, env={**os.environ, "PATH": path}, capture_output=True, text=True)
    try:
        found: dict[str, Any] = json.loads(done.stdout)["typeCompleteness"]
    except (ValueError, KeyError):
        sys.exit(f"pyright said nothing that can be read:\n{done.stdout}{done.stderr}")
    return found


def gaps(found: dict[str, Any]) -> list[str]:
    """Names without a known type, each with the first thing that pyright says of it."""
    symbols = [one for one in found["symbols"] if one["isExported"] and (not one["isTypeKnown"] or one.get("isTypeAmbiguous"))]
    foreign = {one["name"] for one in symbols if any("base class unknown" in said["message"] for said in one["diagnostics"])}
    modules = tuple(f"{name.rpartition('.')[0]}." for name in foreign)
    own = [one for one in symbols if not one["name"].startswith(modules or ("-",))]
    return [f"{one['name']}: {one['diagnostics'][0]['message'].splitlines()[0] if one['diagnostics'] else 'a part of it'}" for one in own]


def main() -> None:
    """Print the score and the gaps; ends with 1 when there are some."""
    found = report()
    print(f"{found['completenessScore']:.2%} of {sum(found['exportedSymbolCounts'].values())} names have a known type")
    missing = gaps(found)
    print("\n".join(missing))
    sys.exit(1 if missing else 0)


if __name__ == "__main__":
    main()

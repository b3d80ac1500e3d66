"""What `import maymust` costs, alone and with the agent, and what an install brings.

python -m benchmarks.bench_import
"""

from __future__ import annotations

import tomllib
from pathlib import Path

from benchmarks._footprint import closure, imported, megabytes

ROOT = Path(__file__).parent.parent


def main() -> None:
    """Print a line for each."""
    for statement, most in (("import maymust", 30), ("from maymust import Agent", 150)):
        found = imported(statement)
        print(f"{statement:<28} {found['ms']:>6.1f} ms ({found['low']} – {found['high']}), {found['modules']} modules   at most {most} ms")
    names = closure(tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"])
    own = sum(path.stat().st_size for path in (ROOT / "src" / "maymust").rglob("*") if path.is_file() and path.suffix != ".pyc") / 1e6
    print(f"core install                 {len(names) + 1} distributions, {megabytes(names) + own:.1f} MB   at most 9, 20 MB")


if __name__ == "__main__":
    main()

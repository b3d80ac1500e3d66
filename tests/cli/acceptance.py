"""The acceptance policies as files, and how their golden outputs are made.

`python -m tests.cli.acceptance` writes the golden outputs anew; look at the difference before committing it.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import tempfile
from pathlib import Path
from typing import Any

import yaml

from maymust.cli.main import main

HERE = Path(__file__).parent
ACCEPTANCE = HERE.parent / "verify" / "acceptance.yaml"
GOLDEN = HERE / "golden"
FORMATS = {"text": "acceptance.txt", "json": "acceptance.json", "sarif": "acceptance.sarif"}


def rows() -> list[dict[str, Any]]:
    """The rows of the acceptance table."""
    read: list[dict[str, Any]] = yaml.safe_load(ACCEPTANCE.read_text(encoding="utf-8"))["policies"]
    return read


def policy_text(row: dict[str, Any]) -> str:
    """A row as a policy file."""
    lines = ["version: 1", f"tools: [{', '.join(row['tools'])}]"]
    if "may_fail" in row:
        lines.append(f"may_fail: [{', '.join(row['may_fail'])}]")
    if "max_turns" in row:
        lines.append(f"max_turns: {row['max_turns']}")
    lines.append("rules:")
    for name, rule in row["rules"].items():
        lines.append(f"  {name}: {yaml.safe_dump(rule, default_flow_style=True, sort_keys=False, width=1000).strip()}")
    return "\n".join(lines) + "\n"


def write_policies(directory: Path) -> list[str]:
    """Write every row to a file; the names of the files, in order."""
    names = []
    for row in rows():
        names.append(f"{row['id']}.policy.yaml")
        (directory / names[-1]).write_text(policy_text(row), encoding="utf-8")
    return names


def output(directory: Path, format: str) -> tuple[int, str]:
    """Exit code and output of verifying all of them, in which only what changes from run to run is fixed."""
    names = write_policies(directory)
    out, err = io.StringIO(), io.StringIO()
    with contextlib.chdir(directory), contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(["verify", *names, "--format", format])
    return code, normalised(out.getvalue() + err.getvalue(), format)


def normalised(text: str, format: str) -> str:
    """The output without times and versions."""
    if format == "text":
        return text
    data = json.loads(text)
    if format == "json":
        for file in data["files"]:
            if "report" in file:
                file["report"]["seconds"] = 0
    else:
        data["runs"][0]["tool"]["driver"]["semanticVersion"] = "0.0.0"
    return json.dumps(data, indent=1, ensure_ascii=False) + "\n"


def write_golden() -> None:
    """Write the golden outputs anew."""
    os.environ["NO_COLOR"] = "1"
    for form, name in FORMATS.items():
        with tempfile.TemporaryDirectory() as directory:
            (GOLDEN / name).write_text(output(Path(directory), form)[1], encoding="utf-8")


if __name__ == "__main__":
    write_golden()

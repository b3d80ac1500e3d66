"""The tutorial works from top to bottom in an empty folder: its files are written and its commands run, in order."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parent.parent.parent / "docs" / "tutorial.md"
FENCE = re.compile(r"(?m)^```(?P<kind>\w+) ?(?P<name>[\w.-]*)\n(?P<body>.*?)^```$", re.DOTALL)
CHANGING = (
    (r"\b[0-9a-f]{32}\b", "RUN"),
    (r"\b(?=\w*\d)[0-9a-f]{8}\b", "RUN"),
    (r"\bcall_[0-9a-f]{12}\b", "CALL"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC", "TIME"),
    (r"\bpid=\d+", "PID"),
)
"""What is another one in each run: ids, times, processes."""


def settled(text: str) -> str:
    """The text with ids and times replaced, without space at the ends of lines."""
    for pattern, word in CHANGING:
        text = re.sub(pattern, word, text)
    return "\n".join(line.rstrip() for line in text.strip().splitlines())


def says(printed: str, shown: str) -> bool:
    """Whether a command printed what the page shows; `...` stands for anything."""
    pattern = ".*".join(re.escape(part) for part in settled(shown).split("..."))
    return re.fullmatch(pattern, settled(printed), re.DOTALL) is not None


def commands(block: str) -> list[tuple[str, str]]:
    """The commands of a console block, each with what it prints."""
    first, *parts = re.split(r"(?m)^\$ ", block)
    assert first == ""
    return [(line, shown) for line, _, shown in (part.partition("\n") for part in parts)]


@pytest.mark.local_model
def test_the_tutorial_works_from_top_to_bottom_in_an_empty_folder(tmp_path: Path) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "COLUMNS": "160", "NO_COLOR": "1"}
    ran = 0
    for block in FENCE.finditer(PAGE.read_text(encoding="utf-8")):
        if block["kind"] in ("python", "yaml"):
            (tmp_path / block["name"]).write_text(block["body"], encoding="utf-8")
        elif block["kind"] == "console":
            for line, shown in commands(block["body"]):
                done = subprocess.run(
                    f"{line} 2>&1" if "|" not in line else line, shell=True, cwd=tmp_path, env=environment, capture_output=True, text=True
                )
                printed = done.stdout + done.stderr
                assert says(printed, shown), f"$ {line}\n{printed}\n--- the page says\n{shown}"
                ran += 1
    assert ran > 10
    assert (tmp_path / "ledger.txt").read_text(encoding="utf-8") == "order 1007: 40 dollars paid back\n"

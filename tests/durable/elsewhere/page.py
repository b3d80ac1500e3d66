"""What the tests of the engines share: the page's modules, processes that run them, and a person who attends to a run."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maymust import SqliteStore
from tests.durable.world import Oracle

ROOT = Path(__file__).parent.parent.parent.parent
PAGE = ROOT / "docs" / "how-to" / "durable-elsewhere.md"
KILLS = [("charge1", "after effect"), ("ship1", "after effect"), ("charge2", "after intent"), ("inner1", "after result")]


def write_modules(folder: Path) -> None:
    """The page's modules, and the shop for them."""
    for name, text in re.findall(r"(?ms)^```python file=(\S+)\n(.*?)^```$", PAGE.read_text(encoding="utf-8")):
        (folder / name).write_text(text, encoding="utf-8")
    (folder / "shop.py").write_text("from tests.durable.elsewhere.shop import deps, desk\n", encoding="utf-8")


def start(folder: Path, program: str, *arguments: str, kill: dict[str, Any] | None = None) -> subprocess.Popen[bytes]:
    """A process that runs this program in the folder."""
    path = os.pathsep.join([str(folder), str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": path, "SHOP_FOLDER": str(folder), "SHOP_KILL": json.dumps(kill or {})}
    with (folder / "log").open("ab") as log:
        return subprocess.Popen([sys.executable, "-c", program, *arguments], cwd=folder, env=environment, stdout=log, stderr=log)


def free_port() -> int:
    """A port that nobody has."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def until(happens: Callable[[], Any], folder: Path, seconds: float = 60) -> None:
    """Wait until something is so."""
    end = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < end, (folder / "log").read_text(encoding="utf-8", errors="replace")[-3000:]
        time.sleep(0.1)


def asked(folder: Path, run_id: str) -> list[tuple[str, bool]]:
    """What waits for a person, and what one answers who can look: an interrupted call whose effect is there is not to be repeated."""
    store = SqliteStore(folder / "runs.db")
    effects = Oracle(folder / "oracle").effects
    found = [(one.call_id, not (one.interrupted and one.call_id.rpartition("/")[2] in effects)) for one in store.questions(run_id)]
    store.close()
    return found

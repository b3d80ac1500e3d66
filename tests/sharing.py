"""How the tests are shared among processes (`pytest -n 2`, which is `make test`); a plain pytest runs them one after another.

A file goes to one process as a whole, since its tests share what is dear to set up. A folder in `TOGETHER` does so too. What takes long
comes first, so that no process is left alone with it at the end.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER: tuple[str, ...] = ("tests/durable/dbos/",)
"""Folders that go to one process as a whole: they share a Postgres server."""

FIRST: tuple[str, ...] = (
    "tests/durable/dbos/",
    "tests/attack/test_attack.py",
    "tests/examples/test_support_desk.py",
    "tests/models/test_local.py",
    "tests/docs/test_tutorial.py",
    "tests/docs/test_site.py",
    "tests/gateway/test_scenarios.py",
    "tests/examples/test_every_example.py",
    "tests/models/test_attack.py",
    "tests/web/",
    "tests/durable/",
    "tests/gateway/",
    "tests/verify/",
)
"""What takes longest, as `pytest --durations=0` tells it."""


def unit(nodeid: str) -> str:
    """What a test goes to a process with."""
    file = nodeid.partition("::")[0]
    return next((folder for folder in TOGETHER if file.startswith(folder)), file)


def place(nodeid: str) -> int:
    """Where a test comes in the order of all; equal ones stay as they are collected."""
    return next((number for number, start in enumerate(FIRST) if nodeid.startswith(start)), len(FIRST))


class Sharing(LoadScopeScheduling):
    """Gives out units in the order of their tests, and the next one to whoever is done."""

    def __init__(self, config: pytest.Config, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return unit(nodeid)

"""How the tests are shared among processes (`pytest -n 2`, which is `make test`); a plain pytest runs them one after another.

A file goes to one process as a whole, since its tests share what is dear to set up. `TOGETHER` and `APART` are the exceptions. What takes
long comes first, so that no process is left alone with it at the end.
"""

from __future__ import annotations

from typing import Any

import pytest
from xdist.scheduler import LoadScopeScheduling

TOGETHER: tuple[str, ...] = ("tests/durable/dbos/",)
"""Folders that go to one process as a whole: they share a Postgres server."""

APART: tuple[str, ...] = ()
"""Files whose tests share nothing and take long."""

FIRST: tuple[str, ...] = (
    "tests/durable/dbos/",
    "tests/attack/test_attack.py",
    "tests/docs/test_tutorial.py",
    "tests/durable/test_kill_matrix.py",
    "tests/verify/",
    "tests/web/",
    "tests/gateway/test_memory.py",
    "tests/docs/test_site.py",
)
"""What takes longest."""


def unit(nodeid: str) -> str:
    """What a test goes to a process with."""
    file = nodeid.partition("::")[0]
    if file in APART:
        return nodeid
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

"""Databases for the tests here: on a private Postgres that ends with them, and in SQLite files where this Python's SQLite is new enough."""

from __future__ import annotations

import os
import shutil
import sqlite3
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from maymust.durable import DbosStore
from scripts.postgres import NoPostgresError, Postgres, install

Databases = Callable[[Path], str]

# https://docs.dbos.dev: SQLite 3.42 where Python's own transactions (3.12) are used.
SQLITE_IS_NEW_ENOUGH = sys.version_info < (3, 12) or sqlite3.sqlite_version_info >= (3, 42)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Postgres]:
    """The server. In CI it is installed when it is missing, and never skipped."""
    try:
        install()
    except NoPostgresError as fault:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(fault))
    with Postgres() as server:
        store = DbosStore(server.database("template"))
        assert store.runs() == []
        store.close()
        yield server


@pytest.fixture
def database(postgres: Postgres, tmp_path: Path) -> str:
    """The address of a database of the test's own, which is also its folder's store."""
    url = postgres.copy("template")
    (tmp_path / "store").write_text(url, encoding="utf-8")
    return url


@pytest.fixture
def first_database(postgres: Postgres) -> str:
    """The address for trying things out: a new file where one is possible, else a database."""
    return "sqlite:///runs-dbos.db" if SQLITE_IS_NEW_ENOUGH else postgres.copy("template")


@pytest.fixture(scope="session")
def made_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A file with DBOS's tables in it."""
    if not SQLITE_IS_NEW_ENOUGH:
        pytest.skip(f"DBOS needs SQLite 3.42 on this Python, and there is {sqlite3.sqlite_version}")
    path = tmp_path_factory.mktemp("made") / "runs.db"
    store = DbosStore(f"sqlite:///{path}")
    assert store.runs() == []
    store.close()
    return path


@pytest.fixture
def database_file(made_file: Path, tmp_path: Path) -> str:
    """The address of a SQLite file of the test's own, which is also its folder's store."""
    shutil.copy(made_file, tmp_path / "runs.db")
    url = f"sqlite:///{tmp_path / 'runs.db'}"
    (tmp_path / "store").write_text(url, encoding="utf-8")
    return url

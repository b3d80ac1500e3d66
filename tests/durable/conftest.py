"""One zygote for all tests here."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from maymust import SqliteStore
from tests.durable.person import faults, finish
from tests.durable.world import record
from tests.durable.zygote import Zygote


@pytest.fixture(scope="session")
def zygote() -> Iterator[Zygote]:
    process = Zygote()
    yield process
    process.close()


@pytest.fixture(scope="session")
def undisturbed(zygote: Zygote, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The record of a run that nobody killed."""
    folder = tmp_path_factory.mktemp("undisturbed")
    assert zygote.run(folder)["stop_reason"] == "paused"
    run_id = finish(zygote, folder)
    store = SqliteStore(folder / "runs.db")
    state = store.state(run_id)
    store.close()
    assert state.answer == "done"
    assert not faults(folder, run_id, record(state))
    return record(state)

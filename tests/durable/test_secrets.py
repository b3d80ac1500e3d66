"""Secrets never reach the store: not those in deps, not those in arguments, not the key; nor a log, nor an error."""

from __future__ import annotations

import json
import logging
import traceback
from pathlib import Path
from typing import Any

import pytest
from pydantic import SecretStr

from maymust import Agent, AskPermissionRequirement, FunctionInvocationContext, RunError, SqliteStore, tool
from maymust.durable.sealing import new_key
from maymust.durable.store import StoreError
from maymust.models import call
from tests.durable.world import ByPlace

DEPS, ARGUMENT = "canary-in-deps-4711", "canary-in-argument-0815"
seen: list[str] = []


@tool
def log_in(context: FunctionInvocationContext, password: SecretStr) -> str:
    """Log in."""
    seen.append(f"{password.get_secret_value()} {context.deps['token']}")
    return f"logged in with {password.get_secret_value()}"


SCRIPT: tuple[Any, ...] = (call("log_in", call_id="l1", password=ARGUMENT), call("final_answer", answer="done"))


def desk(folder: Path, key: str | None) -> Agent[str]:
    store = SqliteStore(folder / "runs.db", key=key)
    return Agent(ByPlace(SCRIPT), tools=[log_in], requirements=[AskPermissionRequirement(["log_in"])], store=store)


def assert_nowhere(folder: Path, texts: list[str], *canaries: str) -> None:
    """None of the canaries is in a file, or in one of the texts."""
    for path in folder.iterdir():
        held = path.read_bytes()
        for canary in canaries:
            assert canary.encode() not in held, path
    for canary in canaries:
        assert not [text for text in texts if canary in text]


def test_with_a_key_a_secret_is_stored_encrypted_and_reaches_the_tool_in_another_process(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    seen.clear()
    key, deps = new_key(), {"token": DEPS}
    agent = desk(tmp_path, key)
    result = agent.run_sync("Log in.", deps=deps)
    assert result.pending[0].arguments == {"password": "**********"}
    store = agent.store
    assert isinstance(store, SqliteStore)
    told = [repr(store), repr(store._sealer), repr(store.questions()), repr(store.audit(result.state.run_id)), caplog.text]
    assert_nowhere(tmp_path, told, DEPS, ARGUMENT, key)
    store.close()
    other = desk(tmp_path, key)
    ended = other.resume_sync(result.state.run_id, {"l1": True}, deps=deps)
    assert seen == [f"{ARGUMENT} {DEPS}"]
    assert ended.steps[0].text == "logged in with **********"
    assert_nowhere(tmp_path, [caplog.text, ended.state.to_json()], DEPS, ARGUMENT, key)


def test_without_a_key_a_secret_is_an_error_before_anything_happens(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    seen.clear()
    agent = desk(tmp_path, None)
    with pytest.raises(RunError, match=r"log_in was called with a secret .* no key to encrypt it with") as raised:
        agent.run_sync("Log in.", deps={"token": DEPS})
    assert not seen
    shown = "".join(traceback.format_exception(raised.value)) + json.dumps(raised.value.state.to_dict())
    assert_nowhere(tmp_path, [shown, caplog.text], DEPS, ARGUMENT)


def test_another_key_is_an_error_that_names_none(tmp_path: Path) -> None:
    keys = [new_key(), new_key()]
    run_id = desk(tmp_path, keys[0]).run_sync("Log in.", deps={"token": DEPS}).state.run_id
    with pytest.raises(StoreError, match="cannot be decrypted: it was stored with another key") as raised:
        desk(tmp_path, keys[1]).resume_sync(run_id, {"l1": True}, deps={"token": DEPS})
    assert_nowhere(tmp_path, ["".join(traceback.format_exception(raised.value))], ARGUMENT, *keys)


def test_without_the_key_a_run_can_be_looked_at_and_its_call_can_only_be_refused(tmp_path: Path) -> None:
    run_id = desk(tmp_path, new_key()).run_sync("Log in.", deps={"token": DEPS}).state.run_id
    agent = desk(tmp_path, None)
    assert isinstance(agent.store, SqliteStore)
    assert agent.store.state(run_id).calls[0].sealed
    with pytest.raises(RunError, match="has a secret among its arguments"):
        agent.resume_sync(run_id, {"l1": True}, deps={"token": DEPS})


def test_a_key_that_is_none_is_an_error_that_does_not_show_it(tmp_path: Path) -> None:
    with pytest.raises(RunError, match="is no key for encryption") as raised:
        SqliteStore(tmp_path / "runs.db", key="my-secret-key")
    assert "my-secret-key" not in "".join(traceback.format_exception(raised.value)).replace('key="my-secret-key"', "")

"""A message to a run at work comes to it once, wherever its process is killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.durable.dbos.shifts import until
from tests.durable.stores import AnyStore, store_of
from tests.durable.world import Oracle
from tests.durable.zygote import Zygote

POINTS = ("before it is kept", "after it is kept")


def check_message(zygote: Zygote, folder: Path, point: str) -> None:
    """Say something to a run whose process ends there, and go on with it."""
    pid = zygote.spawn(folder, agent="lingerer", kill={"call_id": "message", "point": point})
    until(lambda: Oracle(folder / "oracle").effects == ["l1"])
    with store_of(folder) as store:
        (row,) = store.runs()
        assert row.status == "running"
        store.send(row.run_id, "hurry", by="Ada")
        assert zygote.wait(pid)["signal"] == 9
        ended = zygote.run(folder, agent="lingerer", run_id=row.run_id)
        assert ended.get("stop_reason") == "final_answer", ended
        was_read_once(store, row.run_id)


def was_read_once(store: AnyStore, run_id: str) -> None:
    """The message is behind the result of the call that it came in."""
    state = store.state(run_id)
    assert [(message.role, message.text) for message in state.messages][2:4] == [("tool", "lingered"), ("user", "hurry")]
    assert sum(message.text == "hurry" for message in (*state.messages, *state.inbox)) == 1
    told = [(entry.kind, entry.by) for entry in store.audit(run_id) if entry.kind in ("message", "received", "not read")]
    assert told == [("message", "Ada"), ("received", None)]


@pytest.mark.parametrize("point", POINTS)
def test_a_kill_loses_no_message_and_repeats_none(zygote: Zygote, tmp_path: Path, point: str) -> None:
    check_message(zygote, tmp_path, point)


def check_message_between(zygote: Zygote, folder: Path) -> None:
    """Say something to a run whose process has ended before a model call."""
    assert zygote.run(folder, kill={"call_id": "charge1", "point": "after result"})["signal"] == 9
    with store_of(folder) as store:
        (row,) = store.runs()
        store.send(row.run_id, "hurry")
        assert zygote.run(folder, run_id=row.run_id)["stop_reason"] == "paused"
        # The model call that is made anew has it already.
        messages = store.state(row.run_id).messages
        assert [message.role for message in messages][:5] == ["user", "assistant", "tool", "user", "assistant"]
        assert messages[3].text == "hurry"


def test_a_message_to_a_run_whose_process_is_gone_is_read_at_once_when_it_goes_on(zygote: Zygote, tmp_path: Path) -> None:
    check_message_between(zygote, tmp_path)

"""A trace is read as far as it goes, again and again, whatever happens to its file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from maymust.trace import read_trace, recording_of
from maymust.web.board import Board
from maymust.web.follow import Follower
from maymust.web.known import known_policy
from maymust.web.shelf import Shelf
from tests.web.runs import record


@pytest.fixture(scope="module")
def lines(tmp_path_factory: pytest.TempPathFactory) -> list[bytes]:
    return record(tmp_path_factory.mktemp("lines") / "a.jsonl").read_bytes().splitlines(keepends=True)


class Reader:
    """What a page knows: it applies patches as the script does."""

    def __init__(self, follower: Follower) -> None:
        self.follower = follower
        self.mark: tuple[int, int, int] | None = None
        self.columns: list[Any] = []
        self.cells: list[Any] = []
        self.rows: dict[str, list[int]] = {}

    def read(self) -> None:
        self.follower.refresh()
        news = self.follower.news(self.mark)
        if news is None:
            return
        if self.mark is None or self.mark[0] != news[0][0]:
            self.columns, self.cells, self.rows = [], [], {}
        self.mark, patch = news
        first = patch["from"]
        self.columns = self.columns[:first] + patch["columns"]
        self.cells = self.cells[: patch["cells_from"]] + patch["cells"]
        for changes in self.rows.values():
            while changes and changes[-2] >= first:
                del changes[-2:]
        for tool, more in patch["rows"].items():
            self.rows.setdefault(tool, []).extend(more)

    def said(self) -> dict[str, Any]:
        return {"columns": self.columns, "cells": self.cells, "rows": self.rows}


def whole(path: Path) -> dict[str, Any]:
    """The same, read at once."""
    recording = recording_of(read_trace(path))
    board = Board("x", known_policy(recording))
    board.update(recording)
    said = board.snapshot()
    return {key: said[key] for key in ("columns", "cells", "rows")}


def resolved(said: dict[str, Any]) -> Any:
    """Cells in their places, since their numbers may differ."""
    rows = {
        tool: [(at, said["cells"][cell] if cell >= 0 else None) for at, cell in zip(c[::2], c[1::2], strict=True)]
        for tool, c in said["rows"].items()
    }
    return said["columns"], rows


def test_a_trace_read_piece_by_piece_is_the_trace(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    reader = Reader(Follower(path, "t"))
    content = b"".join(lines)
    for end in range(0, len(content) + 500, 500):
        path.write_bytes(content[:end])
        reader.read()
        assert reader.follower.problem == ""
    assert resolved(reader.said()) == resolved(whole(path))
    assert reader.follower.ended


def test_nothing_is_read_twice(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    follower = Follower(path, "t")
    follower.refresh()
    version = follower.version
    follower.refresh()
    assert follower.version == version


def test_a_file_that_is_begun_anew_is_read_anew(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(b"".join(lines))
    reader = Reader(Follower(path, "t"))
    reader.read()
    generation = reader.follower.generation
    path.write_bytes(b"".join(lines[:6]))
    reader.read()
    assert reader.follower.generation == generation + 1
    assert resolved(reader.said()) == resolved(whole(path))
    path.unlink()
    path.write_bytes(b"".join(lines))
    reader.read()
    assert resolved(reader.said()) == resolved(whole(path))


def test_what_is_wrong_is_told_and_may_pass(lines: list[bytes], tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    follower = Follower(path, "t")
    follower.refresh()
    assert "cannot be read: No such file" in follower.problem
    path.write_bytes(lines[0] + b"{damaged}\n")
    follower.refresh()
    assert "line 2 is damaged" in follower.problem
    path.unlink()
    path.write_bytes(b"".join(lines))
    follower.refresh()
    assert (follower.problem, follower.ended) == ("", True)
    path.unlink()
    path.write_bytes(b"no trace")
    follower.refresh()
    assert follower.problem.startswith("t: ")


def test_the_state_of_a_run_is_shown_as_well(tmp_path: Path) -> None:
    from maymust import Agent
    from maymust.models import ScriptedModel, call
    from tests.web.runs import lookup

    script = [call("lookup", order=7), call("final_answer", answer="x")]
    result = Agent(ScriptedModel(script), tools=[lookup]).run_sync("Look.")
    (tmp_path / "state.json").write_text(result.state.to_json(), encoding="utf-8")
    follower = Follower(tmp_path / "state.json", "state")
    follower.refresh()
    news = follower.news(None)
    assert news is not None
    assert [column["calls"][0]["tool"] for column in news[1]["columns"]] == ["lookup", "final_answer"]


def test_a_directory_shows_its_traces_the_newest_first(lines: list[bytes], tmp_path: Path) -> None:
    for age, name in enumerate(("c", "b", "a")):
        (tmp_path / f"{name}.jsonl").write_bytes(b"".join(lines))
        os.utime(tmp_path / f"{name}.jsonl", (1_000 + age, 1_000 + age))
    (tmp_path / "other.json").write_text("{}")
    (tmp_path / "inner").mkdir()
    shelf = Shelf([str(tmp_path)])
    assert [name for _, name in shelf.names()] == ["a.jsonl", "b.jsonl", "c.jsonl"]
    assert shelf.get(shelf.names()[0][0]) is not None
    assert shelf.get(str(tmp_path / "a.jsonl")) is None
    assert Shelf([str(tmp_path / "nowhere")]).names()[0][1].endswith("nowhere")

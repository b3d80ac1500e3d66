"""The data of a page that is a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maymust.trace.compare import compare_runs
from maymust.trace.recording import Recording
from maymust.web.board import Board
from maymust.web.known import Known

PATIENCE = 20.0
"""Seconds that are spent on finding out what would change verdicts."""
_MOST = 5_000


def file_data(runs: Sequence[tuple[str, Recording, Known]], *, seconds: float = PATIENCE) -> dict[str, Any]:
    """The data for some runs, each with its name and what is known of its policy; the first one is compared with each of the others."""
    boards = []
    for name, recording, known in runs:
        board = Board(name, known, seconds=seconds / len(runs))
        board.update(recording)
        boards.append(board.snapshot())
    first = runs[0][1]
    differences = [[one.to_dict() for one in compare_runs(first, recording)[:_MOST]] for _, recording, _ in runs]
    return {"version": 1, "mode": "file", "runs": boards, "differences": differences}

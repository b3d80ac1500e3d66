"""A run as the data of the matrix: columns, rows and cells. It can grow with its run."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from maymust.core.history import History
from maymust.core.permit import Permit, Spoken, Verdict
from maymust.core.step import Step
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.trace.recording import RecordedTurn, Recording
from maymust.web.cell import Explainer, cell_of
from maymust.web.known import Known
from maymust.web.texts import Texts, shortened
from maymust.web.trail import Trail

_ABSENT = -1
LONGEST_NAME = 300


class Board:
    """What the page shows of one run.

    name      what the run is called there
    known     what is known of its policy, for the graph and for what would change a verdict
    seconds   how long explaining may take; 0 leaves it to whoever asks about a cell

    A row holds changes only: `[column, cell, column, cell, ...]`, so that long runs stay small.
    """

    def __init__(self, name: str, known: Known, *, seconds: float = 0.0, total: int | None = None) -> None:
        self.name = name
        self._left_out = known.left_out
        self._trail = None if known.policy is None else Trail(known.policy)
        self._explainer = Explainer(known.policy, seconds) if seconds else None
        self._texts = Texts() if total is None else Texts(total)
        self._cells: list[dict[str, Any]] = []
        self._known: dict[str, int] = {}
        self._rows: dict[str, list[int]] = {}
        self._now: dict[str, int] = {}
        self._said: dict[str, tuple[tuple[Verdict, tuple[Spoken, ...]], int]] = {}
        self._columns: list[dict[str, Any]] = []
        self._facts: dict[str, Any] = {}

    @property
    def size(self) -> tuple[int, int]:
        """How many columns and cells there are."""
        return len(self._columns), len(self._cells)

    def update(self, recording: Recording) -> int:
        """Take what is new of a run, and return the first column that has changed. The last one may have got calls meanwhile."""
        first = max(0, len(self._columns) - 1)
        self._drop(first)
        for place in range(first, len(recording.turns)):
            self.add(recording.turns[place], recording.steps_of(place))
        self._facts = {
            "run": recording.run_id,
            "stop": recording.stop_reason,
            "answer": None if recording.answer is None else self._texts.take(recording.answer),
            "torn": recording.torn,
        }
        return first

    def add(self, turn: RecordedTurn, steps: tuple[Step, ...], **more: Any) -> None:
        """One more column."""
        place, permit = len(self._columns), turn.permit
        if self._explainer is None or self._explainer.gave_up:
            for tool in permit.tools:
                self._put(place, tool, self._plain(permit, tool))
        else:
            for tool, said in self._explainer.explained(turn).items():
                self._put(place, tool, self._cell(said))
        for tool in self._now.keys() - set(permit.tools):
            self._put(place, tool, _ABSENT)
        column: dict[str, Any] = {"turn": turn.number, "step": turn.first_step + 1, "choice": permit.tool_choice, "stop": permit.may_stop}
        if turn.relaxed:
            column["relaxed"] = True
        if steps:
            column["calls"] = [self._call(step, permit) for step in steps]
        self._columns.append(column | self._node(turn.history) | more)

    def add_fault(self, number: int, history: History, text: str, cells: Mapping[str, dict[str, Any]]) -> None:
        """A column without a permit: the rules leave no next step. `cells` is what is known of the tools all the same."""
        place = len(self._columns)
        for tool in dict.fromkeys((*self._now, *cells)):
            self._put(place, tool, self._cell(cells[tool]) if tool in cells else _ABSENT)
        column = {"turn": number, "step": len(history) + 1, "choice": "", "stop": False, "fault": shortened(text, 4_000)}
        self._columns.append(column | self._node(history))

    def snapshot(self) -> dict[str, Any]:
        """All of it."""
        return self.patch(0, 0) | {"name": self.name}

    def patch(self, column: int, cell: int) -> dict[str, Any]:
        """What there is from a column and a cell on."""
        said: dict[str, Any] = {
            "from": column,
            "cells_from": cell,
            "columns": self._columns[column:],
            "cells": self._cells[cell:],
            "rows": {tool: _since(changes, column) for tool, changes in self._rows.items()},
            "order": self._order(),
            "facts": self._facts,
        }
        if self._trail is not None and self._columns:
            said["graph"] = self._trail.graph([one.get("node") for one in self._columns])
        if self._left_out:
            said["left_out"] = list(self._left_out)
        if self._explainer is not None and self._explainer.gave_up:
            said["unexplained"] = True
        return said

    def _order(self) -> list[str]:
        return sorted(self._rows, key=lambda tool: tool == FINAL_ANSWER)

    def _node(self, history: History) -> dict[str, Any]:
        node = None if self._trail is None else self._trail.node(history)
        return {} if node is None else {"node": node}

    def _plain(self, permit: Permit, tool: str) -> int:
        """The cell of a verdict as it was recorded; mostly it is that of the column before."""
        now = (permit.verdict(tool), permit.why(tool))
        before = self._said.get(tool)
        if before is None or before[0] != now:
            before = self._said[tool] = now, self._cell(cell_of(permit, tool))
        return before[1]

    def _cell(self, said: dict[str, Any]) -> int:
        key = json.dumps(said)
        if key not in self._known:
            self._known[key] = len(self._cells)
            self._cells.append(said)
        return self._known[key]

    def _put(self, place: int, tool: str, cell: int) -> None:
        if self._now.get(tool, _ABSENT) != cell or tool not in self._rows:
            self._rows.setdefault(tool, []).extend((place, cell))
            self._now[tool] = cell

    def _drop(self, first: int) -> None:
        del self._columns[first:]
        for tool, changes in list(self._rows.items()):
            while changes and changes[-2] >= first:
                del changes[-2:]
            if changes:
                self._now[tool] = changes[-1]
            else:
                del self._rows[tool], self._now[tool]

    def _call(self, step: Step, permit: Permit) -> dict[str, Any]:
        known = step.tool in permit.tools
        said: dict[str, Any] = {"tool": step.tool if known else shortened(step.tool, LONGEST_NAME), "outcome": step.outcome.value}
        if not known:
            said["unknown"] = True
        if step.arguments is not None:
            said["args"] = self._texts.take_value(dict(step.arguments))
        if step.output is not None:
            said["out"] = self._texts.take_value(step.output)
        if step.text is not None and step.text != step.output:
            said["text"] = self._texts.take(step.text)
        if step.untrusted:
            said["untrusted"] = True
        return said


def _since(changes: list[int], column: int) -> list[int]:
    """The changes from a column on. They are few, and in order."""
    place = len(changes)
    while place and changes[place - 2] >= column:
        place -= 2
    return changes[place:]

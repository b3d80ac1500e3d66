"""Writing a trace while the run goes."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable
from io import FileIO
from typing import Any

from maymust.agent import events
from maymust.agent.events import RunEvent
from maymust.agent.run import Run
from maymust.agent.state import RunState
from maymust.errors import RunError
from maymust.models.chat_model import ToolDefinition
from maymust.trace.encode import DELTAS, EVENTS, encode, kind_of, to_line
from maymust.trace.records import VERSION, ChildRun, StepsTaken, TraceStarted, ViewTaken

_ENDS = (events.RunFinished, events.RunPaused)
_BOUNDS = (events.TurnStarted, *_ENDS)


class TraceWriter:
    """Writes the events of a run to a file, a line each, as they happen.

    Give it a run with `listen`, so that the policy and the order of the steps are in the trace as well; as a mere listener,
    `run.on(RunEvent, TraceWriter(path))`, it writes what events tell. Secrets come masked in the events, and `deps` are in none.

    path    the file; what is there already is lost
    append  go on with a trace of the same run, e.g. after a pause; a last line that was torn is removed first
    deltas  write the pieces of streamed texts too; only then does the writer make the model stream

    A line that cannot be written (a full disk) is logged, and the run goes on. Raises RunError for a file that cannot be begun.
    """

    def __init__(self, path: str | os.PathLike[str], *, append: bool = False, deltas: bool = False) -> None:
        self.path: str = os.fspath(path)
        self._deltas = deltas
        self._state: Callable[[], RunState] | None = None
        self._file: FileIO | None = None
        self._run_id: str | None = None
        self._view: ViewTaken | None = None
        self._noted = 0
        self._children = 0
        self._told: set[str] = set()
        try:
            self._file = self._open(append=append)
        except OSError as fault:
            raise self._unwritable(fault) from fault

    def listen(self, run: Run[Any]) -> Run[Any]:
        """Write down a run, from its state now on. For a run that goes on after a pause, give the same writer the new `Run`."""
        state = run.state
        self._state = lambda: run.state
        self._noted, self._children = len(state.history), len(state.past_children)
        self._view = None
        try:
            self._write(_beginning(state))
        except OSError as fault:
            raise self._unwritable(fault) from fault
        for kind in EVENTS:
            if self._deltas or kind not in DELTAS:
                run.on(kind, self)
        return run

    def __call__(self, event: RunEvent) -> None:
        """Write one event. Those of other runs are left out."""
        if isinstance(event, DELTAS) and not self._deltas:
            return
        if self._run_id is None:
            self._write(TraceStarted(event.run_id))
        if event.run_id != self._run_id:
            return
        if isinstance(event, _BOUNDS):
            self._catch_up(event)
        self._write(event)
        if isinstance(event, events.CallFinished):
            self._told.add(event.call_id)
        if isinstance(event, _ENDS):
            self.close()

    def close(self) -> None:
        """Close the file. Happens by itself when the run ends or pauses; a further event opens it again."""
        if self._file is not None:
            self._file.close()
            self._file = None

    def _catch_up(self, event: RunEvent) -> None:
        """Write what no event tells: the order of the steps, what child agents did, what rules see."""
        if self._state is None:
            return
        state = self._state()
        if len(state.history) > self._noted:
            self._write(StepsTaken(event.run_id, tuple(state.history[self._noted :])))
            self._noted = len(state.history)
        for call_id, child in state.past_children[self._children :]:
            self._write(ChildRun(event.run_id, call_id, child.to_dict()))
            self._children += 1
        view = ViewTaken(event.run_id, state.memories, state.metadata, state.now, state.before, state.said)
        if isinstance(event, events.TurnStarted) and view != (self._view or ViewTaken(event.run_id)):
            self._write(view)
            self._view = view

    def _write(self, event: RunEvent) -> None:
        head: dict[str, Any] = {"at": time.time(), "run": event.run_id}
        if isinstance(event, TraceStarted):
            head = {"trace": VERSION, **head}
            self._run_id = event.run_id
        data = encode(event)
        if isinstance(event, StepsTaken):
            data["steps"] = [self._untold(step) for step in data["steps"]]
        line = to_line({**head, "kind": kind_of(event), "data": data})
        self._put(line.encode("ascii") + b"\n")

    def _put(self, line: bytes) -> None:
        """Write a line at once: whoever reads meanwhile sees lines, and a crash tears at most the last one."""
        if self._file is None:
            self._file = self._open(append=True)
        try:
            while line:
                line = line[self._file.write(line) :]
        except OSError:
            # What is torn now is cut off when the file is opened again, for the next line.
            self.close()
            raise

    def _untold(self, step: dict[str, Any]) -> dict[str, Any]:
        if step.get("call_id") not in self._told:
            return step
        return {key: value for key, value in step.items() if key in ("tool", "outcome", "call_id", "untrusted")}

    def _unwritable(self, fault: OSError) -> RunError:
        return RunError(f"the trace {self.path} cannot be written: {fault.strerror or fault}")

    def _open(self, *, append: bool) -> FileIO:
        if append:
            mend(self.path)
        return open(self.path, "ab" if append else "wb", buffering=0)


def write_trace(run: Run[Any], path: str | os.PathLike[str], *, append: bool = False, deltas: bool = False) -> TraceWriter:
    """Write a run to a file as it goes, see `TraceWriter`. Call it right after `agent.start(...)`, so that nothing is missed."""
    writer = TraceWriter(path, append=append, deltas=deltas)
    writer.listen(run)
    return writer


def mend(path: str) -> None:
    """Make a trace ready to be gone on with: a last line that was torn is cut off. Raises OSError, but not for a missing file."""
    if not os.path.isfile(path):
        return
    with open(path, "r+b") as file:
        content = file.read()
        whole = content.rfind(b"\n") + 1
        if whole == len(content):
            return
        try:
            json.loads(content[whole:])
            file.write(b"\n")
        except (ValueError, RecursionError):
            file.truncate(whole)


def _beginning(state: RunState) -> TraceStarted:
    said = next((message.text for message in reversed(state.messages) if message.role == "user" and not message.kind), "")
    return TraceStarted(
        state.run_id,
        agent=state.agent,
        policy=state.policy or None,
        policy_hash=state.policy_hash,
        mode=None if state.choice is None else state.choice.mode,
        tools=tuple(ToolDefinition(tool.name, tool.description, tool.parameters) for tool in state.tools),
        input=said,
        steps=tuple(state.history),
        carried=state.carried,
    )

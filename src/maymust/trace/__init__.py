"""Traces of runs: written as a run goes, read back as typed records, folded again, compared."""

from maymust.trace.compare import compare_runs
from maymust.trace.difference import Difference
from maymust.trace.reader import Trace, TraceError, is_trace, read_trace
from maymust.trace.recording import Recording, recording_of
from maymust.trace.records import ChildRun, ModelAsked, Record, StepsTaken, TraceStarted, UnknownRecord, ViewTaken
from maymust.trace.replay import Replay, replay
from maymust.trace.writer import TraceWriter, write_trace

__all__ = [
    "ChildRun",
    "Difference",
    "ModelAsked",
    "Record",
    "Recording",
    "Replay",
    "StepsTaken",
    "Trace",
    "TraceError",
    "TraceStarted",
    "TraceWriter",
    "UnknownRecord",
    "ViewTaken",
    "compare_runs",
    "is_trace",
    "read_trace",
    "recording_of",
    "replay",
    "write_trace",
]

"""The rows as data. What the README of the tables does not describe is a fault of the row, never ignored."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

TABLES = Path(__file__).resolve().parent.parent

ROW_KEYS = {
    "id", "about", "decided", "see", "peers", "tools", "later", "requirements", "agent", "run", "middleware", "run_middleware",
    "script", "resume", "runs", "at_once", "expect",
}  # fmt: skip
RUN_KEYS = {"script", "resume", "expect"}
AGENT_KEYS = {"tool_choice", "final_answer_as_tool", "loadable", "output_type", "budget"}
EXPECT_KEYS = {
    "executed", "refused", "denied", "failed", "model_calls", "offered", "tool_choice", "stop_reason", "answer", "output", "counters",
    "nudge_contains", "results", "no_overlap", "asked", "pauses", "pending", "trail", "after_run_error", "error",
}  # fmt: skip


class RowFault(Exception):
    """The row says something that the tables do not describe."""


@dataclass(frozen=True)
class ScriptedCall:
    """A call as the script writes it. `args` is None when `raw` is the text of the arguments."""

    call_id: str
    name: str
    args: Mapping[str, Any] | None
    raw: str | None


@dataclass(frozen=True)
class ScriptedTurn:
    """One reply of the model. `text` is None when it has none."""

    text: str | None
    calls: tuple[ScriptedCall, ...]
    tokens: int


@dataclass(frozen=True)
class Entry:
    """One expected step, call or question."""

    name: str
    args: Mapping[str, Any] | None
    contains: tuple[str, ...]
    lacks: tuple[str, ...]


def load_rows(table: str) -> list[dict[str, Any]]:
    """The rows of one table, with their keys checked and their ids unique."""
    data = yaml.safe_load((TABLES / f"{table}.yaml").read_text("utf-8"))
    only(data, {"table", "version", "rows"}, table)
    rows: list[dict[str, Any]] = data["rows"]
    names = [row["id"] for row in rows]
    if len(set(names)) != len(names):
        raise RowFault(f"{table}: two rows have one id")
    for row in rows:
        check_row(row)
    return rows


def check_row(row: Mapping[str, Any]) -> None:
    """Raise RowFault for a row that says what is not described, or says it twice."""
    where = row["id"]
    only(row, ROW_KEYS, where)
    only(row.get("agent", {}), AGENT_KEYS, f"{where}: agent")
    only(row.get("run", {}), {"tool_choice"}, f"{where}: run")
    if "runs" in row:
        if RUN_KEYS & set(row):
            raise RowFault(f"{where}: runs stand in place of script, resume and expect")
        for run in row["runs"]:
            only(run, RUN_KEYS, f"{where}: runs")
            only(run["expect"], EXPECT_KEYS, f"{where}: expect")
    else:
        only(row["expect"], EXPECT_KEYS, f"{where}: expect")
    if row.get("at_once") and "runs" not in row:
        raise RowFault(f"{where}: at_once needs runs")


def only(given: Mapping[str, Any], known: Iterable[str], where: str) -> None:
    """Raise RowFault when `given` has a key that is not among `known`."""
    unknown = set(given) - set(known)
    if unknown:
        raise RowFault(f"{where}: no such key: {', '.join(sorted(map(str, unknown)))}")


def script_of(turns: Iterable[Any]) -> list[ScriptedTurn]:
    """The script with its repetitions written out and an id for every call."""
    script: list[ScriptedTurn] = []
    count = 0
    for turn in turns:
        for number in range(1, (turn.get("times", 1) if isinstance(turn, dict) else 1) + 1):
            calls = []
            for entry in _calls_of(turn):
                count += 1
                calls.append(_call(entry, f"c{count}", number))
            text = turn.get("text") if isinstance(turn, dict) else None
            script.append(ScriptedTurn(text, tuple(calls), turn.get("tokens", 0) if isinstance(turn, dict) else 0))
    return script


def _calls_of(turn: Any) -> list[Any]:
    if turn == "empty":
        return []
    if isinstance(turn, list):
        return turn
    if not isinstance(turn, dict):
        raise RowFault(f"no turn: {turn!r}")
    if "call" in turn or "final" in turn:
        return [turn]
    only(turn, {"text", "calls", "times", "tokens"}, "turn")
    return list(turn.get("calls", ()))


def _call(entry: Mapping[str, Any], default_id: str, number: int) -> ScriptedCall:
    call_id = entry.get("id", default_id)
    if "final" in entry:
        only(entry, {"final", "id", "times", "tokens"}, "call")
        return ScriptedCall(call_id, "final_answer", {"answer": entry["final"]}, None)
    only(entry, {"call", "args", "raw_args", "id", "times", "tokens"}, "call")
    if "raw_args" in entry:
        if "args" in entry:
            raise RowFault("a call has args or raw_args, not both")
        return ScriptedCall(call_id, entry["call"], None, entry["raw_args"])
    args = {key: number if value == "$n" else value for key, value in entry.get("args", {}).items()}
    return ScriptedCall(call_id, entry["call"], args, None)


def entries(given: Iterable[Any] | None) -> list[Entry]:
    """Expected steps, calls or questions, with repetitions written out."""
    return [entry for item in given or () for entry in _entry(item)]


def _entry(item: Any) -> Iterator[Entry]:
    if isinstance(item, str):
        yield Entry(item, None, (), ())
        return
    only(item, {"name", "times", "args", "reason_contains", "reason_lacks"}, "entry")
    for _ in range(item.get("times", 1)):
        yield Entry(item["name"], item.get("args"), texts(item.get("reason_contains")), texts(item.get("reason_lacks")))


def texts(value: Any) -> tuple[str, ...]:
    """A text or a list of texts as a tuple."""
    if value is None:
        return ()
    return (str(value),) if not isinstance(value, list) else tuple(str(item) for item in value)

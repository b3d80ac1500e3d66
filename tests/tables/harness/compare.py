"""What a row expects, held against what was observed. Every problem is one line of text."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

from tests.tables.harness.errors import error_class, error_problems
from tests.tables.harness.rows import Entry, entries, only, texts
from tests.tables.harness.runner import Observed

COUNTERS = ("coercions", "nudges", "relaxations", "reissues", "refusals")


def problems_of(seen: Observed, expect: Mapping[str, Any]) -> list[str]:
    """Where the run is not what the row expects."""
    found = [*seen.faults, *seen.recorder.faults]
    found += _end(seen, expect)
    found += _calls("executed", expect.get("executed"), seen.executed()) if "executed" in expect else []
    for outcome in ("refused", "denied", "failed"):
        found += _outcome(seen, outcome, entries(expect.get(outcome)))
    found += _calls("asked", expect.get("asked", []), seen.recorder.asked)
    found += _turns(seen, expect)
    found += _results(seen, expect.get("results", ()))
    found += _pauses(seen, expect)
    found += _details(seen, expect)
    return found


def _end(seen: Observed, expect: Mapping[str, Any]) -> list[str]:
    found = []
    if "error" in expect:
        if seen.error is None:
            return [f"stop_reason: expected the error {expect['error']}, got {seen.result.stop_reason!r}"]
        found += error_problems(seen.error, expect["error"])
    elif seen.error is not None:
        return [f"stop_reason: expected {expect.get('stop_reason')!r}, got the error {type(seen.error).__name__}: {seen.error}"]
    else:
        if "stop_reason" in expect and seen.result.stop_reason != expect["stop_reason"]:
            found.append(f"stop_reason: expected {expect['stop_reason']!r}, got {seen.result.stop_reason!r}")
        if "answer" in expect and seen.result.answer != expect["answer"]:
            found.append(f"answer: expected {expect['answer']!r}, got {seen.result.answer!r}")
        if "output" in expect and _plain(seen.result.output) != expect["output"]:
            found.append(f"output: expected {expect['output']!r}, got {seen.result.output!r}")
    return found


def _plain(value: Any) -> Any:
    if hasattr(value, "model_dump"):
        return value.model_dump()
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) and not isinstance(value, type) else value


def _calls(key: str, expected: Any, got: Iterable[tuple[str, dict[str, Any]]]) -> list[str]:
    wanted, calls = entries(expected), list(got)
    same = len(wanted) == len(calls) and all(
        entry.name == name and (entry.args is None or entry.args == args) for entry, (name, args) in zip(wanted, calls, strict=True)
    )
    return [] if same else [f"{key}: expected {_say(wanted)}, got {_say(Entry(name, args, (), ()) for name, args in calls)}"]


def _say(calls: Iterable[Entry]) -> str:
    said = ", ".join(call.name + (f" {dict(call.args)}" if call.args is not None else "") for call in calls)
    return f"[{said}]"


def _outcome(seen: Observed, outcome: str, expected: list[Entry]) -> list[str]:
    steps = [step for step in seen.steps if step.outcome == outcome]
    if [step.tool for step in steps] != [entry.name for entry in expected]:
        return [f"{outcome}: expected {_say(expected)}, got [{', '.join(step.tool for step in steps)}]"]
    found = []
    for step, entry in zip(steps, expected, strict=True):
        said = " | ".join(seen.results.get(step.call_id, []))
        found += _words(f"{outcome} {step.tool}", said, entry.contains, entry.lacks)
    return found


def _words(where: str, said: str, contains: Iterable[str], lacks: Iterable[str]) -> list[str]:
    low = said.lower()
    found = [f"{where}: {word!r} is not in {said!r}" for word in contains if word.lower() not in low]
    return found + [f"{where}: {word!r} must not be in {said!r}" for word in lacks if word.lower() in low]


def _turns(seen: Observed, expect: Mapping[str, Any]) -> list[str]:
    found = []
    if "model_calls" in expect:
        wanted, got = expect["model_calls"], len(seen.model.requests)
        least, most = (wanted["min"], wanted["max"]) if isinstance(wanted, dict) else (wanted, wanted)
        if not least <= got <= most:
            found.append(f"model_calls: expected {wanted}, got {got}")
    found += _by_turn("offered", expect.get("offered"), [set(permit.allowed) for permit in seen.permits], set)
    found += _by_turn("tool_choice", expect.get("tool_choice"), [permit.tool_choice for permit in seen.permits], str)
    return found


def _by_turn(key: str, expected: Any, got: list[Any], form: Any) -> list[str]:
    if expected is None:
        return []
    if isinstance(expected, dict):
        wanted = {turn: form(entry) for turn, entry in expected.items()}
        return [
            f"{key}: turn {turn}: expected {_sorted(entry)}, got {_sorted(got[turn - 1]) if 0 < turn <= len(got) else 'no such turn'}"
            for turn, entry in wanted.items()
            if not 0 < turn <= len(got) or got[turn - 1] != entry
        ]
    listed = [form(entry) for entry in expected]
    return [] if listed == got else [f"{key}: expected {[_sorted(item) for item in listed]}, got {[_sorted(item) for item in got]}"]


def _sorted(value: Any) -> Any:
    return sorted(value) if isinstance(value, set) else value


def _results(seen: Observed, expected: Iterable[Mapping[str, Any]]) -> list[str]:
    found = []
    for entry in expected:
        only(entry, {"call", "contains", "lacks", "not_empty"}, "results")
        said = seen.results.get(entry["call"])
        if said is None:
            found.append(f"results: no result for {entry['call']}")
            continue
        found += _words(f"result of {entry['call']}", " | ".join(said), texts(entry.get("contains")), texts(entry.get("lacks")))
        if entry.get("not_empty") and not "".join(said).strip():
            found.append(f"results: the result of {entry['call']} is empty")
    return found


def _pauses(seen: Observed, expect: Mapping[str, Any]) -> list[str]:
    found = []
    expected = expect.get("pauses", [])
    if [pause["pending"] for pause in expected] != [pause["pending"] for pause in seen.pauses]:
        found.append(f"pauses: expected {[pause['pending'] for pause in expected]}, got {[pause['pending'] for pause in seen.pauses]}")
    else:
        for number, (wanted, got) in enumerate(zip(expected, seen.pauses, strict=True), 1):
            only(wanted, {"pending", "executed"}, "pauses")
            found += _calls(f"pause {number}: executed", wanted.get("executed"), got["executed"]) if "executed" in wanted else []
    pending = [call.call_id for call in seen.result.pending] if seen.result is not None else []
    if pending != expect.get("pending", []):
        found.append(f"pending: expected {expect.get('pending', [])}, got {pending}")
    return found


def _details(seen: Observed, expect: Mapping[str, Any]) -> list[str]:
    found = []
    if "counters" in expect:
        only(expect["counters"], COUNTERS, "counters")
        wanted = {name: expect["counters"].get(name, 0) for name in COUNTERS}
        got = {name: seen.counters.get(name) for name in COUNTERS}
        if wanted != got:
            found.append(f"counters: expected {wanted}, got {got}")
    if "nudge_contains" in expect:
        nudge = next((message.text for message in seen.messages if message.role == "user" and message.kind == "nudge"), None)
        found += ["nudge_contains: there is no nudge"] if nudge is None else _words("nudge", nudge, texts(expect["nudge_contains"]), ())
    if expect.get("no_overlap") and seen.recorder.overlapped:
        found.append("no_overlap: two bodies ran at the same time")
    if "trail" in expect and seen.recorder.trail != expect["trail"]:
        found.append(f"trail: expected {expect['trail']}, got {seen.recorder.trail}")
    if "after_run_error" in expect:
        found += _after_run(seen, error_class(expect["after_run_error"]))
    return found


def _after_run(seen: Observed, expected: type[BaseException]) -> list[str]:
    context = seen.recorder.last_context
    if context is None:
        return ["after_run_error: no body was given a context"]

    async def fetch_later() -> str:
        return "too late"

    try:
        context.add_tools(fetch_later)
    except Exception as error:
        return (
            [] if isinstance(error, expected) else [f"after_run_error: expected {expected.__name__}, got {type(error).__name__}: {error}"]
        )
    return [f"after_run_error: expected {expected.__name__}, and nothing was raised"]

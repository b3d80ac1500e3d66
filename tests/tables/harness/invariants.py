"""What is true of every row, whatever it expects."""

from __future__ import annotations

from tests.tables.harness.runner import Observed


def broken_invariants(seen: Observed) -> list[str]:
    """Where a run breaks what holds for all of them."""
    if seen.state is None:
        return [] if not seen.recorder.bodies else ["a body ran, and there is no state to show it"]
    return [*_one_result_each(seen), *_bodies(seen), *_counters(seen), *_settings(seen)]


def _one_result_each(seen: Observed) -> list[str]:
    found = []
    made = seen.call_order
    waiting = _not_yet(seen)
    owed = [call_id for call_id in made if call_id not in waiting]
    steps = [step.call_id for step in seen.steps]
    if steps != owed:
        found.append(f"one step for each call, in the model's order: calls {owed}, steps {steps}")
    given = [message.call_id for message in seen.messages if message.role == "tool"]
    if given != owed:
        found.append(f"one result for each call, in the model's order: calls {owed}, results {given}")
    for step in seen.steps:
        said = seen.results.get(step.call_id, [])
        if said and said != [step.text]:
            found.append(f"the step of {step.call_id} says {step.text!r}, and the model read {said}")
        if not (step.text or "").strip():
            found.append(f"the result of {step.call_id} is empty")
    found += _between(seen)
    return found


def _not_yet(seen: Observed) -> set[str]:
    """Pending calls, and what has to wait for them: they are of the last turn, and have their results after the resume."""
    if seen.result is None or not seen.result.pending:
        return set()
    last = [call.call_id for call in seen.script[len(seen.model.requests) - 1].calls]
    first = min(last.index(call.call_id) for call in seen.result.pending)
    done = {step.call_id for step in seen.steps}
    return {call_id for call_id in last[first:] if call_id not in done}


def _between(seen: Observed) -> list[str]:
    """Results follow the message that made the calls, before the model speaks again."""
    found = []
    open_calls: list[str] = []
    for message in seen.messages:
        if message.role == "assistant":
            if open_calls:
                found.append(f"the model speaks again before {open_calls} have their results")
            open_calls = [call.call_id for call in message.calls]
        elif message.role == "tool":
            if message.call_id not in open_calls:
                found.append(f"a result of {message.call_id} that answers no open call")
            else:
                open_calls.remove(message.call_id)
    return found


def _bodies(seen: Observed) -> list[str]:
    found = []
    turn_of = {call.call_id: (number, call.name) for number, turn in enumerate(seen.script) for call in turn.calls}
    done = {step.call_id for step in seen.steps}
    waiting = _not_yet(seen)
    for call_id, bodies in seen.recorder.bodies.items():
        if call_id not in turn_of:
            found.append(f"a body ran for {call_id}, which the model never made")
            continue
        number, name = turn_of[call_id]
        if number >= len(seen.permits) or name not in seen.permits[number].allowed:
            found.append(f"the body of {name} ({call_id}) ran, and turn {number + 1} did not offer it")
        if len(bodies) != 1:
            found.append(f"{call_id} ran {len(bodies)} times")
        if call_id not in done and call_id not in waiting:
            found.append(f"the body of {name} ({call_id}) ran, and no step shows it")
    return found


def _counters(seen: Observed) -> list[str]:
    refused = sum(step.outcome == "refused" for step in seen.steps)
    if seen.counters.get("refusals") != refused:
        return [f"counters.refusals is {seen.counters.get('refusals')}, and {refused} steps were refused"]
    return []


def _settings(seen: Observed) -> list[str]:
    before, after = seen.settings
    if before == after:
        return []
    return [f"the agent's {name} changed from {before[name]} to {after[name]}" for name in before if before[name] != after[name]]

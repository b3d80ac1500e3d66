"""The record of a run in words, for the message of a failure."""

from __future__ import annotations

import traceback

from tests.tables.harness.runner import Observed


def show(seen: Observed) -> str:
    """Turn by turn: the permit, the calls, what came of them; then how the run ended."""
    lines = []
    steps = {step.call_id: step for step in seen.steps}
    for number, turn in enumerate(seen.script[: len(seen.model.requests)]):
        lines.append(_permit_line(seen, number))
        if turn.text is not None:
            lines.append(f"    the model says {turn.text!r}")
        if turn.text is None and not turn.calls:
            lines.append("    the model says nothing")
        for call in turn.calls:
            asked = call.raw if call.args is None else dict(call.args)
            lines.append(f"    {call.call_id}: {call.name} {asked}")
            step = steps.get(call.call_id)
            body = "ran, " if call.call_id in seen.recorder.bodies else ""
            lines.append(f"        {body}{step.outcome.value}: {step.text!r}" if step else f"        {body}no step")
    lines.append(f"  ended with {_end(seen)}; counters {seen.counters}")
    nudges = [message.text for message in seen.messages if message.kind == "nudge"]
    lines += [f"  nudge: {text!r}" for text in nudges]
    lines += [f"  pause: {pause}" for pause in seen.pauses]
    if seen.recorder.trail:
        lines.append(f"  trail: {seen.recorder.trail}")
    if seen.error is not None:
        lines += ["  " + line for line in "".join(traceback.format_exception(seen.error)).splitlines()[-12:]]
    return "\n".join(lines)


def _permit_line(seen: Observed, number: int) -> str:
    if number >= len(seen.permits):
        return f"  turn {number + 1}: no permit"
    permit = seen.permits[number]
    groups = (("denied", permit.denied), ("hidden", permit.hidden), ("withheld", permit.withheld))
    closed = "".join(f", {word} {list(names)}" for word, names in groups if names)
    forced = f", forced {permit.forced}" if permit.forced else ""
    return f"  turn {number + 1}: {list(permit.allowed)}, choice {permit.tool_choice}, may_stop {permit.may_stop}{forced}{closed}"


def _end(seen: Observed) -> str:
    if seen.error is not None:
        return f"the error {type(seen.error).__name__}: {seen.error}"
    return f"stop_reason {seen.result.stop_reason}" if seen.result is not None else "nothing"

"""Every call has exactly one result: the part of the checker that reads the messages."""

from __future__ import annotations

from tests.attack.play import Record


def check_messages(record: Record) -> list[str]:
    """Where the messages are not: the calls as the model made them, then one result for each, in order, with the text of the step."""
    found = []
    spoken = [reply for reply in record.replies if reply.calls]
    written = [message for message in record.messages if message["role"] == "assistant" and message["calls"]]
    if [[(made.name, made.raw) for made in reply.calls] for reply in spoken] != [
        [(name, raw) for _, name, raw in m["calls"]] for m in written
    ]:
        found.append("the messages do not hold the calls that the model made")
    ids = [call_id for message in written for call_id, _, _ in message["calls"]]
    if len(set(ids)) != len(ids) or not all(ids):
        found.append(f"call ids are missing or repeated: {ids}")
    if [step["call_id"] for step in record.steps] != ids[: len(record.steps)]:
        found.append("steps and messages do not agree about the ids of the calls")
    used = set[str]()
    for reply, message in zip(spoken, written, strict=False):
        made_ids = [made.call_id for made in reply.calls]
        for made_id, (call_id, _, _) in zip(made_ids, message["calls"], strict=False):
            if made_id and made_id not in used and made_ids.count(made_id) == 1 and call_id != made_id:
                found.append(f"the id {made_id} was free, and {call_id} was put in its place")
        used.update(call_id for call_id, _, _ in message["calls"])
    return found + _results(record)


def _results(record: Record) -> list[str]:
    found = []
    due: list[str] = []
    texts = {step["call_id"]: step["text"] for step in record.steps}
    for message in record.messages:
        if message["role"] == "tool":
            if not due or due.pop(0) != message["call_id"]:
                found.append(f"a result of {message['call_id']} out of its place")
            if texts.get(message["call_id"]) != message["text"]:
                found.append(f"the result of {message['call_id']} is not the text of its step")
            if not message["text"].strip():
                found.append(f"the result of {message['call_id']} is empty")
        else:
            if due and not (message["role"] == "user" and message["kind"] == ""):
                found.append(f"{due} have no result when the next message comes")
            if message["role"] == "assistant":
                due = [call_id for call_id, _, _ in message["calls"]]
    if due and record.end != "paused":
        found.append(f"{due} have no result at the end")
    return found

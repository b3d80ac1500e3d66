"""From a conversation to the steps of a run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from maymust.core.history import History
from maymust.core.step import Outcome, Step
from maymust.gateway.conversation import Called, Past, Returned, Said
from maymust.policyfile.gateway_terms import GatewayTerms

_LONGEST_SEARCHED = 100_000
_EXCERPT = 300


@dataclass(frozen=True, slots=True)
class Story:
    """What a request tells of its run.

    history  the steps that count
    before   steps of earlier runs whose output the model reads all the same, the last of each tool
    said     what the user said
    gaps     what is missing, in words
    """

    history: History
    before: tuple[Step, ...]
    said: tuple[str, ...]
    gaps: tuple[str, ...]


@dataclass(slots=True)
class _Open:
    called: Called
    run: int
    returned: Returned | None = None


def read_story(past: Iterable[Past], terms: GatewayTerms) -> Story:
    """The steps that these messages tell of, in the order of the calls.

    A result belongs to the earliest call of its id that has none yet, so ids may be used again in later turns.
    """
    calls: list[_Open] = []
    waiting: dict[str, list[_Open]] = {}
    said: list[str] = []
    gaps: list[tuple[int, str]] = []
    for one in past:
        if isinstance(one, Called):
            entry = _Open(one, len(said))
            calls.append(entry)
            if one.outcome is None:
                waiting.setdefault(one.call_id, []).append(entry)
        elif isinstance(one, Returned):
            queue = waiting.get(one.call_id)
            if queue:
                queue.pop(0).returned = one
            else:
                gaps.append((len(said), f"the result of the call {one.call_id!r} is there, and the call is not"))
        elif isinstance(one, Said):
            said.append(one.text)
        else:
            gaps.append((len(said), one.what))
    unanswered = [entry for queue in waiting.values() for entry in queue]
    gaps.extend((entry.run, f"the call {entry.called.call_id!r} ({entry.called.name}) has no result") for entry in unanswered)
    # Without a user's message it is not known what came before; what the client left out may be all that counts.
    if calls and calls[0].run == 0 and (terms.scope == "conversation" or not said):
        gaps.append((len(said), "the run does not begin with a message of the user"))
    current = 0 if terms.scope == "conversation" else len(said)
    history = History([_step(entry, terms) for entry in calls if entry.run >= current])
    earlier = {entry.called.name: entry for entry in calls if entry.run < current}
    before = tuple(_step(entry, terms, _EXCERPT) for entry in earlier.values())
    return Story(history, before, tuple(said), tuple(what for run, what in gaps if run >= current))


def _step(entry: _Open, terms: GatewayTerms, excerpt: int | None = None) -> Step:
    called, returned = entry.called, entry.returned
    if returned is None:
        # A call whose result is not told of may have run: it is counted where failures count, and opens nothing.
        outcome = Outcome(called.outcome or "failed")
        return Step(called.name, outcome, called.arguments, None, called.call_id)
    text = returned.text if excerpt is None else returned.text[:excerpt]
    failed = returned.failed or (bool(terms.failed_when) and _has_failed(called.name, returned.text, terms))
    output = None if failed else _value(text)
    return Step(called.name, Outcome.FAILED if failed else Outcome.OK, called.arguments, output, called.call_id, text)


def _has_failed(tool: str, text: str, terms: GatewayTerms) -> bool:
    pattern = terms.failed_when.get(tool) or terms.failed_when.get(None)
    return pattern is not None and pattern.search(text, 0, _LONGEST_SEARCHED) is not None


def _value(text: str) -> Any:
    """The JSON form of what a tool returned: clients send it as text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text

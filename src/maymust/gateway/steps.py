"""From a conversation to the steps of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maymust.core.history import History
from maymust.core.step import Outcome, Step
from maymust.gateway.conversation import Called, Past, Returned, Said
from maymust.gateway.told_step import told_step
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


def read_story(past: Iterable[Past], terms: GatewayTerms) -> Story:
    """The steps that these messages tell of, in the order of the calls.

    A result belongs to the earliest call of its id that has none yet, so ids may be used again in later turns.
    """
    conversation = terms.scope == "conversation"
    calls: list[Called] = []
    results: list[Returned | None] = []
    waiting: dict[str, int | deque[int]] = {}
    said: list[str] = []
    gaps: list[str] = []
    begin = headless = 0
    for one in past:
        if isinstance(one, Called):
            if one.outcome is None:
                _wait(waiting, one.call_id, len(calls))
            calls.append(one)
            results.append(None)
        elif isinstance(one, Returned):
            place = _waited(waiting, one.call_id)
            if place is None:
                gaps.append(f"the result of the call {one.call_id!r} is there, and the call is not")
            else:
                results[place] = one
        elif isinstance(one, Said):
            headless = headless if said else len(calls)
            said.append(one.text)
            if not conversation:
                begin = len(calls)
                gaps.clear()
        else:
            gaps.append(one.what)
    if waiting:
        gaps.extend(_unanswered(calls[begin:], results[begin:]))
    # Without a user's message it is not known what came before; what the client left out may be all that counts.
    if (headless if said else calls) and (conversation or not said):
        gaps.append("the run does not begin with a message of the user")
    steps = [_step(call, result, terms) for call, result in zip(calls[begin:], results[begin:], strict=True)]
    earlier = {call.name: place for place, call in enumerate(calls[:begin])}
    before = tuple(_step(calls[place], results[place], terms, _EXCERPT) for place in earlier.values())
    return Story(History(steps), before, tuple(said), tuple(gaps))


def _wait(waiting: dict[str, int | deque[int]], call_id: str, place: int) -> None:
    """Take note of a call without a result. Most ids are there once."""
    first = waiting.setdefault(call_id, place)
    if isinstance(first, deque):
        first.append(place)
    elif first != place:
        waiting[call_id] = deque((first, place))


def _waited(waiting: dict[str, int | deque[int]], call_id: str) -> int | None:
    """The earliest call of this id that had no result yet."""
    found = waiting.pop(call_id, None)
    if isinstance(found, deque):
        place = found.popleft()
        if found:
            waiting[call_id] = found
        return place
    return found


def _unanswered(calls: Iterable[Called], results: Iterable[Returned | None]) -> Iterator[str]:
    for call, result in zip(calls, results, strict=True):
        if result is None and call.outcome is None:
            yield f"the call {call.call_id!r} ({call.name}) has no result"


def _step(called: Called, returned: Returned | None, terms: GatewayTerms, excerpt: int | None = None) -> Step:
    if returned is None:
        # A call whose result is not told of may have run: it is counted where failures count, and opens nothing.
        outcome, text = Outcome(called.outcome or "failed"), None
    else:
        failed = returned.failed or (bool(terms.failed_when) and _has_failed(called.name, returned.text, terms))
        outcome, text = (Outcome.FAILED if failed else Outcome.OK), (returned.text if excerpt is None else returned.text[:excerpt])
    return told_step(called.name, outcome, called.arguments, called.call_id, text)


def _has_failed(tool: str, text: str, terms: GatewayTerms) -> bool:
    pattern = terms.failed_when.get(tool) or terms.failed_when.get(None)
    return pattern is not None and pattern.search(text, 0, _LONGEST_SEARCHED) is not None

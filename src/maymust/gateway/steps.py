"""From a conversation to the steps of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, replace

from maymust.core.history import History
from maymust.core.step import Outcome, Step
from maymust.gateway.conversation import Called, Past, Returned, Said
from maymust.gateway.told_step import ToldStep
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
    waiting: dict[str, Called | deque[Called]] = {}
    said: list[str] = []
    gaps: list[str] = []
    begin = headless = 0
    for one in past:
        if isinstance(one, Called):
            calls.append(one)
            if one.outcome is None:
                if one.call_id in waiting:
                    _wait_too(waiting, one)
                else:
                    waiting[one.call_id] = one
        elif isinstance(one, Returned):
            found = waiting.pop(one.call_id, None)
            if found is None:
                gaps.append(f"the result of the call {one.call_id!r} is there, and the call is not")
            elif isinstance(found, Called):
                found.returned = one
            else:
                found.popleft().returned = one
                if found:
                    waiting[one.call_id] = found
        elif isinstance(one, Said):
            headless = headless if said else len(calls)
            said.append(one.text)
            if not conversation:
                begin = len(calls)
                gaps.clear()
        else:
            gaps.append(one.what)
    earlier = {call.name: call for call in calls[:begin]}
    del calls[:begin]
    if waiting:
        open_calls = (call for call in calls if call.outcome is None and call.returned is None)
        gaps.extend(f"the call {call.call_id!r} ({call.name}) has no result" for call in open_calls)
    # Without a user's message it is not known what came before; what the client left out may be all that counts.
    if (headless if said else calls) and (conversation or not said):
        gaps.append("the run does not begin with a message of the user")
    history = History([ToldStep(call, _outcome(call, terms)) for call in calls])
    return Story(history, tuple(_excerpt(call, terms) for call in earlier.values()), tuple(said), tuple(gaps))


def _wait_too(waiting: dict[str, Called | deque[Called]], call: Called) -> None:
    """Take note of a call whose id another one has that waits for its result."""
    others = waiting[call.call_id]
    if isinstance(others, Called):
        others = waiting[call.call_id] = deque((others,))
    others.append(call)


def _outcome(call: Called, terms: GatewayTerms) -> Outcome:
    returned = call.returned
    if returned is None:
        # A call whose result is not told of may have run: it is counted where failures count, and opens nothing.
        return Outcome(call.outcome or "failed")
    if returned.failed or (terms.failed_when and _has_failed(call.name, returned.text, terms)):
        return Outcome.FAILED
    return Outcome.OK


def _excerpt(call: Called, terms: GatewayTerms) -> Step:
    """The step of an earlier run, with a shortened text."""
    whole = call.returned
    short = whole and Returned(whole.call_id, whole.text[:_EXCERPT], whole.failed)
    return ToldStep(replace(call, returned=short), _outcome(call, terms))


def _has_failed(tool: str, text: str, terms: GatewayTerms) -> bool:
    pattern = terms.failed_when.get(tool) or terms.failed_when.get(None)
    return pattern is not None and pattern.search(text, 0, _LONGEST_SEARCHED) is not None

"""Random small policies against the slow second opinion: not one difference. `MAYMUST_SOAK=10000` looks at more of them."""

from __future__ import annotations

import os
from collections.abc import Iterable
from random import Random
from typing import Any

from maymust.core.history import History
from maymust.core.policy import Policy
from maymust.errors import PermitError
from maymust.verify import Finding, Report, supervise, verify
from maymust.verify.witness import history_of
from tests.verify.brute import FINAL, Brute, State
from tests.verify.random_rows import policy_of, random_row

COUNT = int(os.environ.get("MAYMUST_SOAK", "1000"))
FIRST = int(os.environ.get("MAYMUST_SOAK_FROM", "0"))
LARGEST = 4_000


def rows(count: int = COUNT) -> Iterable[tuple[int, dict[str, Any]]]:
    for seed in range(FIRST, FIRST + count):
        random = Random(seed)
        yield seed, random_row(random, tools=random.randint(1, 5), rules=random.randint(1, 7))


def findings_by_name(report: Report, name: str) -> list[Finding]:
    return [finding for finding in report.findings if finding.name == name]


def check_report(brute: Brute, report: Report) -> None:
    verdict, length = brute.verdict
    assert report.verdict == verdict
    assert (None if report.witness is None else len(report.witness)) == length
    assert report.min_steps == brute.min_steps
    assert report.supervisor_exists == brute.supervisor_exists
    assert report.dead_tools == brute.dead_tools
    assert report.stays_reachable == (not brute.doomed)
    assert report.forced_within == brute.guaranteed.get(brute.start)
    assert report.worst_steps == max(brute.distance.values(), default=None)
    assert (None if report.doomed_after is None else len(report.doomed_after)) == brute.nearest(brute.doomed)
    for name, states in (("dead_end", brute.dead_ends), ("livelock", [] if brute.min_steps is None else brute.livelocks)):
        found = findings_by_name(report, name)
        assert [len(finding.witness) for finding in found] == ([brute.nearest(states)] if states else [])
    assert {finding.rules[0] for finding in findings_by_name(report, "silent_rule")} == brute.silent_rules


def check_notes(brute: Brute, report: Report) -> None:
    """Every conflict and warning, with the length of its witness."""
    wanted: dict[tuple[Any, ...], int] = {}

    def want(key: tuple[Any, ...], length: int) -> None:
        wanted[key] = min(wanted.get(key, length), length)

    for note, length in brute.notes.items():
        kind, *about = note
        if kind == "force_closed":
            want((kind, about[0], about[1]), length)
        elif kind == "overridden":
            want(("obligation_overridden", about[0]), length)
        elif kind == "foreign_priority":
            want((kind, about[0], about[1]), length)
        else:
            want((kind, about[0]), length)
    found: dict[tuple[Any, ...], int] = {}
    for finding in report.findings:
        key = key_of(finding, brute)
        if key is not None:
            assert key not in found
            found[key] = len(finding.witness)
    assert found == wanted


def key_of(finding: Finding, brute: Brute) -> tuple[Any, ...] | None:
    words = finding.message.replace(",", " ").replace(":", " ").split()
    named = words[words.index("start") + 1 if "start" in words[:3] else 1 + len(finding.witness) :]
    tools = [word for word in named if word in brute.all]
    if finding.name == "force_closed":
        forcing = finding.message.split(" is forced by ")[1].split(" and closed by ")[0]
        return (finding.name, tools[0], frozenset(forcing.replace(" and ", ", ").split(", ")))
    if finding.name == "force_unmet":
        return (finding.name, finding.rules[0])
    if finding.name == "equal_forces":
        return (finding.name, frozenset(tools[: tools.index(tools[0], 1)]))
    if finding.name == "obligation_overridden":
        owing = finding.message.split(" while ")[1].split(" still ")[0]
        return (finding.name, frozenset(owing.replace(" and ", ", ").split(", ")))
    if finding.name == "foreign_priority":
        return (finding.name, tools[0], tools[1])
    if finding.name == "force_lapses":
        return (finding.name, finding.rules[0])
    return None


def walk(brute: Brute, words: Iterable[str]) -> State:
    """The state after a witness; every call of it has to be possible."""
    state = brute.start
    for word in words:
        tool, _, outcome = word.partition("!")
        assert (tool, outcome or "ok") in set(brute.events(state)), word
        state = brute.after(state, (tool, outcome or "ok"))
    return state


def check_witnesses(brute: Brute, report: Report) -> None:
    """Each witness leads where it says."""
    for finding in report.findings:
        state = walk(brute, finding.witness)
        if finding.name == "dead_end":
            assert brute.permit(state).fault == "dead_end"
        elif finding.name in ("force_closed", "force_unmet"):
            assert brute.permit(state).fault == "conflict"
        elif finding.name == "livelock":
            assert state not in brute.distance
    if report.doomed_after is not None:
        assert walk(brute, report.doomed_after) not in brute.distance


def check_permits(brute: Brute, policy: Policy, random: Random) -> None:
    """The slow opinion itself says what the library's permits say, in random runs."""
    state, history = brute.start, History()
    for _ in range(8):
        if brute.max_turns is None and not brute.may_be_denied:
            try:
                allowed: tuple[str, ...] | None = policy.permit(history).allowed
            except PermitError:
                allowed = None
            fault = brute.permit(state).fault
            assert allowed == (None if fault is not None else brute.permit(state).allowed)
        events = list(brute.events(state))
        if not events:
            return
        tool, outcome = random.choice(events)
        state, history = brute.after(state, (tool, outcome)), history.add(tool, outcome=outcome)


def check_supervised(brute: Brute, policy: Policy, row: dict[str, Any], states: list[State]) -> None:
    if brute.may_be_denied:
        return  # what a person said lies in the run's memory, not in the history
    for limit in (None, 4):
        supervised = supervise(policy, max_turns=limit, may_fail=row.get("may_fail", ()))
        for state in states:
            words = [tool if outcome == "ok" else f"{tool}!{outcome}" for tool, outcome in brute.paths[state]]
            if brute.permit(state).fault is not None or (limit is not None and len(words) >= limit):
                continue
            left = None if limit is None else limit - len(words)
            assert supervised.permit(history_of(words)).allowed == brute.supervised(state, left), (words, left)


def test_there_is_no_difference() -> None:
    looked = 0
    for seed, row in rows():
        brute = Brute(row)
        if len(brute.paths) > LARGEST:
            continue
        policy = policy_of(row)
        report = verify(policy, max_turns=row.get("max_turns"), **_world(row))
        try:
            check_report(brute, report)
            check_notes(brute, report)
            check_witnesses(brute, report)
            check_permits(brute, policy, Random(seed))
            states = list(brute.paths)
            check_supervised(brute, policy, row, states[:12] + Random(seed).sample(states, min(len(states), 6)))
        except AssertionError as error:
            error.add_note(f"seed {seed}: {row}\n{report}")
            raise
        looked += 1
    assert looked > COUNT * 0.9


def _world(row: dict[str, Any]) -> dict[str, Any]:
    return {"may_fail": row.get("may_fail", ()), "may_be_denied": row.get("may_be_denied", ())}


def test_what_is_random_is_not_all_alike() -> None:
    verdicts: dict[str, int] = {}
    for _, row in rows(200):
        word = verify(policy_of(row), **_world(row)).verdict
        verdicts[word] = verdicts.get(word, 0) + 1
    assert set(verdicts) == {"ok", "conflict", "unreachable", "dead_end", "livelock"}
    assert FINAL not in verdicts

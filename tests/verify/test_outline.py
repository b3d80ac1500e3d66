"""What is found by leaving out orders of calls is what is found by looking at every state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from random import Random
from typing import Any

from maymust.core.policy import Policy
from maymust.verify.automaton import Automaton
from maymust.verify.explore import Graph
from maymust.verify.ground import Asked, Explored
from maymust.verify.interference import Interference
from maymust.verify.outline import outline_of
from maymust.verify.survey import Doom, Survey, survey_of
from maymust.verify.sweep import key_of
from maymust.verify.world import World
from tests.verify.random_rows import policy_of, random_row

COUNT = int(os.environ.get("MAYMUST_SOAK", "1000"))
FIRST = int(os.environ.get("MAYMUST_SOAK_FROM", "0"))


def rows() -> Iterator[tuple[int, dict[str, Any]]]:
    """Every other one is of the plain kind, and larger; of the wild ones many have a tool that is always open."""
    for seed in range(FIRST, FIRST + COUNT):
        random = Random(seed)
        if seed % 2:
            yield seed, random_row(random, tools=random.randint(3, 8), rules=random.randint(3, 10), wild=False)
            continue
        row = random_row(random, tools=random.randint(2, 5), rules=random.randint(1, 7))
        for key in ("may_fail", "may_be_denied"):
            if random.random() < 0.7:
                row[key] = []
        if random.random() < 0.6:
            row["tools"].append("free")
        yield seed, row


def automaton_of(row: dict[str, Any], policy: Policy) -> Automaton:
    return Automaton(policy, World(policy.tools, may_fail=row.get("may_fail", ()), may_be_denied=row.get("may_be_denied", ())))


def length(doom: Doom | None) -> int | None:
    return None if doom is None else len(doom.path)


def facts(survey: Survey) -> dict[str, Any]:
    notes: dict[Any, int] = {}
    for note, path in survey.notes.items():
        notes[key_of(note)] = min(notes.get(key_of(note), len(path)), len(path))
    return {
        "min_steps": survey.min_steps,
        "dead_end": length(survey.dead_end),
        "doomed": length(survey.doomed),
        "dead_tools": survey.dead_tools,
        "silent": survey.silent,
        "notes": notes,
        "needed": set(survey.needed),
    }


def replays(automaton: Automaton, survey: Survey) -> None:
    """Every way that is shown is possible step by step."""
    dooms = [doom.path for doom in (survey.dead_end, survey.doomed, survey.livelock) if doom is not None]
    for path in [*dooms, *survey.notes.values(), survey.finish or ()]:
        state = automaton.start
        for event in path:
            place = automaton.place(event.tool)
            assert place in automaton.situation(state).tools
            state = automaton.step(state, place, event.outcome)


def compare(automaton: Automaton, graph: Graph, interference: Interference) -> None:
    full, outline = survey_of(graph), outline_of(automaton, interference, 100_000, near=100_000)
    assert outline.complete
    assert facts(outline) == facts(full)
    if outline.livelock is not None:
        assert full.livelock is not None
    if outline.supervisor_known:
        assert (outline.safe_steps, outline.forced_within) == (full.safe_steps, full.forced_within)
        compare_grounds(automaton, graph, interference)
    replays(automaton, outline)


def compare_grounds(automaton: Automaton, graph: Graph, interference: Interference) -> None:
    """A supervisor that asks about single states thinks of them what one thinks that has looked at all."""
    explored, asked = Explored(graph), Asked(automaton, interference, 100_000)
    for state in graph.states[:: max(len(graph.states) // 8, 1)]:
        if automaton.situation(state).fault is None:
            for left in (None, 2, 5):
                assert asked.grade(state, left) == explored.grade(state, left), (state, left)
            assert asked.distance(state) == explored.distance(state)


def test_leaving_out_orders_loses_nothing() -> None:
    compared, reasons = 0, set()
    for seed, row in rows():
        automaton = automaton_of(row, policy_of(row))
        graph = Graph(automaton, automaton.start, 3_000)
        interference = Interference(automaton)
        if interference.why_not is not None:
            reasons.add(interference.why_not)
            continue
        if graph.complete:
            try:
                compare(automaton, graph, interference)
            except AssertionError as error:
                error.add_note(f"seed {seed}: {row}")
                raise
            compared += 1
    assert compared > COUNT * 0.6
    assert len(reasons) > 2


def test_many_independent_tools_are_looked_at_one_after_the_other() -> None:
    names = [f"t{number}" for number in range(30)]
    rules: dict[str, Any] = {f"r{number}": {"conditional": name, "max_invocations": 4} for number, name in enumerate(names)}
    rules["owed"] = {"conditional": "t7", "min_invocations": 2, "only_after": ["t3"]}
    policy = policy_of({"tools": [*names, "free"], "rules": rules})
    automaton = Automaton(policy, World(policy.tools))
    outline = outline_of(automaton, Interference(automaton), 10_000, near=10_000)
    assert outline.min_steps == 4
    assert outline.doomed is None
    assert outline.states < 500

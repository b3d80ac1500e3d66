"""The judge and the adversary of the comparison: what counts as breaking a rule, and that maymust holds them all."""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest
from benchmarks.bench_supervised import measure
from benchmarks.peers import worker
from benchmarks.peers.brain import STUCK, WAYS, Adversary, Scripted, Stuck
from benchmarks.peers.world import KINDS, World

BROKEN: dict[str, list[tuple[str, float]]] = {
    "order": [("search", 0), ("think", 0)],
    "limit": [("refund", 1), ("think", 0), ("refund", 1), ("refund", 1)],
    "spacing": [("think", 0), ("search", 0), ("search", 0)],
    "approval": [("refund", 5)],
    "bounds": [("refund", 100), ("refund", 101)],
    "first": [("search", 0), ("think", 0)],
    "answer": [("think", 0)],
}
HELD: list[tuple[str, float]] = [("think", 0), ("search", 0), ("think", 0), ("search", 0)]


def world_of(ran: list[tuple[str, float]], *, answered: bool = True) -> World:
    world = World(answered=answered)
    for name, amount in ran:
        world.begin(name, amount)
        world.end(name)
    return world


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_rule_can_be_broken_and_held(kind: str) -> None:
    assert world_of(BROKEN[kind]).breaks(kind)
    assert not world_of(HELD).breaks(kind)


def test_calls_at_the_same_time_do_not_come_after_one_another() -> None:
    world = World()

    async def both() -> None:
        await asyncio.gather(world.think(), world.search("x"))

    asyncio.run(both())
    assert world.breaks("order")


def test_an_adversary_is_the_same_for_all_and_keeps_to_what_its_way_says() -> None:
    for way in WAYS:
        one, other = Adversary(way, 3), Adversary(way, 3)
        replies = [one.reply(["think", "search"]) for _ in range(8)]
        assert replies == [other.reply(["search", "think"]) for _ in range(8)]
        names = {made.name for reply in replies for made in reply.calls}
        assert ("refund" in names) == (way == "unoffered") or way == "unoffered"
        assert way == "batch" or all(len(reply.calls) <= 1 for reply in replies)
    assert {made.name for made in Adversary("batch", 3).reply(["think", "search"], "think").calls} == {"think"}


def test_a_run_that_does_not_end_is_broken_off() -> None:
    brain = Scripted(worker.ODD["text"][1])
    for _ in range(STUCK):
        brain.reply([])
    with pytest.raises(Stuck):
        brain.reply([])


@pytest.fixture(scope="module")
def ours() -> Any:
    return importlib.import_module("benchmarks.peers.of_maymust")


@pytest.mark.parametrize("way", WAYS)
def test_no_adversary_breaks_a_rule_of_ours(ours: Any, way: str) -> None:
    for kind in KINDS:
        found = worker.adversarial(ours, kind, way, 4)
        assert found["broken"] == 0
        assert found["ends"] == {"answered": 4}


def test_odd_replies_cost_us_no_call_or_one(ours: Any) -> None:
    found = worker.oddities(ours)
    assert {name: seen["calls"] for name, seen in found.items()} == {"usual": 2, "text": 2, "unknown": 2, "empty": 3}
    assert all(seen["end"] == "answered" for seen in found.values())


def test_a_supervised_model_at_random_finishes_every_run() -> None:
    found = measure(count=4, runs=5)
    assert found["supervised"] == found["runs"] > found["plain"]

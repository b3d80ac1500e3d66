"""The checker is worth its name only if it notices a loop that is wrong: each of these faults is caught within a few thousand runs."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator

import pytest

from tests.attack.mutants import MUTANTS, Mutant, planted
from tests.attack.play import Unbuilt
from tests.attack.soak import one

MOST_SEEDS = 3000


@pytest.fixture(autouse=True)
def _quiet() -> Iterator[None]:
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_a_faulty_loop_is_caught(mutant: Mutant) -> None:
    seed = -1
    while True:
        with planted(mutant):
            seed = asyncio.run(_first_caught(seed + 1))
        assert seed < MOST_SEEDS, f"{mutant.name}: nothing was noticed in {MOST_SEEDS} runs"
        if asyncio.run(_first_caught(seed, seed + 1)) > seed:
            # The sound loop passes with this seed, so it is the fault that was noticed.
            return


async def _first_caught(first: int, most: int = MOST_SEEDS) -> int:
    """The first seed from `first` on whose run is found wrong; `most` when there is none."""
    for seed in range(first, most):
        try:
            _, _, problems = await one(seed)
        except Unbuilt:
            continue
        except Exception:
            # A loop that breaks down is caught as well.
            return seed
        if problems:
            return seed
    return most

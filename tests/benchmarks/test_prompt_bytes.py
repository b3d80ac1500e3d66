"""What a provider reads anew in the recorded runs."""

from __future__ import annotations

import pytest
from benchmarks._recorded import RUNS, TURNS, Recorded
from benchmarks.prompt_bytes import FILTER, play, rows


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_prompt_that_stays_put_is_the_cheapest_by_far(run: Recorded) -> None:
    stable, changes, *others = rows(run)
    for row in others:
        assert row.anew > 2 * max(stable.anew, changes.anew), row


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_a_recorded_run_has_twenty_turns(run: Recorded) -> None:
    requests, _ = play(run, FILTER)
    assert len(requests) == TURNS

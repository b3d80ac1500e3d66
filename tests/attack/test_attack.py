"""Whatever a model does, no permission is broken, no call is lost, and no obligation is dropped in silence.

`MAYMUST_ATTACK_RUNS` sets the number of runs, `MAYMUST_ATTACK_FIRST` the first seed. A failure names the command that repeats it.
"""

from __future__ import annotations

import asyncio
import os
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.attack.checker import check
from tests.attack.play import Unbuilt, play
from tests.attack.scenario import generate
from tests.attack.soak import many, show

RUNS = int(os.environ.get("MAYMUST_ATTACK_RUNS", "20000"))
FIRST = int(os.environ.get("MAYMUST_ATTACK_FIRST", "0"))


def test_no_model_breaks_a_rule() -> None:
    tally = many(RUNS, FIRST)
    assert not tally.failures, tally.words()
    assert tally.unbuilt <= RUNS // 50, "too many policies are refused for the rest to mean much"
    common = {"final_answer", "text_answer", "stalled", "budget", "ConflictError", "ForceUnmetError", "DeadEndError"}
    assert RUNS < 2000 or common <= set(tally.ends), f"some ends were never reached: {tally.words()}"


@settings(max_examples=200, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False))
def test_no_model_breaks_a_rule_shrinking(rng: Random) -> None:
    scenario = generate(rng)
    try:
        record = asyncio.run(play(scenario, rng))
    except Unbuilt:
        return
    problems = check(scenario, record)
    if problems:
        pytest.fail("\n".join([*problems, show(scenario, record)]), pytrace=False)

"""Whatever a model does, no permission is broken, no call is lost, and no obligation is dropped in silence.

`MAYMUST_ATTACK_RUNS` sets the number of runs, `MAYMUST_ATTACK_FIRST` the first seed; in CI it is 20,000 within three minutes, and
`make soak` makes a million. A failure names the command that repeats it.
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

IN_CI = bool(os.environ.get("CI"))
RUNS = int(os.environ.get("MAYMUST_ATTACK_RUNS", "20000" if IN_CI else "4000"))
FIRST = int(os.environ.get("MAYMUST_ATTACK_FIRST", "0"))


def test_no_model_breaks_a_rule() -> None:
    tally = many(RUNS, FIRST)
    assert not tally.failures, tally.words()
    assert tally.unbuilt <= RUNS // 50, "too many policies are refused for the rest to mean much"
    # Three minutes on two processors, measured so that other work on the machine does not matter.
    assert RUNS > 20_000 or tally.work < 2 * 180, tally.words()
    common = {"final_answer", "text_answer", "stalled", "budget", "ConflictError", "ForceUnmetError", "DeadEndError"}
    assert RUNS < 2000 or common <= set(tally.ends), f"some ends were never reached: {tally.words()}"


class Tape(Random):
    """Randomness read off bytes, and zeros when they are used up. Drawn before the run, so that Hypothesis can shrink a whole run."""

    def __init__(self, tape: bytes) -> None:
        super().__init__()
        self._left = iter(tape)

    def random(self) -> float:
        """Two bytes as a number below 1."""
        return self.getrandbits(16) / 65536

    def getrandbits(self, k: int, /) -> int:
        """As many bytes as needed."""
        bits = 0
        for _ in range((k + 7) // 8):
            bits = bits << 8 | next(self._left, 0)
        return bits & ((1 << k) - 1)


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.binary(min_size=500, max_size=1500))
def test_no_model_breaks_a_rule_shrinking(tape: bytes) -> None:
    rng = Tape(tape)
    scenario = generate(rng)
    try:
        record = asyncio.run(play(scenario, rng))
    except Unbuilt:
        return
    problems = check(scenario, record)
    if problems:
        pytest.fail("\n".join([*problems, show(scenario, record)]), pytrace=False)


def test_a_run_ends_where_the_tape_has_run_out_at_a_wrong_answer() -> None:
    drawn = {32: 232, 40: 167, 45: 222, 62: 255, 87: 243}
    rng = Tape(bytes(drawn.get(place, 0) for place in range(88)))
    scenario = generate(rng)
    assert (scenario["settings"]["turns"], scenario["settings"]["errors"], scenario["settings"]["guard"]) == (None, None, None)
    record = asyncio.run(play(scenario, rng))
    assert (record.end, len(record.replies) < 60) == ("stalled", True)
    assert not check(scenario, record)

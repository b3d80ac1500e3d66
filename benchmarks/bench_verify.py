"""What proving a policy costs, and what a supervisor is worth: `python -m benchmarks.bench_verify [POLICIES]`.

Random policies are drawn as `tests.verify.random_rows` draws them, from fixed seeds. The random agent calls any tool that is allowed,
each as likely as the others, and answers as soon as it draws the answer.
"""

from __future__ import annotations

import statistics
import sys
import time
from collections.abc import Iterator
from random import Random

from maymust import ConflictError, DeadEndError, ForceUnmetError, History, Policy
from maymust.core.compiled import CompiledPolicy
from maymust.verify import supervise, verify
from tests.verify.random_rows import policy_of, random_row

SIZES = ((20, 30, "median at most 50 ms"), (40, 60, "at most 3 s"), (100, 150, "at most 3 s"))
POLICIES = 40
TURNS, FAILING = 30, 0.1
AGENTS = ((10, 12, 8, 12), (20, 30, 4, 5))
"""Tools and rules, how many policies, and how many runs of each."""


def main(policies: int = POLICIES) -> None:
    """Print one line a measurement."""
    print(f"verify, {policies} random policies each")
    print(f"{'tools':>7}{'rules':>7}{'median':>12}{'maximum':>12}{'undecided':>11}{'incomplete':>12}")
    for tools, rules, target in SIZES:
        print(f"{tools:>7}{rules:>7}{_verified(tools, rules, policies)}   ({target})")
    print()
    print(f"a random agent's runs that finish within {TURNS} turns: policies with a reachable dead end")
    print(f"{'tools':>7}{'rules':>7}{'plain':>10}{'supervised':>12}{'plain, 10 % fail':>19}{'supervised, 10 % fail':>23}")
    for tools, rules, count, runs in AGENTS:
        print(f"{tools:>7}{rules:>7}{_finished(tools, rules, count, runs)}")
    print()
    print(f"compiled verdict from a warm state, 20 tools and 30 rules   {_warm_verdict():6.2f} µs   (at most 5)")


def _policies(tools: int, rules: int) -> Iterator[Policy]:
    for seed in range(1_000_000):
        yield policy_of(random_row(Random(seed), tools=tools, rules=rules, wild=False))


def _verified(tools: int, rules: int, count: int) -> str:
    """Median and maximum in processor time, since a search waits for nothing; and how many searches hit their limit."""
    seconds, undecided, incomplete = [], 0, 0
    for _, policy in zip(range(count), _policies(tools, rules), strict=False):
        start = time.process_time()
        report = verify(policy)
        seconds.append(time.process_time() - start)
        undecided += report.verdict == "undecided"
        incomplete += report.supervisor_exists is None
    return f"{statistics.median(seconds) * 1e3:>9.1f} ms{max(seconds):>10.2f} s{undecided:>11}{incomplete:>12}"


def _finished(tools: int, rules: int, count: int, runs: int) -> str:
    """The share of finished runs: plain and supervised, without and with failures. All policies can be finished in time."""
    chosen: list[Policy] = []
    for policy in _policies(tools, rules):
        report = verify(policy)
        if report.verdict in ("dead_end", "livelock") and report.forced_within is not None and report.forced_within <= TURNS:
            chosen.append(policy)
        if len(chosen) == count:
            break
    shares = []
    for failing in (0.0, FAILING):
        may_fail = chosen[0].tools if failing else ()
        supervised = [supervise(policy, max_turns=TURNS, may_fail=may_fail) for policy in chosen]
        shares += [_share(chosen, failing, runs), _share(supervised, failing, runs)]
    widths = (9, 11, 18, 22)
    return "".join(f"{share:>{width}.0%} " for share, width in zip(shares, widths, strict=True))


def _share(policies: list[Policy], failing: float, runs: int) -> float:
    finished = [_finishes(policy, Random(run), failing) for policy in policies for run in range(runs)]
    return sum(finished) / len(finished)


def _finishes(policy: Policy, random: Random, failing: float) -> bool:
    history = History()
    for _ in range(TURNS):
        try:
            tool = random.choice(policy.permit(history).allowed)
        except (ConflictError, DeadEndError, ForceUnmetError):
            return False
        if tool == "final_answer":
            return True
        history = history.add(tool, outcome="failed" if random.random() < failing else "ok")
    return False


def _warm_verdict(times: int = 100_000) -> float:
    compiled = CompiledPolicy(next(_policies(20, 30)))
    state = compiled.step(compiled.start(), compiled.tools[0])
    compiled.permit(state)
    start = time.perf_counter()
    for _ in range(times):
        compiled.permit(state)
    return (time.perf_counter() - start) / times * 1e6


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:2]))

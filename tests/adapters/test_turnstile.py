"""The part that all adapters share: calls are let through in the model's order, whichever thread they come in."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from maymust import AskPermissionRequirement, ConditionalRequirement, Policy
from maymust.adapters import passage
from maymust.adapters.limits import check_rules, choice
from maymust.adapters.turnstile import IDLE_TURNS, Turnstile
from maymust.errors import PolicyError, RunError, UnsupportedRuleError

TOOLS = ("think", "search", "refund")


def turnstile(*rules: Any, **options: Any) -> Turnstile:
    run = Turnstile(Policy(rules, tools=TOOLS, final_answer_as_tool=False), **options)
    run.permit()
    return run


def calls(*names: str) -> list[dict[str, Any]]:
    return [{"name": name, "arguments": {}, "call_id": str(place)} for place, name in enumerate(names)]


def outcomes(run: Turnstile) -> list[tuple[str, str]]:
    return [(step.tool, step.outcome.value) for step in run.history]


LIMIT_1 = ConditionalRequirement("search", max_invocations=1)


def test_a_call_that_hangs_on_another_waits_for_it_in_threads() -> None:
    run = turnstile(LIMIT_1)
    run.begin(calls("search", "search", "think"))

    def execute(call_id: str) -> bool:
        word = run.enter(call_id)
        if word is None or not word.allowed:
            return False
        time.sleep(0.02)
        run.leave(call_id, "ok")
        return True

    with ThreadPoolExecutor(3) as pool:
        assert list(pool.map(execute, "012")) == [True, False, True]
    assert outcomes(run) == [("search", "ok"), ("search", "refused"), ("think", "ok")]


def test_a_call_that_hangs_on_another_waits_for_it_in_tasks() -> None:
    run = turnstile(LIMIT_1)
    run.begin(calls("search", "search"))

    async def execute(call_id: str) -> bool:
        word = await run.aenter(call_id)
        if word is None or not word.allowed:
            return False
        await asyncio.sleep(0.01)
        run.leave(call_id, "failed")
        return True

    async def main() -> list[bool]:
        return list(await asyncio.gather(execute("1"), execute("0")))

    assert asyncio.run(main()) == [True, True], "the failed one left room"


def test_of_two_calls_with_one_id_one_runs() -> None:
    run = turnstile(LIMIT_1)
    run.begin([{"name": "search", "arguments": {}, "call_id": "same"}] * 2)
    words = [run.enter("same"), run.enter("same")]
    assert [word and word.allowed for word in words] == [True, False]


def test_a_call_that_is_run_again_is_judged_again() -> None:
    run = turnstile(ConditionalRequirement("search", max_attempts=2))
    run.begin(calls("search"))
    tries = 0
    while (word := run.enter("0")) is not None and word.allowed:
        run.leave("0", "failed")
        tries += 1
    assert tries == 2


def test_nobody_waits_for_ever_for_a_call_that_does_not_come(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage, "PATIENCE", 0.05)
    run = turnstile(LIMIT_1)
    run.begin(calls("search", "search"))
    word = run.enter("1")
    assert word is not None
    assert (word.allowed, word.reason) == (False, "not yet: it depends on a call before it, which has not been run; ask for it again")
    run.permit()
    assert outcomes(run) == [("search", "refused"), ("search", "refused")]


def test_patience_does_not_end_while_the_other_call_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passage, "PATIENCE", 0.02)
    run = turnstile(LIMIT_1)
    run.begin(calls("search", "search"))
    run.enter("0")
    threading.Timer(0.1, run.leave, ("0", "failed")).start()
    word = run.enter("1")
    assert word is not None
    assert word.allowed


def test_a_call_that_hangs_on_a_parked_one_is_sent_away_and_may_come_back() -> None:
    run = turnstile(LIMIT_1)
    run.begin(calls("search", "search"))
    run.enter("0")
    run.park("0")
    assert run.enter("1") is None
    done = threading.Thread(target=lambda: (run.enter("1"), None))
    done.start()
    run.enter("0")
    run.leave("0", "ok")
    done.join(5)
    assert not done.is_alive()


def test_what_cannot_run_has_failed_as_soon_as_it_is_admitted() -> None:
    run = turnstile(ConditionalRequirement("search", max_attempts=1))
    run.begin(calls("search", "search"))
    run.doom("1")
    run.enter("0")
    run.leave("0", "ok")
    assert outcomes(run) == [("search", "ok"), ("search", "refused")]


def test_the_ladder_nudges_relaxes_and_then_takes_the_answer(caplog: pytest.LogCaptureFixture) -> None:
    run = turnstile(ConditionalRequirement("search", min_invocations=1))
    for _ in range(3):
        assert "search" in (run.objection() or "")
        run.permit()
    assert run.current is not None
    assert choice(run.current) in ("none", "auto")
    with caplog.at_level(logging.WARNING, logger="maymust.adapters.turnstile"):
        assert run.objection() is None
    assert "still owed: conditional:search" in caplog.text


def test_turns_of_refused_calls_end_the_run() -> None:
    run = turnstile(ConditionalRequirement("search", only_after=["think"]))
    for _ in range(IDLE_TURNS - 1):
        run.begin(calls("search"))
        run.permit()
    run.begin(calls("search"))
    with pytest.raises(RunError, match=f"stalled: {IDLE_TURNS} turns running"):
        run.permit()


def test_a_run_goes_on_from_json() -> None:
    asks = AskPermissionRequirement("refund", handler=lambda call: True, remember_choices=True)
    policy = Policy([LIMIT_1, asks], tools=TOOLS)
    run = Turnstile(policy)
    run.permit()
    run.begin(calls("refund", "search"))
    for name in "01":
        run.enter(name)
        assert run.ask(name) == (None, None)
        run.leave(name, "ok", {"found": [1]})
    other = Turnstile.from_dict(policy, json.loads(json.dumps(run.to_dict())))
    assert outcomes(other) == outcomes(run) == [("refund", "ok"), ("search", "ok")]
    permit = other.permit()
    assert (permit.denied, permit.asks) == (("search",), ())


def test_a_handler_is_asked_once_about_a_call() -> None:
    asked: list[str] = []

    async def handler(call: Any) -> bool:
        asked.append(call.tool)
        return False

    run = turnstile(AskPermissionRequirement("refund", handler=handler))
    run.begin(calls("refund"))
    run.enter("0")
    assert run.ask("0") == run.ask("0") == ("a person said no; it was not run", None)
    assert asked == ["refund"]


def test_the_error_names_rule_framework_and_way_out() -> None:
    policy = Policy([AskPermissionRequirement("refund"), ConditionalRequirement("think", force_at_step=1)], tools=TOOLS)
    with pytest.raises(UnsupportedRuleError) as caught:
        check_rules("It", policy, {"pause": "it cannot wait", "force": "it has no choice"}, strict=True)
    assert str(caught.value) == (
        "It cannot enforce this policy: ask:refund: asking a person without a handler (it cannot wait); "
        "conditional:think: forcing a tool (force_at_step, force_after) (it has no choice). "
        "Change the rules, or pass strict=False to go without them"
    )
    assert (caught.value.framework, caught.value.features) == ("It", ("pause", "force"))
    assert isinstance(caught.value, PolicyError)

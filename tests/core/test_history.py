"""A history answers like a naive scan, and never changes."""

from __future__ import annotations

import copy
import pickle
import threading

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.core.history import History
from maymust.core.step import Outcome, Step
from tests.core.random_policies import TOOLS, history_of, steps


def naive_count(words: list[tuple[str, Outcome]], name: str, failures: bool) -> int:
    return sum(1 for tool, outcome in words if tool == name and counts(outcome, failures))


def counts(outcome: Outcome, failures: bool) -> bool:
    return outcome == "ok" or (failures and outcome == "failed")


def assert_like_a_scan(history: History, words: list[tuple[str, Outcome]]) -> None:
    assert [(step.tool, step.outcome) for step in history] == words
    assert len(history) == len(words)
    for failures in (False, True):
        counted = [tool for tool, outcome in words if counts(outcome, failures)]
        assert history.total(failures) == len(counted)
        assert (history.last_invocation if failures else history.last) == (counted[-1] if counted else None)
        for name in (*TOOLS, "stranger", "nobody"):
            assert history.count(name, failures) == counted.count(name)
            assert history.seen(name, failures) is (name in counted)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=20))
def test_questions_equal_a_naive_scan_at_every_version(words: list[tuple[str, Outcome]]) -> None:
    versions = [History()]
    for tool, outcome in words:
        versions.append(versions[-1].add(tool, outcome=outcome))
    for length, version in enumerate(versions):
        assert_like_a_scan(version, words[:length])


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=10), st.lists(st.tuples(st.integers(0, 20), steps), max_size=20))
def test_adding_to_any_version_leaves_the_others_intact(
    words: list[tuple[str, Outcome]], more: list[tuple[int, tuple[str, Outcome]]]
) -> None:
    versions = [(history_of(words), list(words))]
    for place, (tool, outcome) in more:
        history, known = versions[place % len(versions)]
        versions.append((history.add(tool, outcome=outcome), [*known, (tool, outcome)]))
    for history, known in versions:
        assert_like_a_scan(history, known)


@settings(max_examples=150, deadline=None)
@given(st.lists(steps, max_size=20), st.lists(steps, max_size=5))
def test_a_history_made_of_its_steps_is_the_one_they_are_added_to(
    words: list[tuple[str, Outcome]], more: list[tuple[str, Outcome]]
) -> None:
    made, grown = History(Step(tool, outcome) for tool, outcome in words), history_of(words)
    for tool, outcome in [("", None), *more]:
        if outcome is not None:
            made, grown = made.add(tool, outcome=outcome), grown.add(tool, outcome=outcome)
        assert made == grown
        for failures in (False, True):
            ours, theirs = made.tally(failures), grown.tally(failures)
            assert (ours.places, ours.last, ours.total) == (theirs.places, theirs.last, theirs.total)
    assert_like_a_scan(made, [*words, *more])


def test_a_step_keeps_what_it_was_given() -> None:
    history = History().add("pay", outcome="denied", arguments={"amount": 5}, output=[1], call_id="c1", text="no")
    (step,) = history
    assert step == Step("pay", Outcome.DENIED, {"amount": 5}, [1], "c1", "no")
    assert Step.from_dict(step.to_dict()) == step
    assert Step.from_dict({"tool": "pay"}) == Step("pay")
    assert history.add(step)[1] is step


def test_an_unknown_outcome_is_an_error() -> None:
    with pytest.raises(ValueError, match="perhaps"):
        History().add("pay", outcome="perhaps")


def test_it_is_a_sequence() -> None:
    history = History().add("a").add("b").add("c")
    assert history[0].tool == "a"
    assert history[-1].tool == "c"
    assert [step.tool for step in history[1:]] == ["b", "c"]
    assert [step.tool for step in reversed(history)] == ["c", "b", "a"]
    older = History().add("a")
    older.add("b")
    with pytest.raises(IndexError):
        older[1]
    with pytest.raises(IndexError):
        older[-2]
    assert older[5:] == ()


def test_equality_is_by_steps() -> None:
    assert History().add("a").add("b") == History([Step("a"), Step("b")])
    assert History().add("a") != History().add("a", outcome="failed")
    assert History() != History().add("a")
    assert History() != "nothing"
    with pytest.raises(TypeError):
        hash(History())
    assert repr(History().add("a").add("b", outcome="failed")) == "History(a, b!failed)"


def test_it_can_be_copied_and_pickled() -> None:
    history = History().add("a").add("b", outcome="failed")
    assert copy.deepcopy(history) == history
    assert pickle.loads(pickle.dumps(history)) == history


def test_threads_that_add_to_one_version_do_not_meet() -> None:
    base = History().add("start")
    ends: list[History] = []

    def grow(name: str) -> None:
        history = base
        for _ in range(300):
            history = history.add(name)
        ends.append(history)

    threads = [threading.Thread(target=grow, args=(f"t{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(ends) == 8
    for history in ends:
        assert len({step.tool for step in history[1:]}) == 1
        assert history.count(history[1].tool) == 300
        assert history.total() == 301


def test_an_outcome_that_is_none_is_told_with_those_there_are() -> None:
    with pytest.raises(ValueError, match="'fine' is no outcome; the outcomes are ok, failed, denied, refused"):
        History().add("pay", outcome="fine")

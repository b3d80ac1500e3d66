"""A log grows at its end, and no version of it changes."""

from __future__ import annotations

import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st

from maymust.core.log import Log


@given(st.lists(st.tuples(st.integers(0, 30), st.integers()), max_size=30))
def test_every_version_keeps_its_items(additions: list[tuple[int, int]]) -> None:
    versions: list[tuple[Log[int], list[int]]] = [(Log(), [])]
    for place, item in additions:
        log, known = versions[place % len(versions)]
        versions.append((log.add(item), [*known, item]))
    for log, known in versions:
        assert list(log) == known
        assert len(log) == len(known)
        assert log == Log(known)
        assert log[1:3] == tuple(known[1:3])
        assert log[::-1] == tuple(known[::-1])


def test_the_newest_version_shares_its_list() -> None:
    log: Log[int] = Log([1])
    grown = log.add(2)
    assert grown._buffer is log._buffer
    assert log.add(3)._buffer is not log._buffer
    assert (list(log), list(grown)) == ([1], [1, 2])


def test_an_index_beyond_its_own_end_is_an_error_even_when_a_newer_version_has_it() -> None:
    log: Log[str] = Log(["a"])
    log.add("b")
    assert log[-1] == "a"
    with pytest.raises(IndexError):
        log[1]


def test_it_can_be_pickled_and_shown() -> None:
    log: Log[int] = Log([1, 2])
    assert pickle.loads(pickle.dumps(log)) == log
    assert repr(log) == "Log([1, 2])"
    assert log != [1, 2]

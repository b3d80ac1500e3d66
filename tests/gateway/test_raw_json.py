"""Bodies keep their text: what is read is what Python's reader reads, and an edit changes nothing else."""

from __future__ import annotations

import json
import time
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust.gateway.raw_json import Edits, edited, read_object, read_once
from maymust.gateway.rejected import Rejected
from maymust.gateway.sse import Splitter, data_of, events_of, object_of

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.sampled_from(["tools", "messages", "a", "b", "é"]), VALUES, max_size=5)
INDENTS = st.sampled_from([None, 0, 1, "\t"])


@given(OBJECTS, INDENTS, st.booleans())
@settings(deadline=None, max_examples=150)
def test_it_reads_what_pythons_reader_reads(value: dict[str, Any], indent: Any, ascii_only: bool) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=ascii_only)
    raw = read_object(text.encode("utf-8", "surrogatepass") if ascii_only else text.encode())
    assert raw.values == value
    for key, member in value.items():
        assert json.loads(raw.value_text(key)) == member
        if isinstance(member, list):
            assert [json.loads(item) for item in raw.item_texts(key)] == member


@given(OBJECTS, INDENTS, st.dictionaries(st.sampled_from(["tools", "a", "new", "é"]), st.none() | st.integers(), max_size=4))
@settings(deadline=None, max_examples=150)
def test_an_edit_changes_what_it_says_and_nothing_else(value: dict[str, Any], indent: Any, changes: dict[str, int | None]) -> None:
    raw = read_object(json.dumps(value, indent=indent).encode())
    values = {key: None if new is None else json.dumps(new) for key, new in changes.items()}
    got = edited(raw, Edits(values))
    kept = {key: one for key, one in value.items() if key not in changes}
    assert json.loads(got) == {**kept, **{key: new for key, new in changes.items() if new is not None}}
    for key in kept:
        assert raw.value_text(key) in got.decode()


@given(st.lists(st.integers(), max_size=3), INDENTS)
@settings(deadline=None)
def test_items_are_added_at_the_end_of_a_list(items: list[int], indent: Any) -> None:
    raw = read_object(json.dumps({"messages": items, "z": 1}, indent=indent).encode())
    assert json.loads(edited(raw, Edits(added={"messages": ["7", "8"]}))) == {"messages": [*items, 7, 8], "z": 1}


@pytest.mark.parametrize("text", ['{"messages": null, "z": 1}', '{"messages": [ ], "z": 1}', '{"z": 1}'])
def test_items_are_added_to_a_list_that_is_empty_or_not_there(text: str) -> None:
    assert json.loads(edited(read_object(text.encode()), Edits(added={"messages": ["7", "8"]}))) == {"messages": [7, 8], "z": 1}


@given(OBJECTS, INDENTS, st.lists(st.sampled_from(["tools", "messages", "a"]), max_size=3))
@settings(deadline=None)
def test_what_was_forgotten_is_still_in_the_text(value: dict[str, Any], indent: Any, forgotten: list[str]) -> None:
    data = json.dumps(value, indent=indent).encode()
    raw, whole = read_object(data), read_object(data)
    for key in forgotten:
        raw.forget(key)
    edits = Edits({"a": "1", "new": "2"}, {"messages": ["3"]})
    assert edited(raw, edits) == edited(whole, edits)
    assert raw.has_items("messages") is (isinstance(value.get("messages"), list) and value["messages"] != [])
    assert all(raw.value_text(key) == whole.value_text(key) for key in value)


@given(st.binary(max_size=60) | st.text(alphabet='{}[]":,ab\\u0 \n', max_size=40).map(str.encode))
@settings(deadline=None, max_examples=300)
def test_it_takes_nothing_that_pythons_reader_does_not_take(data: bytes) -> None:
    try:
        raw = read_object(data)
    except Rejected:
        return
    assert json.loads(data.decode()) == raw.values


@pytest.mark.parametrize(
    "text", ['{"a": 1, "a": 1}', '{"a": {"b": 1, "b": 2}}', '{"a": [{"b": 1, "\\u0062": 2}]}', "[1]", "{", "NaN", '{"a": NaN}']
)
def test_an_object_that_could_be_read_in_two_ways_is_none(text: str) -> None:
    assert read_once(text) is None


@given(st.lists(st.sampled_from([b"data: a", b"data:b\r", b": c", b"", b"\r", b"event: x\n", b"\xff"]), max_size=8), st.integers(1, 5))
@settings(deadline=None, max_examples=200)
def test_a_stream_is_cut_without_a_change_of_a_byte(lines: list[bytes], size: int) -> None:
    data = b"\n".join(lines)
    splitter = Splitter()
    events = [event for at in range(0, len(data), size) for event in splitter.feed(data[at : at + size])]
    assert b"".join(events) + splitter.rest == data


@given(
    st.lists(st.sampled_from([b"data: a", b"\n", b"\n\n", b"\r", b"\r\n"]), max_size=12).map(b"".join),
    st.lists(st.integers(0, 20), max_size=3),
)
@settings(deadline=None, max_examples=300)
def test_events_taken_in_one_piece_are_those_taken_one_by_one(data: bytes, cuts: list[int]) -> None:
    marks = [0, *sorted(cuts), len(data)]
    chunks = [data[start:end] for start, end in pairwise(marks)]
    single, pieces = Splitter(), Splitter()
    events = [event for chunk in chunks for event in single.feed(chunk)]
    assert events_of(pieces.take(chunk) for chunk in chunks) == events
    assert pieces.rest == single.rest
    assert b"".join(events_of([data])) == data


def test_an_event_of_several_lines_is_one_text() -> None:
    assert data_of(b"event: x\ndata: {\ndata:  1}\n\n") == "{\n 1}"
    assert data_of(b": comment\n\n") is None
    assert object_of(b"data: [DONE]\n\n") is None
    with pytest.raises(ValueError, match="no JSON object"):
        object_of(b"data: [1]\n\n")


def test_a_long_event_takes_no_longer_for_coming_in_small_pieces() -> None:
    event = b"data: " + b"x" * 4_000_000 + b"\n\n"
    for cut in ("take", "feed"):
        splitter = Splitter()
        began = time.monotonic()
        events = [getattr(splitter, cut)(event[place : place + 1400]) for place in range(0, len(event), 1400)]
        assert time.monotonic() - began < 1
        assert b"".join(part if isinstance(part, bytes) else b"".join(part) for part in events) == event


@pytest.mark.parametrize("cut", ["take", "feed"])
@pytest.mark.parametrize("end", [b"\n\n", b"\r\n\r\n", b"\r\r", b"\n\r\n", b"\r\n\n"])
def test_the_end_of_a_long_event_is_found_wherever_it_is_cut(cut: str, end: bytes) -> None:
    long = b"data: " + b"line\n".join([b"x" * 30_000] * 4)
    for place in range(1, len(end)):
        splitter = Splitter()
        pieces = [long[:70_000], long[70_000:], end[:place], end[place:] + b"data: next"]
        got = [getattr(splitter, cut)(piece) for piece in pieces]
        assert b"".join(part if isinstance(part, bytes) else b"".join(part) for part in got) == long + end
        assert splitter.rest == b"data: next"

"""docs/benchmarks.md is what the committed results say, and the versions are those that are tested."""

from __future__ import annotations

import json
import re

from benchmarks.peers.parts import PARTS
from benchmarks.peers.report import EXPLAINED, PAGE, RESULTS, explained, written
from benchmarks.peers.versions import AGENTS, PEERS

from scripts.check_adapters import PINS


def test_the_page_is_made_from_the_results() -> None:
    results = json.loads(RESULTS.read_text(encoding="utf-8"))
    assert PAGE.read_text(encoding="utf-8") == written(results), "run `python -m benchmarks.peers --page`"
    page = EXPLAINED.read_text(encoding="utf-8")
    assert page == explained(page, results), "run `python -m benchmarks.peers --page`"


def test_every_part_was_measured_and_says_when_and_on_what() -> None:
    parts = json.loads(RESULTS.read_text(encoding="utf-8"))["parts"]
    assert set(parts) == set(PARTS)
    for part in parts.values():
        assert re.fullmatch(r"\d{4}-\d\d-\d\d", part["date"])
        assert part["commit"]
        assert "Python 3" in part["machine"]


def test_the_versions_are_those_that_the_adapters_are_tested_with() -> None:
    for name in AGENTS:
        if name in PINS:
            assert PEERS[name].pin in PINS[name]

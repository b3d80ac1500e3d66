"""What tools and models write does no harm to whoever looks at it."""

from __future__ import annotations

import re
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from maymust import ConditionalRequirement, Outcome, Policy, Step, tool
from maymust.models import call
from maymust.trace import read_trace, recording_of
from maymust.web.data import file_data
from maymust.web.known import known_policy
from maymust.web.page import embedded, page
from tests.cli.commands import command
from tests.web.browser import Watched
from tests.web.runs import record, written

Open = Callable[..., Watched]
HTML = "<img src=x onerror=alert(1)><script>alert(2)</script></script><!--"
UNSEEN = "\x1b[2J\x9b1m\x07\u202eevil\u2066\ud800\U000e0041\u2028line\r\nnext\u200b"
WRITTEN = r"\x1b[2J\x9b1m\x07\u202eevil\u2066\ud800\U000e0041\u2028line"

FETCHES: list[Any] = [call("fetch", url="unseen"), call("fetch", url="long"), call("final_answer", answer="x")]


@tool
def fetch(url: str) -> str:
    """Fetch."""
    return {"html": HTML, "unseen": UNSEEN}.get(url) or "x" * 1_000_000


def viewed(directory: Path, trace: Path) -> str:
    done = command(directory, "view", trace.name, "-o", "page.html")
    assert done.code == 0, done.err
    return (directory / "page.html").as_uri()


def drawn(directory: Path, trace: Path) -> str:
    """The same, with little time for what would change verdicts."""
    recording = recording_of(read_trace(trace))
    (directory / "page.html").write_text(page(file_data([("run", recording, known_policy(recording))], seconds=0.5), title="run"))
    return (directory / "page.html").as_uri()


def test_markup_in_outputs_arguments_and_names_is_text(tmp_path: Path, open_page: Open) -> None:
    script = [call("fetch", url="html"), call("fetch", url=HTML), call(HTML, q=HTML), call("final_answer", answer=HTML)]
    view = open_page(viewed(tmp_path, record(tmp_path / "<img src=x onerror=alert(3)>.jsonl", [], script, (fetch,))))
    view.press("ArrowDown")
    assert HTML in view.why()
    view.press("f")
    assert HTML in view.why()
    assert view.page.locator("img").count() == 0
    assert view.page.evaluate("document.scripts.length") == 3


def test_reasons_names_of_rules_and_tools_are_text(tmp_path: Path, open_page: Open) -> None:
    name = "<b>bold</b>&amp;" + UNSEEN
    policy = Policy([ConditionalRequirement(name, max_invocations=0, name=HTML, reason=HTML + UNSEEN)], tools=[name, "a"])
    view = open_page(viewed(tmp_path, written(tmp_path / "t.jsonl", policy, [Step("a"), Step(name, Outcome.REFUSED)])))
    assert view.chosen().startswith(r"<b>bold</b>&amp;\x1b[2J")
    assert HTML in view.why()
    assert WRITTEN in view.why()
    assert view.page.locator("#grid b").count() == 0
    everything = view.page.evaluate("document.body.innerText")
    assert not re.search("[\x1b\x9b\x07\u202e\u2066\u2028\u200b]", everything)
    assert view.violations() == []


def test_what_is_unseen_is_written_out(tmp_path: Path, open_page: Open) -> None:
    view = open_page(viewed(tmp_path, record(tmp_path / "t.jsonl", [], FETCHES, (fetch,))))
    view.press("ArrowDown")
    assert WRITTEN.replace(r"\ud800", "\ufffd") in view.why()  # half a character does not get that far


def test_a_text_of_a_million_characters_is_cut_and_shown_on_demand(tmp_path: Path, open_page: Open) -> None:
    view = open_page(viewed(tmp_path, record(tmp_path / "t.jsonl", [], FETCHES, (fetch,))))
    view.press("ArrowDown", "ArrowRight")
    shown = view.page.locator('pre[aria-label="output"]')
    assert len(shown.inner_text()) == 1200
    more = view.page.locator(".longbox:has(pre[aria-label=output]) button")
    assert more.inner_text() == "show more (998,800 characters left)"
    more.click()
    assert len(shown.inner_text()) == 21_200


class Structure(HTMLParser):
    """The elements of a page."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []

    def handle_starttag(self, tag: str, attrs: Any) -> None:
        self.tags.append(tag)


@pytest.mark.parametrize("text", [HTML, UNSEEN, "{script}", "{data}", "</SCRIPT >", "<!--<script>", "\u2028\u2029&lt;"])
def test_data_cannot_leave_its_element(text: str) -> None:
    plain, hostile = Structure(), Structure()
    plain.feed(page({}, title="maymust"))
    hostile.feed(page({"name": text, text: [text]}, title=text))
    assert plain.tags == hostile.tags
    assert not set("<>&\u2028\u2029") & set(embedded({text: text}))


def test_sixty_tools_and_three_hundred_steps_are_fluid(tmp_path: Path, open_page: Open) -> None:
    names = [f"tool_{number:02d}" for number in range(60)]
    rules = [ConditionalRequirement(names[place], only_after=[names[place - 1]], max_invocations=9) for place in range(1, 20)]
    steps = [Step(names[number % 20 if number % 7 else 0], Outcome.OK, {"n": number}) for number in range(300)]
    view = open_page(drawn(tmp_path, written(tmp_path / "t.jsonl", Policy(rules, tools=names), steps)))
    assert view.page.locator("#grid [role=gridcell]").count() < 3_000
    # Time of the page's own thread, so that a busy machine is no failure.
    spent = view.page.evaluate(
        """() => { const grid = document.getElementById("grid"); const times = [];
        for (let n = 0; n < 60; n += 1) { const began = performance.now();
          grid.dispatchEvent(new KeyboardEvent("keydown", {key: "ArrowRight", bubbles: true})); times.push(performance.now() - began); }
        return times.sort((a, b) => a - b)[30]; }"""
    )
    assert view.page.inner_text("#place") == "step 61 of 300"
    assert spent < 100, f"a step takes {spent:.0f} ms"


def test_ten_thousand_steps_do_no_harm(tmp_path: Path, open_page: Open) -> None:
    policy = Policy([ConditionalRequirement("b", only_after=["a"], consecutive_allowed=False)], tools=["a", "b", "c"])
    steps = [Step("abc"[number % 3], Outcome.OK, {"n": number}, "out", f"c{number}") for number in range(10_000)]
    view = open_page(drawn(tmp_path, written(tmp_path / "t.jsonl", policy, steps)))
    view.press("End")
    assert view.page.inner_text("#place") == "step 10000 of 10000"
    assert view.page.locator("#grid [role=gridcell]").count() < 500
    view.press("ArrowDown", "ArrowLeft")
    assert view.chosen().startswith("b, step 9999: ")

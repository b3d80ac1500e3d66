"""`maymust view`: a run as one file that opens from disk."""

from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import expect

from maymust.web.page import page
from tests.cli.commands import command, process
from tests.web.browser import Watched
from tests.web.runs import RULES, record

Open = Callable[..., Watched]


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory = tmp_path_factory.mktemp("runs")
    record(directory / "a.jsonl")
    record(directory / "b.jsonl", rules=[*RULES[:1], *RULES[2:]])
    for name in ("a", "b"):
        assert command(directory, "view", f"{name}.jsonl", "-o", f"{name}.html").code == 0
    assert command(directory, "view", "a.jsonl", "b.jsonl", "-o", "both.html").code == 0
    return directory


def test_the_page_without_data_weighs_little() -> None:
    assert len(page({}, title="maymust").encode()) <= 120_000
    assert len(page({}, title="maymust", served=True).encode()) <= 120_000


def test_a_run_is_stepped_through_by_keys(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    assert view.page.inner_text("#summary") == "7 turns · 8 steps · 3 refused · ended: final_answer"
    assert view.chosen() == "think, step 1: forced; called: ok"
    view.press("ArrowRight", "ArrowDown", "ArrowDown")
    assert view.chosen() == "refund, step 2: denied; called: refused"
    assert view.page.inner_text("#place") == "step 2 of 8"
    view.press("ArrowLeft")
    assert view.chosen() == "refund, step 1: denied"
    view.press("End")
    assert view.chosen() == "refund, step 8: denied"
    view.press("Home", "ArrowUp")
    assert view.chosen() == "lookup, step 1: withheld"


def test_the_panel_says_why_on_what_evidence_and_what_would_change_it(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    view.page.click('#grid [aria-label^="refund, step 2:"]')
    said = view.why()
    for text in ("denied refund", "refund-after-lookup", "lookup has to succeed first", "lookup was not called yet", "opens after lookup"):
        assert text in said
    assert '"amount": 20' in said
    assert "was refused, and never ran" in said
    view.press("Enter")
    assert view.page.evaluate("document.activeElement.id") == "why"
    view.press("Escape")
    assert view.page.evaluate("document.activeElement.id") == "grid"


def test_refusals_are_found_one_after_the_other_and_names_that_are_no_tool_have_a_row(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    seen = []
    for _ in range(4):
        view.press("f")
        seen.append(view.chosen())
    assert seen[0] == seen[3] == "refund, step 2: denied; called: refused"
    assert seen[1] == "unknown names, step 6: no such tool; called: refused"
    view.press("F")
    assert view.chosen() == seen[2]


def test_rows_below_say_what_tool_choice_was_and_whether_the_run_may_stop(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    labels = view.page.eval_on_selector_all("#grid .cell.choice, #grid .cell.stop", "all => all.map(one => one.getAttribute('aria-label'))")
    assert "tool_choice at step 1: think" in labels
    assert "step 1: the run may not stop" in labels
    assert "step 5: the run may stop" in labels


def test_the_automaton_shows_the_way_of_the_run(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    assert view.page.text_content("#graph .here") == "must think"
    assert view.page.locator("#graph .edge.been").count() == 0
    view.press("End")
    assert view.page.locator("#graph .node.been").count() == 4
    assert view.page.locator("#graph .edge.been").count() == 3


def test_two_runs_are_compared_and_their_differences_found(files: Path, open_page: Open) -> None:
    view = open_page((files / "both.html").as_uri())
    view.press("d")
    assert view.chosen() == "refund, step 1: denied; differs: denied / withheld"
    assert "denied → withheld" in view.why()
    view.press("d")
    assert view.chosen() == "refund, step 2: denied; called: refused; differs: denied / ask"
    view.page.select_option("#run", "1")
    assert view.chosen() == "refund, step 2: ask; called: ok; differs: ask / denied"


def test_the_place_is_in_the_address(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    view.press("ArrowRight", "ArrowDown", "ArrowDown")
    again = open_page(view.page.evaluate("location.href"))
    assert again.chosen() == "refund, step 2: denied; called: refused"


def test_the_help_lists_the_keys(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    view.press("?")
    assert "next refused call" in view.page.inner_text("#help")
    view.press("f", "Escape")
    assert not view.page.is_visible("#help")
    assert view.chosen() == "think, step 1: forced; called: ok"


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("name", ["a", "both"])
def test_everybody_can_use_it(files: Path, open_page: Open, scheme: str, name: str) -> None:
    view = open_page((files / f"{name}.html").as_uri(), color_scheme=scheme)
    view.press("f")
    assert view.violations() == []
    view.press("?")
    assert view.violations() == []


def test_the_theme_can_be_chosen(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri(), color_scheme="light")
    before = view.page.evaluate("getComputedStyle(document.body).backgroundColor")
    view.page.click("#theme")
    view.page.click("#theme")
    assert view.page.inner_text("#theme") == "theme: dark"
    assert view.page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert view.violations() == []


def test_a_telephone_shows_it_without_sideways_scrolling(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri(), size=(375, 740))
    assert view.page.evaluate("document.documentElement.scrollWidth") <= 375
    view.page.click('#grid [aria-label^="refund, step 2:"]')
    assert "lookup has to succeed first" in view.why()
    assert view.violations() == []
    view.page.set_viewport_size({"width": 1280, "height": 800})
    expect(view.page.locator('[data-r="2"]')).to_have_js_property("offsetTop", 30 + 2 * 32)


def test_nothing_is_asked_for_on_the_network(files: Path, open_page: Open) -> None:
    view = open_page((files / "a.html").as_uri())
    view.press("f", "End", "?")
    assert view.requests == [(files / "a.html").as_uri()]
    tried = view.page.evaluate("fetch('http://127.0.0.1:9/').then(() => 'out', () => 'kept in')")
    assert tried == "kept in"
    view.faults.clear()  # the browser tells that it kept it in


def test_a_trace_comes_from_stdin_and_the_page_goes_to_stdout(files: Path) -> None:
    done = process(files, "view", "-", stdin=(files / "a.jsonl").read_text())
    assert done.code == 0
    assert done.out.startswith("<!doctype html>")
    assert "pay_out" in done.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["none.jsonl"], "none.jsonl: there is no such file"),
        (["-", "-"], "only one of the traces and the policy can come from stdin"),
        (["a.jsonl", "-o", "nowhere/a.html"], "nowhere/a.html cannot be written"),
        (["a.html"], "a.html"),
    ],
)
def test_what_cannot_be_shown_is_told(files: Path, arguments: list[str], said: str) -> None:
    done = command(files, "view", *arguments)
    assert done.code == 2
    assert said in done.err


def test_a_torn_trace_and_one_without_turns_are_shown(files: Path, tmp_path: Path, open_page: Open) -> None:
    content = (files / "a.jsonl").read_bytes()
    (tmp_path / "torn.jsonl").write_bytes(content[: content.index(b'"kind":"RunFinished"') + 9])
    (tmp_path / "new.jsonl").write_bytes(content.split(b"\n")[0] + b"\n")
    done = command(tmp_path, "view", "torn.jsonl", "-o", "torn.html")
    assert "is torn, and left out" in done.err
    assert "its last line is torn" in open_page((tmp_path / "torn.html").as_uri()).page.inner_text("#summary")
    assert command(tmp_path, "view", "new.jsonl", "-o", "new.html").code == 0
    assert "This run has no turns yet." in open_page((tmp_path / "new.html").as_uri()).why()

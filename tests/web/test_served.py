"""`maymust serve` in a browser: runs while they go, and the playground."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import expect

from maymust import tool
from maymust.models import call as call_of
from maymust.policyfile.cases import read_case_file
from maymust.policyfile.judge import judge
from tests.web.browser import Watched
from tests.web.runs import RULES, lookup, record
from tests.web.serving import serving

Open = Callable[..., Watched]
POLICY = """\
version: 1
tools: [lookup, refund]
rules:
  refund-late: {conditional: refund, only_after: lookup, max_invocations: 1, reason: look first}
  ask-first: {ask: refund}
  one-lookup: {conditional: lookup, max_attempts: 2}
  answer-late: {conditional: final_answer, only_after: refund}
may_be_denied: [refund]
may_fail: [lookup]
"""
BROKEN = "version: 1\ntools: [a]\nrules:\n  r: {conditional: b}\n"


@pytest.fixture(scope="module")
def directory(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("served")
    (found / "runs").mkdir()
    record(found / "runs" / "a.jsonl")
    record(found / "b.jsonl", rules=[*RULES[:1], *RULES[2:]])
    (found / "desk.policy.yaml").write_text(POLICY, encoding="utf-8")
    return found


@pytest.fixture(scope="module")
def address(directory: Path) -> Iterator[str]:
    with serving(directory, "runs", "--policy", "desk.policy.yaml") as url:
        yield url


def test_a_run_is_stepped_through_and_explained_on_demand(address: str, open_page: Open) -> None:
    view = open_page(address)
    expect(view.page.locator("#summary")).to_contain_text("7 turns · 8 steps · 3 refused · ended: final_answer")
    view.press("ArrowDown", "ArrowDown", "ArrowRight")
    assert view.chosen() == "refund, step 2: denied; called: refused"
    expect(view.page.locator("#why")).to_contain_text("refund opens after lookup")
    assert "lookup was not called yet" in view.why()
    assert all(url.startswith((address, "data:")) for url in view.requests)


def test_a_live_run_appears_while_it_runs_and_goes_on_after_a_torn_line(directory: Path, address: str, open_page: Open) -> None:
    lines = (directory / "b.jsonl").read_bytes().splitlines(keepends=True)
    path = directory / "runs" / "live.jsonl"
    view = open_page(address)
    expect(view.page.locator("#run option")).to_have_count(1)
    half = len(lines) // 2
    path.write_bytes(b"".join(lines[:half]) + lines[half][:20])
    expect(view.page.locator("#run option")).to_have_count(2)
    view.page.select_option("#run", label="live.jsonl")
    expect(view.page.locator("#live")).to_have_text("live")
    columns = view.page.locator("#grid .col").count()
    assert columns > 1
    with path.open("ab") as file:
        file.write(lines[half][20:])
    for place in range(half + 1, len(lines)):
        with path.open("ab") as file:
            file.write(lines[place])
    expect(view.page.locator("#live")).to_have_text("ended")
    assert view.page.locator("#grid .col").count() > columns
    assert view.page.inner_text("#place") == "step 8 of 8"  # it follows
    path.unlink()


def test_a_run_is_watched_while_its_tool_works(directory: Path, address: str, open_page: Open) -> None:
    done = threading.Event()

    @tool
    def work() -> str:
        """Work for a while."""
        return "done" if done.wait(60) else "given up"

    path = directory / "runs" / "real.jsonl"
    script = [call_of("lookup", order=7), call_of("work"), call_of("final_answer", answer="x")]
    running = threading.Thread(target=record, args=(path, [], script, (lookup, work)))
    running.start()
    try:
        view = open_page(address)
        expect(view.page.locator("#run option")).to_have_count(2)
        view.page.select_option("#run", label="real.jsonl")
        expect(view.page.locator("#summary")).to_have_text("2 turns · 1 step · not ended")
        expect(view.page.locator("#live")).to_have_text("live")
        done.set()
        expect(view.page.locator("#summary")).to_have_text("3 turns · 3 steps · ended: final_answer")
        expect(view.page.locator("#live")).to_have_text("ended")
    finally:
        done.set()
        running.join()
        path.unlink()


def test_two_runs_are_compared(directory: Path, address: str, open_page: Open) -> None:
    (directory / "runs" / "b.jsonl").write_bytes((directory / "b.jsonl").read_bytes())
    view = open_page(address)
    expect(view.page.locator("#other")).to_be_visible()
    view.page.select_option("#run", label="a.jsonl")
    view.page.select_option("#other", label="b.jsonl")
    expect(view.page.locator("#difference")).to_be_visible()
    view.press("d")
    assert view.chosen() == "refund, step 1: denied; differs: denied / withheld"
    (directory / "runs" / "b.jsonl").unlink()


def in_playground(address: str, open_page: Open) -> Watched:
    view = open_page(address)
    view.page.click("[data-mode=play]")
    expect(view.page.locator("#grid")).to_be_visible()
    return view


def call(view: Watched, cell: str, outcome: str) -> None:
    """Call a tool in the playground."""
    columns = view.page.locator("#grid .col").count()
    view.page.click(f'#grid [aria-label^="{cell}"]')
    view.page.click(f"#menu button:has(b:text-is('{outcome}'))")
    expect(view.page.locator("#grid .col")).to_have_count(columns + 1)


def test_a_history_is_composed_by_clicking_and_comes_back_from_its_address(address: str, open_page: Open) -> None:
    view = in_playground(address, open_page)
    call(view, "lookup, step 1", "ok")
    call(view, "refund, step 2", "denied")
    expect(view.page.locator("#summary")).to_contain_text("2 steps composed")
    assert view.page.get_attribute('#grid [aria-label^="refund, step 2"]', "aria-label") == "refund, step 2: ask; called: denied"
    again = open_page(view.page.evaluate("location.href"))
    expect(again.page.locator("#summary")).to_contain_text("2 steps composed")
    assert again.page.input_value("#policy") == POLICY
    assert again.chosen() == view.chosen()
    view.page.click("#undo")
    expect(view.page.locator("#summary")).to_contain_text("1 steps composed")
    view.press("ArrowLeft")
    view.page.click("text=go on from this step")
    expect(view.page.locator("#summary")).to_contain_text("0 steps composed")


def test_a_call_is_made_by_keys_alone(address: str, open_page: Open) -> None:
    view = in_playground(address, open_page)
    view.page.focus("#grid")
    view.press("Enter", "ArrowDown", "Enter")
    expect(view.page.locator("#summary")).to_contain_text("1 steps composed")
    expect(view.page.locator("#grid")).to_be_focused()
    assert view.page.get_attribute('#grid [aria-label^="lookup, step 1"]', "aria-label") == "lookup, step 1: allowed; called: failed"
    view.press("Enter", "Escape")
    assert view.page.locator("#menu").count() == 0


def test_the_policy_is_checked_while_it_is_written(address: str, open_page: Open) -> None:
    view = in_playground(address, open_page)
    view.page.fill("#policy", BROKEN)
    expect(view.page.locator("#problems li")).to_have_count(1)
    assert "line 4, column 20" in view.page.inner_text("#problems")
    assert view.page.inner_text(".gutter .error") == "4"
    expect(view.page.locator("#findings")).to_contain_text("no policy yet")
    view.page.click("#problems .place")
    assert view.page.evaluate("document.activeElement.value.slice(document.activeElement.selectionStart).startsWith('b}')")
    view.page.fill("#policy", BROKEN.replace("b}", "a}"))
    expect(view.page.locator("#problems li")).to_have_count(0)
    expect(view.page.locator("#findings")).to_contain_text("every run can end")


def test_code_in_a_policy_text_is_refused_with_the_reason_and_never_run(address: str, open_page: Open, directory: Path) -> None:
    (directory / "bomb.py").write_text("import pathlib\npathlib.Path('exploded').touch()\ndef no(history): return True\n")
    view = in_playground(address, open_page)
    view.page.fill("#policy", BROKEN.replace("b}", "a, custom_checks: [bomb:no]}"))
    expect(view.page.locator("#problems")).to_contain_text("a check is Python code")
    view.page.fill("#policy", "bomb:no")
    expect(view.page.locator("#problems")).to_contain_text("has to be a mapping")
    assert not (directory / "exploded").exists()


def test_the_witness_of_a_finding_is_played_back(address: str, open_page: Open) -> None:
    view = in_playground(address, open_page)
    expect(view.page.locator("#findings .findings li").first).to_be_visible()
    finding = view.page.locator("#findings li.error").first
    witness = finding.locator("button.play").inner_text()
    assert witness == "▶ lookup!failed → lookup!failed"
    finding.locator("button.play").click()
    steps = witness.removeprefix("▶ ").split(" → ")
    expect(view.page.locator("#summary")).to_contain_text(f"{len(steps)} steps composed")
    expect(view.page.locator("#place")).to_contain_text(f"step {len(steps) + 1} of")


def test_a_situation_is_copied_as_a_policy_test_that_holds(address: str, open_page: Open, directory: Path) -> None:
    view = in_playground(address, open_page)
    call(view, "lookup, step 1", "failed")
    call(view, "lookup, step 2", "ok")
    view.page.click("#copy")
    expect(view.page.locator("#case textarea")).to_be_visible()
    (directory / "playground.policy.yaml").write_text(view.page.input_value("#policy"), encoding="utf-8")
    (directory / "case.policy-test.yaml").write_text(view.page.input_value("#case textarea"), encoding="utf-8")
    file = read_case_file(directory / "case.policy-test.yaml")
    assert [step.tool for step in file.cases[0].after] == ["lookup", "lookup"]
    assert [judge(file.policy.policy, case) for case in file.cases] == [()]


def test_a_run_goes_to_the_playground_with_its_policy_and_its_calls(address: str, open_page: Open) -> None:
    view = open_page(address)
    expect(view.page.locator("#summary")).to_contain_text("7 turns")
    view.page.click("text=open in playground")
    expect(view.page.locator("#summary")).to_contain_text("7 steps composed · the run has ended")
    assert "only_after: [lookup]" in view.page.input_value("#policy")
    assert "called: refused" in str(view.page.get_attribute('#grid [aria-label^="refund, step 2"]', "aria-label"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everybody_can_use_it(address: str, open_page: Open, scheme: str) -> None:
    view = open_page(address, color_scheme=scheme)
    expect(view.page.locator("#summary")).to_contain_text("7 turns")
    assert view.violations() == []
    view.page.click("[data-mode=play]")
    expect(view.page.locator("#findings li").first).to_be_visible()
    view.page.click('#grid [aria-label^="lookup, step 1"]')
    expect(view.page.locator("#menu")).to_be_visible()
    assert view.violations() == []


def test_a_page_goes_on_when_its_server_comes_back(directory: Path, open_page: Open) -> None:
    with serving(directory, "runs") as url:
        view = open_page(url)
        expect(view.page.locator("#live")).to_have_text("ended")
        view.press("ArrowRight", "ArrowRight")
        before = view.chosen()
    expect(view.page.locator("#live")).to_contain_text("trying again")
    port = url.rstrip("/").rpartition(":")[2]
    with serving(directory, "runs", "--port", port):
        expect(view.page.locator("#live")).to_have_text("ended", timeout=15_000)
        assert view.chosen() == before
    view.faults.clear()  # the browser tells of each failed attempt


def test_two_pages_do_not_get_in_each_others_way(address: str, open_page: Open) -> None:
    one, other = in_playground(address, open_page), in_playground(address, open_page)
    call(one, "lookup, step 1", "ok")
    call(other, "lookup, step 1", "failed")
    call(one, "refund, step 2", "ok")
    assert "called: ok" in str(one.page.get_attribute('#grid [aria-label^="lookup, step 1"]', "aria-label"))
    assert "called: failed" in str(other.page.get_attribute('#grid [aria-label^="lookup, step 1"]', "aria-label"))
    assert "#play=" in one.page.evaluate("location.href")

"""Draw docs/images: the matrix, the playground and the terminal, from a run of a scripted model. `make screenshots`."""

from __future__ import annotations

import asyncio
import io
import logging
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import Browser, Page, expect, sync_playwright
from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

from maymust import Agent, ConditionalRequirement, ThinkTool, ToolError, tool
from maymust.models import ScriptedModel, call
from maymust.trace import read_trace, recording_of, write_trace
from maymust.views.terminal import Terminal
from maymust.web.data import file_data
from maymust.web.known import known_policy
from maymust.web.page import page
from scripts.chromium import find

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
SETTINGS = ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking", "--font-render-hinting=none"]
POLICY = """\
version: 1
tools: [think, lookup, search, refund, escalate]
rules:
  think-first:
    {conditional: think, force_at_step: 1}
  look-first:
    conditional: refund
    only_after: lookup
    max_invocations: 1
    reason: look the order up first
  ask-before-refund: {ask: refund}
  answer-with-facts:
    {conditional: final_answer, only_after: refund}
may_fail: [lookup]
may_be_denied: [refund]
"""


@tool
def lookup(order: int) -> str:
    """Look an order up."""
    if order == 0:
        raise ToolError("there is no order 0")
    return f"order {order}: paid 20"


@tool
def search(query: str) -> str:
    """Search the handbook."""
    return "Orders can be paid back within 30 days."


@tool
def refund(order: int, amount: int) -> str:
    """Pay back."""
    return "paid back"


@tool
def escalate(reason: str) -> str:
    """Hand over to a person."""
    return "handed over"


RULES = [
    ConditionalRequirement(ThinkTool, force_at_step=1, name="think-first"),
    ConditionalRequirement("refund", only_after=["lookup"], max_invocations=1, name="look-first", reason="look the order up first"),
    ConditionalRequirement("search", consecutive_allowed=False, name="no-search-twice"),
    ConditionalRequirement("final_answer", only_after=["lookup"], name="answer-with-facts"),
]
SCRIPT: list[Any] = [
    call("think", thought="Which order is it?"),
    call("search", query="how long"),
    call("refund", order=7, amount=20),
    call("search", query="refunds"),
    call("search", query="refunds again"),
    call("lookup", order=0),
    call("lookup", order=7),
    call("refund", order=7, amount=20),
    call("refund", order=7, amount=20),
    call("escalate", reason="a second refund"),
    call("final_answer", answer="Order 7 is paid back, once."),
]


def record(path: Path) -> str:
    """Run the agent; write its trace, and return what its terminal has shown."""
    shown = io.StringIO()

    async def main() -> None:
        run = Agent(ScriptedModel(SCRIPT), tools=[ThinkTool(), lookup, search, refund, escalate], requirements=RULES).start(
            "Pay back order 7."
        )
        write_trace(run, path)
        Terminal(shown).listen(run)
        await run

    asyncio.run(main())
    return shown.getvalue()


def shot(browser: Browser, size: tuple[int, int]) -> Page:
    """A page of a size, finer than a screen."""
    return browser.new_context(viewport={"width": size[0], "height": size[1]}, device_scale_factor=1.25, color_scheme="light").new_page()


def matrix(browser: Browser, path: Path) -> None:
    """The run, at the refund that was refused."""
    recording = recording_of(read_trace(path))
    file = path.with_suffix(".html")
    file.write_text(page(file_data([("refund.jsonl", recording, known_policy(recording))]), title="maymust"), encoding="utf-8")
    view = shot(browser, (1060, 560))
    view.goto(f"{file.as_uri()}#run=0&step=3&tool=refund")
    view.screenshot(path=IMAGES / "matrix.png")


def playground(browser: Browser, directory: Path) -> None:
    """A policy with a finding, and a history that was composed."""
    (directory / "desk.policy.yaml").write_text(POLICY, encoding="utf-8")
    command = [sys.executable, "-m", "maymust", "serve", "--policy", "desk.policy.yaml", "--port", "0"]
    server = subprocess.Popen(command, cwd=directory, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        view = shot(browser, (1320, 640))
        view.goto(server.stderr.readline().split()[1])
        for cell in ("think, step 1", "lookup, step 2"):
            view.click(f'#grid [aria-label^="{cell}"]')
            view.click("#menu button")
            expect(view.locator("#menu")).to_have_count(0)
        view.click('#grid [aria-label^="refund, step 3"]')
        expect(view.locator("#findings li").first).to_be_visible()
        view.screenshot(path=IMAGES / "playground.png")
        view.close()
    finally:
        server.terminate()
        server.wait()
        server.stderr.close()


def terminal(browser: Browser, text: str) -> None:
    """What `maymust run` shows, in the colours of a terminal."""
    console = Console(record=True, width=112, file=io.StringIO(), color_system="truecolor")
    console.print(Text.from_ansi("\n".join(text.splitlines()[:22])))
    body = "body{margin:0;background:#16181b;color:#e6e4e0;font:13px/1.6 'DejaVu Sans Mono',monospace}"
    style = f"{body}pre{{margin:0;padding:18px 22px;font:inherit}}"
    view = shot(browser, (940, 494))
    view.set_content(f"<style>{style}</style>{console.export_html(theme=MONOKAI, inline_styles=True, code_format='<pre>{code}</pre>')}")
    view.screenshot(path=IMAGES / "terminal.png")


def main() -> int:
    """Draw all of them."""
    os.environ["FORCE_COLOR"] = "1"
    logging.disable(logging.WARNING)  # what the model does against the rules is meant
    chromium = find()
    if chromium is None:
        print("there is no chromium: install it, or set MAYMUST_CHROMIUM to the path of one", file=sys.stderr)
        return 1
    IMAGES.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "refund.jsonl"
        text = record(path)
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=chromium, args=SETTINGS)
            matrix(browser, path)
            playground(browser, Path(directory))
            terminal(browser, text)
            browser.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""The browser of the tests, and what a test asks of a page."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import axe_playwright_python
import pytest
from playwright.sync_api import Browser, Dialog, Page, sync_playwright

from scripts.chromium import find

SETTINGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text(encoding="utf-8")
REQUIRED = "MAYMUST_WEB_REQUIRED"
"""Set where a browser has to be there: then its absence is a failure."""


@contextmanager
def browser() -> Iterator[Browser]:
    """The browser; the test is skipped where there is none, unless one is required."""
    path = find()
    if path is None:
        text = "there is no chromium: install it, or set MAYMUST_CHROMIUM to the path of one"
        if os.environ.get(REQUIRED):
            pytest.fail(text)
        pytest.skip(text)
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=path, args=SETTINGS)
        try:
            yield found
        finally:
            found.close()


class Watched:
    """A page whose requests and faults are noted."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.requests: list[str] = []
        self.faults: list[str] = []
        page.on("request", lambda request: self.requests.append(request.url))
        page.on("pageerror", lambda error: self.faults.append(str(error)))
        page.on("console", lambda said: self.faults.append(said.text) if said.type in ("error", "warning") else None)
        page.on("dialog", self._dismiss)

    def _dismiss(self, dialog: Dialog) -> None:
        self.faults.append(f"a dialog: {dialog.message}")
        dialog.dismiss()

    def press(self, *keys: str) -> None:
        """Press keys, one after the other."""
        for key in keys:
            self.page.keyboard.press(key)

    def why(self) -> str:
        """What the panel says."""
        return self.page.inner_text("#why")

    def chosen(self) -> str:
        """What the chosen cell says of itself."""
        return str(self.page.get_attribute('#grid [aria-selected="true"]', "aria-label"))

    def violations(self) -> list[str]:
        """What axe-core finds wrong, each with where it is."""
        self.page.evaluate(AXE)
        found: list[Any] = self.page.evaluate("async () => (await axe.run()).violations")
        return [f"{one['id']}: {node['html'][:160]}: {node['failureSummary'][:300]}" for one in found for node in one["nodes"]]

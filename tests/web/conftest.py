"""The browser and its pages, once for each file of tests."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser

from tests.web.browser import Watched, browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as found:
        yield found


@pytest.fixture(scope="module")
def pages(chromium: Browser) -> Iterator[list[Watched]]:
    """Pages that are opened once: a new one takes a second."""
    context = chromium.new_context()
    found = [Watched(context.new_page()), Watched(context.new_page())]
    yield found
    context.close()


@pytest.fixture
def open_page(pages: list[Watched]) -> Iterator[Callable[..., Watched]]:
    """Open an address: `open_page(url, color_scheme="dark")`, at most twice. A fault in a page fails the test."""
    free = list(pages)

    def go(url: str, *, color_scheme: Any = "light", size: tuple[int, int] = (1280, 800)) -> Watched:
        watched = free.pop(0)
        page = watched.page
        page.emulate_media(color_scheme=color_scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": size[0], "height": size[1]})
        watched.requests.clear()
        page.bring_to_front()  # a page behind another one draws once a second
        page.goto(url)
        page.evaluate("localStorage.clear()")
        return watched

    yield go
    faults = [fault for watched in pages for fault in watched.faults]
    for watched in pages:
        watched.page.goto("about:blank")
        watched.faults.clear()
    assert faults == []

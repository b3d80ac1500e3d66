"""Every page runs: its Python blocks in order, in one namespace of its own, in an empty folder.

A block fenced as `python` is run, and when it is written with `>>>` its results are compared. A block fenced as `text` that comes right
after one is what that one prints. Other fences (`python no-run`, `sh`, `mermaid`) are for readers only.
"""

from __future__ import annotations

import asyncio
import contextlib
import doctest
import importlib
import importlib.util
import io
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parent.parent.parent
EXTRAS = ("jsonpath", "mcp", "openai", "anthropic", "xllamacpp", "yaml", "pytest", "hypothesis", "opentelemetry")
FENCE = re.compile(r"(?m)^(?P<indent>[ ]*)```(?P<info>[^\n`]*)\n(?P<body>.*?)^(?P=indent)```[ ]*$", re.DOTALL)


@dataclass(frozen=True)
class Block:
    """A fenced block: its first line in the page, its text, and what it prints if the page says so."""

    line: int
    source: str
    prints: str | None = None


def blocks(text: str) -> Iterator[Block]:
    """The Python blocks of a page."""
    found = list(FENCE.finditer(text))
    for place, match in enumerate(found):
        if match["info"].strip() != "python":
            continue
        indent, body = match["indent"], match["body"]
        source = "\n".join(line.removeprefix(indent) for line in body.splitlines()) + "\n"
        after = found[place + 1] if place + 1 < len(found) else None
        printed = after is not None and after["info"].strip() == "text" and not text[match.end() : after.start()].strip()
        yield Block(text.count("\n", 0, match.start("body")) + 1, source, after["body"] if after is not None and printed else None)


def run(block: Block, page: str, names: dict[str, Any]) -> None:
    """Run a block. Raises what it raises, and AssertionError for what it says or prints that differs."""
    if block.source.lstrip().startswith(">>>"):
        test = doctest.DocTestParser().get_doctest(block.source, names, page, page, block.line - 1)
        said: list[str] = []
        runner = doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS)
        runner.run(test, out=said.append, clear_globs=False)
        names.update(test.globs)
        assert not said, "".join(said)
        return
    # Empty lines before it, so that tracebacks name the line of the page.
    code = compile("\n" * (block.line - 1) + block.source, page, "exec", dont_inherit=True)
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(code, names)
    if block.prints is not None:
        assert out.getvalue().rstrip() == block.prints.rstrip(), f"{page}:{block.line} prints otherwise"


PAGES = [page for page in sorted([*(ROOT / "docs").rglob("*.md"), ROOT / "README.md"]) if any(blocks(page.read_text(encoding="utf-8")))]


@pytest.fixture
def _event_loop_of_the_page() -> Iterator[None]:
    """Some frameworks' `run_sync` takes the thread's event loop, and would leave one it has made itself open."""
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    yield
    asyncio.set_event_loop(None)
    loop.close()


@pytest.mark.usefixtures("_event_loop_of_the_page")
@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_the_page_runs(page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = list(blocks(page.read_text(encoding="utf-8")))
    if page.parent.name == "adapters":
        # These run in the environment of their framework.
        sources = "\n".join(block.source for block in found)
        for module in re.findall(r"(?m)^(?:from|import) ([\w.]+)", sources):
            try:
                importlib.import_module(module if module.startswith("maymust.adapters.") else module.partition(".")[0])
            except ModuleNotFoundError as missing:
                pytest.skip(f"needs {missing.name}")
    for extra in EXTRAS:
        if importlib.util.find_spec(extra) is None and any(re.search(rf"\b{extra}\b", block.source) for block in found):
            pytest.skip(f"needs {extra}")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {"__name__": "__main__"}
    for block in found:
        run(block, str(page.relative_to(ROOT)), names)


def test_the_runner_finds_blocks_and_faults() -> None:
    printing = "```python\nx = 1\nprint(x)\n```\n\n```text\n1\n```\n```sh\nls\n```\n"
    in_a_list = "- item\n  ```python\n  >>> x + 1\n  2\n  ```\n"
    page = printing + in_a_list + "```python no-run\nnever\n```\n```python\n1 / 0\n```\n"
    first, second, third = blocks(page)
    assert (first.line, first.prints, third.prints) == (2, "1\n", None)
    names: dict[str, Any] = {}
    run(first, "page.md", names)
    run(second, "page.md", names)
    with pytest.raises(ZeroDivisionError) as caught:
        run(third, "page.md", names)
    assert caught.traceback[-1].lineno + 1 == 21
    with pytest.raises(AssertionError, match="prints otherwise"):
        run(Block(1, "print(2)\n", "1\n"), "page.md", {})
    with pytest.raises(AssertionError, match="Expected"):
        run(Block(1, ">>> 1\n2\n"), "page.md", {})

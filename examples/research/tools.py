"""The library, a folder of texts, and the tools over it. The folder is the run's `deps`."""

import re
from pathlib import Path

from maymust import FunctionInvocationContext, ToolError, tool

LIBRARY = Path(__file__).with_name("library")


def flat(text: str) -> str:
    """A text without its line breaks."""
    return " ".join(text.split())


def folder_of(ctx: FunctionInvocationContext) -> Path:
    if not isinstance(ctx.deps, Path):
        raise ToolError("there is no library: start the run with deps=LIBRARY")
    return ctx.deps


@tool(effect="read")
def search(words: str, ctx: FunctionInvocationContext) -> list[dict[str, str]]:
    """Find sources that have any of the words; those with most of them come first, at most three."""
    wanted = set(re.findall(r"\w+", words.lower()))
    found = []
    for path in sorted(folder_of(ctx).glob("*.txt")):
        text = path.read_text(encoding="utf-8")
        hits = len(wanted & set(re.findall(r"\w+", text.lower())))
        if hits:
            found.append((-hits, path.stem, text.splitlines()[0]))
    return [{"source": source, "title": title} for _, source, title in sorted(found)[:3]]


@tool(effect="read")
def read(source: str, ctx: FunctionInvocationContext) -> str:
    """Read a source that a search has found."""
    path = folder_of(ctx) / f"{source}.txt"
    if path.name != f"{source}.txt" or not path.is_file():
        raise ToolError(f"there is no source {source!r}")
    return path.read_text(encoding="utf-8")


@tool(effect="read")
def cite(source: str, quote: str, ctx: FunctionInvocationContext) -> str:
    """Note the words of a source that bear the answer out, as they are written there."""
    text = (folder_of(ctx) / f"{source}.txt").read_text(encoding="utf-8")
    if not quote.strip() or flat(quote) not in flat(text):
        raise ToolError(f"{source} does not say {quote!r}; quote what is written there")
    return f"noted; write [{source}] in the answer"


@tool(effect="read")
def report_gap(missing: str) -> str:
    """Say what the library has nothing about. Then an answer without sources may be given, which says so."""
    return f"noted: nothing about {missing}"

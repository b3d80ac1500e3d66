"""The documentation site: `make docs` builds it from the pages as they are, without network.

The pages are plain Markdown that reads the same on a code host. What only the site needs is added here while it is built:
the navigation, from the lists of links in index.md, and the docstrings behind the tables of reference/api.md.
"""

from __future__ import annotations

import importlib
import inspect
import re
import tomllib
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent

project = "maymust"
version = release = tomllib.loads((HERE.parent / "pyproject.toml").read_text(encoding="utf-8"))["project"]["version"]
author = "the maymust authors"
project_copyright = "the maymust authors, Apache-2.0"

extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon", "sphinxcontrib.mermaid"]
source_suffix = {".md": "markdown"}
root_doc = "index"

# Anchors as code hosts make them; a link to one that does not exist is a warning, and warnings are errors.
myst_heading_anchors = 4
myst_fence_as_directive = ["mermaid"]
suppress_warnings = ["misc.highlighting_failure"]

html_theme = "furo"
html_title = f"maymust {release}"
html_copy_source = False
html_show_sphinx = False

autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_preserve_defaults = True
python_use_unqualified_type_names = True

LINK = re.compile(r"^- \[[^\]]+\]\(([^)#]+)\.md\)", re.MULTILINE)
API_ROW = re.compile(r"^\| `(maymust[\w.]*)` \|.*\n", re.MULTILINE)
LITERAL = re.compile(r"(?<!`)`([^`]+)`(?!`)")
TERM = re.compile(r"^(\w[\w ,/.*]*?)(?: {2,})(\S.*)$")


def navigation(index: str, source: Path) -> str:
    """Hidden tables of contents, one a section of index.md; a page that it does not name comes last in the section of its folder."""
    trees: dict[str, list[str]] = {}
    for section in index.split("\n## ")[1:]:
        trees[section.partition("\n")[0]] = LINK.findall(section)
    named = {page for pages in trees.values() for page in pages}
    for path in sorted(source.rglob("*.md")):
        page = path.relative_to(source).with_suffix("").as_posix()
        if page not in named and page != root_doc:
            homes = [title for title, pages in trees.items() if any(Path(page).parent == Path(other).parent for other in pages)]
            trees.setdefault(homes[-1] if homes else "More", []).append(page)
    head = ["```{toctree}", ":hidden:"]
    return "\n".join("\n".join([*head, f":caption: {title}", "", *pages, "```", ""]) for title, pages in trees.items() if pages)


def docstrings(page: str) -> str:
    """The page with the documentation of each name of a table behind the table."""

    def behind(table: re.Match[str]) -> str:
        names = [row[1] for row in API_ROW.finditer(table[0])]
        return table[0] + "\n" + "\n".join(f"```{{eval-rst}}\n{directive(name)}\n```\n" for name in names)

    return re.sub(r"(?:^\| `maymust.*\n)+", behind, page, flags=re.MULTILINE)


def directive(name: str) -> str:
    """The directive that documents a name, by what it is."""
    path, _, own = name.rpartition(".")
    thing = getattr(importlib.import_module(path), own)
    if not inspect.isclass(thing):
        return f".. auto{'function' if inspect.isroutine(thing) else 'data'}:: {name}"
    kind = "exception" if issubclass(thing, Exception) else "class"
    return f".. auto{kind}:: {name}\n   :members:"


def complete(app: Any, name: str, source: list[str]) -> None:
    """Add to a page what only the site has."""
    if name == root_doc:
        source[0] += "\n" + navigation(source[0], Path(app.srcdir))
    elif name == "reference/api":
        source[0] = docstrings(source[0])


def terms(app: Any, what: str, name: str, thing: Any, options: Any, lines: list[str]) -> None:
    """Docstrings write code as pages do, and terms as `name   meaning` lines: give Sphinx literals and a list."""
    made: list[str] = []
    column = 0
    for line in (LITERAL.sub(r"``\1``\\ ", line) for line in lines):
        match = TERM.match(line)
        if match:
            if not column:
                made.append("")
            column = match.start(2)
            made.append(f"* **{match[1]}**: {match[2]}")
        elif column and line.startswith(" " * column):
            made.append(f"  {line.strip()}")
        else:
            if column and line.strip():
                made.append("")
            column = 0
            made.append(line)
    lines[:] = made


def setup(app: Any) -> dict[str, bool]:
    """Called by Sphinx."""
    app.connect("source-read", complete)
    app.connect("autodoc-process-docstring", terms)
    return {"parallel_read_safe": True, "parallel_write_safe": True}

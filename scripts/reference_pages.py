"""Write the parts of the reference pages that are made from the code: `python -m scripts.reference_pages`.

A test compares them, so a page never says something else than the command or the parser.
"""

import argparse
from collections.abc import Iterator
from pathlib import Path

from maymust.cli.main import build_parser
from maymust.policyfile.cases import CASE
from maymust.policyfile.gateway_terms import GATEWAY
from maymust.policyfile.problem import TITLES
from maymust.policyfile.vocabulary import KINDS, TOP, Word
from scripts.api_reference import api_tables, event_sections

PAGES = Path(__file__).resolve().parent.parent / "docs" / "reference"
BEGIN, END = "<!-- made by scripts/reference_pages.py: {} -->\n", "<!-- end of {} -->\n"


def helps(parser: argparse.ArgumentParser) -> Iterator[tuple[str, str]]:
    """The help of each command, subcommands behind their command."""
    yield parser.prog, parser.format_help()
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            for sub in action.choices.values():
                yield from helps(sub)


def cli_part() -> str:
    """The help of every command."""
    parts = []
    for name, text in helps(build_parser()):
        shown = "\n".join(line.rstrip() for line in text.splitlines())
        parts.append(f"## {name}\n\n```text\n$ {name} --help\n{shown}\n```\n")
    return "\n" + "\n".join(parts) + "\n"


def words(title: str, rows: dict[str, Word]) -> str:
    """A table of keys with values of some shape."""
    shapes = {"tools_or_all": "tools, or `true`", "count": "number, 0 or more", "positive": "number, 1 or more"}
    lines = [f"| {title} | value | meaning |", "|---|---|---|"]
    lines.extend(f"| `{key}` | {shapes.get(word.shape, word.shape)} | {word.about} |" for key, word in rows.items())
    return "\n".join(lines) + "\n"


def texts(title: str, rows: dict[str, str]) -> str:
    """A table of keys."""
    return "\n".join((f"| {title} | meaning |", "|---|---|", *(f"| `{key}` | {about} |" for key, about in rows.items()))) + "\n"


def parts() -> dict[str, dict[str, str]]:
    """What is made, by page and name."""
    rules = "\n".join(f"### {kind.key}\n\n{kind.about}\n\n{words('key', {kind.key: kind.target, **kind.words})}" for kind in KINDS.values())
    codes = {str(code): title for code, title in TITLES.items()}
    return {
        "api.md": {"names": api_tables()},
        "cli.md": {"help": cli_part()},
        "events.md": {"events": event_sections()},
        "policy-file.md": {
            "keys": texts("key", TOP),
            "gateway": texts("key", GATEWAY),
            "rules": rules,
            "cases": texts("key", CASE),
            "codes": texts("code", codes),
        },
    }


def filled(page: str, text: str) -> str:
    """A page with its made parts filled in."""
    for name, part in parts()[page].items():
        begin, end = BEGIN.format(name), END.format(name)
        before, _, rest = text.partition(begin)
        _, _, after = rest.partition(end)
        text = f"{before}{begin}{part}{end}{after}"
    return text


def main() -> None:
    """Write all pages."""
    for page in parts():
        path = PAGES / page
        path.write_text(filled(page, path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()

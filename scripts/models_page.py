"""Write the generated parts of docs/models.md: the capability table with its sources, and the bytes read anew.

python -m scripts.models_page
"""

from __future__ import annotations

import re
from pathlib import Path

from benchmarks.prompt_bytes import table as bytes_table

from maymust.models.capabilities import Capabilities
from maymust.models.capability_table import GUESS, TABLE

PAGE = Path(__file__).parent.parent / "docs" / "models.md"


def capability_table() -> str:
    """The table of what models can be told, as Markdown."""
    lines = ["| API | names | forced choice | subset | prefix-bound | more | source |", "| --- | --- | --- | --- | --- | --- | --- |"]
    for entry in TABLE:
        names = ", ".join(f"`{pattern}`" for pattern in entry.patterns)
        note = f"; {entry.note}" if entry.note else ""
        lines.append(f"| {', '.join(entry.apis)} | {names} | {_cells(entry.capabilities)} | {_links(entry.source)}{note} |")
    for api, told in GUESS.items():
        lines.append(f"| {api} | any other | {_cells(told)} | a guess that nothing refuses |")
    return "\n".join(lines)


def _cells(told: Capabilities) -> str:
    forced = {"not_with_thinking": "not with thinking"}.get(told.forced_choice, told.forced_choice)
    shown = ("thinks", "parallel_switch", "strict_schemas", "json_schema", "late_system", "inline_tools", "images", "files")
    more = [name.replace("_", " ") for name in shown if getattr(told, name)]
    missing = [f"no {name.replace('_', ' ')}" for name in ("tools", "required", "named_choice") if not getattr(told, name)]
    return " | ".join([forced, told.subset.replace("_", " "), "yes" if told.prefix_bound else "no", ", ".join([*missing, *more]) or "-"])


def _links(source: str) -> str:
    return re.sub(r"https://[^\s,;)]+", lambda found: f"[{found[0].removeprefix('https://').split('/')[-1]}]({found[0]})", source)


def written(page: str) -> str:
    """The page with its generated parts made anew."""
    for name, text in (("bytes", bytes_table()), ("table", capability_table())):
        before, mark, rest = page.partition(f"<!-- {name} -->\n")
        page = f"{before}{mark}\n{text}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return page


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text(encoding="utf-8")), encoding="utf-8")

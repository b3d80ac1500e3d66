"""Write llms.txt, the map of the documentation for language models (https://llmstxt.org), from docs/index.md.

python -m scripts.llms              llms.txt of the checkout; a test says when it is out of date
python -m scripts.llms DIRECTORY    llms.txt and llms-full.txt, with every page in the order of the site, into a built site
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
DOCS = ROOT / "docs"
LINK = re.compile(r"^- \[([^\]]+)\]\(([^)#]+)\.md\)(.*)$", re.MULTILINE)

BEGINNING = """\
`pip install maymust`, Python 3.11 to 3.13. The whole of it in one block:

```python
from maymust import Agent, AskPermissionRequirement, ConditionalRequirement, tool
from maymust.models import ScriptedModel, call
from maymust.verify import verify


@tool
def look_up(order: int) -> str:
    \"\"\"Look an order up.\"\"\"
    return f"order {order}: 40 dollars"


@tool
def refund(order: int, amount: int) -> str:
    \"\"\"Pay money back.\"\"\"
    return "paid back"


rules = [
    ConditionalRequirement(refund, only_after=look_up, max_invocations=1),
    AskPermissionRequirement([refund], when={"amount": {"exclusiveMinimum": 100}}),
    ConditionalRequirement("final_answer", only_after=look_up),
]
# A model is "local", "openai:NAME", "anthropic:NAME", or for tests a script.
model = ScriptedModel([call("refund", order=7, amount=40), call("look_up", order=7), call("final_answer", answer="Done.")])
agent = Agent(model, tools=[look_up, refund], requirements=rules)
result = agent.run_sync("Refund order 7.")
assert [(step.tool, str(step.outcome)) for step in result.steps] == [("refund", "refused"), ("look_up", "ok"), ("final_answer", "ok")]
assert verify(agent.policy, may_fail=["refund"]).verdict == "ok"
```

Deny always beats allow and force, whatever the priority. A policy is also a file (`*.policy.yaml`), checked by `maymust verify` and
`maymust test`. `final_answer` is a tool like any other for the rules.
"""


def sections(index: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """The sections of index.md: title, and of each link its title, its page, and what is said of it."""
    found = []
    for section in index.split("\n## ")[1:]:
        links = [(title, page, note.strip().removeprefix(":").strip()) for title, page, note in LINK.findall(section)]
        if links:
            found.append((section.partition("\n")[0], links))
    return found


def overview(prefix: str = "docs/", suffix: str = ".md") -> str:
    """llms.txt. What costs little to leave out comes last, as Optional."""
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    summary = " ".join(index.split("\n\n")[1].split())
    parts = ["# maymust", f"> {summary}", BEGINNING.rstrip()]
    for title, links in sections(index):
        lines = [f"- [{name}]({prefix}{page}{suffix})" + (f": {note}" if note else "") for name, page, note in links]
        parts.append("\n".join([f"## {'Optional' if title == 'Decisions' else title}", "", *lines]))
    return "\n\n".join(parts) + "\n"


def pages() -> list[Path]:
    """Every page, in the order of the site; those that index.md does not name come after the others of their folder's section."""
    order: dict[Path, None] = {}
    for _, links in sections((DOCS / "index.md").read_text(encoding="utf-8")):
        named = [DOCS / f"{page}.md" for _, page, _ in links]
        order.update(dict.fromkeys(named))
        for folder in dict.fromkeys(page.parent for page in named if page.parent != DOCS):
            order.update(dict.fromkeys(sorted(folder.glob("*.md"))))
    order.update(dict.fromkeys(page for page in sorted(DOCS.rglob("*.md")) if page.name != "index.md"))
    return [page for page in order if page.exists()]


def whole() -> str:
    """llms-full.txt: the overview, and then the text of every page."""
    texts = (f"<!-- {page.relative_to(ROOT).as_posix()} -->\n\n{page.read_text(encoding='utf-8').strip()}" for page in pages())
    return "\n\n".join([overview().strip(), *texts]) + "\n"


def main() -> None:
    """Write the file, or both of a site."""
    if len(sys.argv) == 1:
        (ROOT / "llms.txt").write_text(overview(), encoding="utf-8")
        return
    site = Path(sys.argv[1])
    (site / "llms.txt").write_text(overview("", ".html"), encoding="utf-8")
    (site / "llms-full.txt").write_text(whole(), encoding="utf-8")


if __name__ == "__main__":
    main()

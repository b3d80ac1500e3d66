"""The pages on verification are run, and every kind of finding has its section."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

from maymust.verify.finding import KINDS

DOCS = Path(__file__).resolve().parents[2] / "docs"
FINDINGS = DOCS / "reference" / "findings.md"


@pytest.mark.parametrize("page", [FINDINGS, DOCS / "explanation" / "what-is-proved.md"], ids=lambda page: page.stem)
def test_every_example_of_the_page_gives_what_the_page_says(page: Path) -> None:
    # The fence that closes a block is no output.
    text = re.sub(r"^ *```.*$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE)
    examples = doctest.DocTestParser().get_doctest(text, {}, page.stem, str(page), 0)
    report: list[str] = []
    results = doctest.DocTestRunner(verbose=False).run(examples, out=report.append)
    assert results.attempted > 10
    assert not report, "".join(report)


def test_each_kind_of_finding_has_its_section_with_its_message() -> None:
    text = FINDINGS.read_text(encoding="utf-8")
    sections = re.findall(r"^## (\S+) (\S+)$", text, flags=re.MULTILINE)
    assert sections == [(kind.code, kind.name) for kind in KINDS]
    for kind in KINDS:
        assert f'found("{kind.code}"' in text
        section = text.split(f"## {kind.code} ")[1].split("\n## ")[0]
        assert section.split("\n\n")[1].lower().startswith(kind.severity)

"""llms.txt is what docs/index.md says, its code runs, and llms-full.txt has every page once."""

import re
import subprocess
import sys
from pathlib import Path

from scripts.llms import DOCS, ROOT, overview, pages, whole

TEXT = overview()


def test_the_file_is_what_the_index_of_the_pages_says() -> None:
    assert (ROOT / "llms.txt").read_text(encoding="utf-8") == TEXT, "out of date: python -m scripts.llms"


def test_it_has_the_form_that_readers_expect_and_its_links_lead_somewhere() -> None:
    assert re.match(r"# maymust\n\n> \S.*\n\n", TEXT)
    links = re.findall(r"^- \[[^\]]+\]\(([^)]+)\)", TEXT, re.MULTILINE)
    assert len(links) > 30
    assert [link for link in links if not (ROOT / link).is_file()] == []
    assert TEXT.count("\n## Optional\n") == 1


def test_its_code_runs() -> None:
    (block,) = re.findall(r"^```python\n(.*?)^```", TEXT, re.DOTALL | re.MULTILINE)
    exec(compile(block, "llms.txt", "exec"), {"__name__": "llms"})


def test_the_full_text_has_every_page_once_those_of_the_index_first() -> None:
    found = pages()
    assert len(found) == len(set(found)) == len([page for page in DOCS.rglob("*.md") if page.name != "index.md"])
    assert found[0].name == "tutorial.md"
    text = whole()
    for page in found:
        assert text.count(f"<!-- {page.relative_to(ROOT).as_posix()} -->") == 1


def test_a_site_gets_both_with_its_own_links(tmp_path: Path) -> None:
    subprocess.run([sys.executable, "-m", "scripts.llms", str(tmp_path)], cwd=ROOT, check=True)
    assert "(how-to/order-tools.html)" in (tmp_path / "llms.txt").read_text(encoding="utf-8")
    assert (tmp_path / "llms-full.txt").stat().st_size > 100_000

"""The documentation site is built from the pages, and a dead link does not get through."""

import re
import subprocess
import sys
from pathlib import Path

from scripts.api_reference import API, COMPLETE, ELSEWHERE

DOCS = Path(__file__).parent.parent.parent / "docs"


def build(source: Path, into: Path) -> subprocess.CompletedProcess[str]:
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-W",
        "--keep-going",
        "-q",
        "-c",
        str(DOCS),
        "-d",
        str(into / "doctrees"),
        str(source),
        str(into),
    ]
    return subprocess.run(command, capture_output=True, text=True)


def test_the_site_is_built_without_a_warning_and_has_every_page_and_name(tmp_path: Path) -> None:
    done = build(DOCS, tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    for page in DOCS.rglob("*.md"):
        assert (tmp_path / page.relative_to(DOCS)).with_suffix(".html").exists(), page
    api = (tmp_path / "reference" / "api.html").read_text(encoding="utf-8")
    documented = {name.rpartition(".")[2] for name in re.findall(r'<dt class="sig[^"]*" id="([\w.]+)"', api)}
    assert {name for modules in API.values() for names in modules.values() for name in names} - documented == set()


def test_a_dead_link_is_an_error(tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    dead = ["[gone](gone.md)", "[gone](other.md#no-heading)", "[gone](#nowhere)", "![gone](gone.png)"]
    text = "# Pages\n\n## All\n\n- [other](other.md)\n\n[lives](other.md#heading)\n\n" + "\n\n".join(dead) + "\n"
    (source / "index.md").write_text(text, encoding="utf-8")
    (source / "other.md").write_text("# Other\n\n## Heading\n", encoding="utf-8")
    done = build(source, tmp_path / "site")
    assert done.returncode
    for line, target in ((9, "gone.md"), (11, "no-heading"), (13, "nowhere"), (15, "gone.png")):
        assert re.search(rf"index.md:{line}: WARNING: .*{target}", done.stderr), done.stderr
    assert done.stderr.count("WARNING") == len(dead), "the link that lives is none of them"


def test_the_api_reference_names_every_public_name() -> None:
    named = {(path, name) for modules in API.values() for path, names in modules.items() for name in names}
    for path in COMPLETE:
        module = sys.modules.get(path) or __import__(path, fromlist=["__all__"])
        missing = set(module.__all__) - {name for home, name in named if home == path} - ELSEWHERE.get(path, set())
        assert missing == set(), f"give them a place in scripts/api_reference.py, for {path}"

"""The page on extras names every extra with its libraries, as pyproject.toml has them."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
PAGE = (ROOT / "docs" / "reference" / "extras.md").read_text(encoding="utf-8")
ROWS = {name: libraries.strip() for name, libraries in re.findall(r"^\| `([\w-]+)` \| [^|]+ \|([^|]*)\|$", PAGE, re.MULTILINE)}


def name_of(requirement: str) -> str:
    found = re.match(r"[\w.-]+", requirement)
    assert found is not None
    return found[0]


def test_every_extra_is_on_the_page_with_its_libraries() -> None:
    said = {name: [library for library in libraries.split(", ") if library] for name, libraries in ROWS.items() if name != "dev"}
    extras = PROJECT["optional-dependencies"]
    assert said == {name: [name_of(one) for one in wanted] for name, wanted in extras.items() if name != "dev"}
    assert "dev" in ROWS


def test_what_is_needed_without_any_extra_is_counted_right() -> None:
    assert len(PROJECT["dependencies"]) == 3
    assert "three small libraries" in PAGE

"""What SECURITY.md rests on is there."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent
TEXT = (ROOT / "SECURITY.md").read_text(encoding="utf-8")


def test_the_tests_and_pages_it_names_exist() -> None:
    named = set(re.findall(r"`((?:tests|docs|src|examples)/[\w./-]+)`", TEXT))
    assert len(named) > 10
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_it_says_of_each_party_what_it_can_do() -> None:
    titles = re.findall(r"^## (.+)$", TEXT, re.MULTILINE)
    assert {"Report a problem", "A hostile model", "Hostile output of tools", "The author of a policy"} <= set(titles)

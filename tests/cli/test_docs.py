"""The pages about the command line: files and commands in them run, and the parts made from the code are up to date."""

import re
from pathlib import Path

import pytest

from scripts.reference_pages import PAGES, filled, parts
from tests.cli.commands import process

DOCS = PAGES.parent
PAGES_WITH_COMMANDS = ["how-to/verify-in-ci.md", "how-to/test-a-policy.md", "reference/policy-file.md"]
FENCE = re.compile(r"(?m)^```(?P<info>[^\n`]*)\n(?P<body>.*?)^```[ ]*$", re.DOTALL)


@pytest.mark.parametrize("page", parts())
def test_a_reference_page_says_what_the_code_says(page: str) -> None:
    text = (PAGES / page).read_text(encoding="utf-8")
    assert text == filled(page, text), "run: python -m scripts.reference_pages"


@pytest.mark.parametrize("page", PAGES_WITH_COMMANDS)
def test_the_commands_of_a_page_print_what_it_says(page: str, tmp_path: Path) -> None:
    text = (DOCS / page).read_text(encoding="utf-8")
    ran = 0
    for match in FENCE.finditer(text):
        language, _, name = match["info"].strip().partition(" ")
        if language == "yaml" and name:
            (tmp_path / name).write_text(match["body"], encoding="utf-8")
        elif language == "console":
            line, _, shown = match["body"].partition("\n")
            words = line.removeprefix("$ maymust ").partition(" | head -n ")
            done = process(tmp_path, *words[0].split())
            printed = done.out + done.err
            kept = "".join(printed.splitlines(keepends=True)[: int(words[2])]) if words[2] else printed
            assert kept == shown, f"{page}: {line}"
            ran += 1
    assert ran or page.startswith("reference")


def test_every_policy_file_of_a_page_can_be_read(tmp_path: Path) -> None:
    for page in PAGES_WITH_COMMANDS:
        for match in FENCE.finditer((DOCS / page).read_text(encoding="utf-8")):
            name = match["info"].strip().removeprefix("yaml").strip()
            if name.endswith(".policy.yaml"):
                (tmp_path / name).write_text(match["body"], encoding="utf-8")
                assert process(tmp_path, "verify", name).code in (0, 1)

"""The files and commands of the README do what it says, and what it names exists. Its Python runs in tests/docs, as that of every page."""

import re
from pathlib import Path

from tests.cli.commands import process

ROOT = Path(__file__).resolve().parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(?P<kind>\w+) ?(?P<name>[\w.-]*)\n(?P<body>.*?)^```$", re.DOTALL | re.MULTILINE)


def test_the_commands_of_the_readme_print_what_it_says(tmp_path: Path) -> None:
    ran = []
    for block in FENCE.finditer(README):
        if block["name"]:
            (tmp_path / block["name"]).write_text(block["body"], encoding="utf-8")
        elif block["kind"] == "console":
            line, _, shown = block["body"].partition("\n")
            done = process(tmp_path, *line.removeprefix("$ maymust ").split())
            start, cut, _ = shown.partition("...\n")
            printed = done.out + done.err
            assert printed.startswith(start) if cut else printed == shown, line
            ran.append(line.split()[2])
    assert ran == ["check", "verify"]


def test_the_policy_of_the_readme_has_eight_lines() -> None:
    policy = next(block["body"] for block in FENCE.finditer(README) if block["kind"] == "yaml")
    assert len(policy.splitlines()) == 8


def test_every_file_and_target_the_readme_names_exists() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for target in set(re.findall(r"`?make ([a-z-]+)", README)):
        assert re.search(rf"^{target}:", makefile, flags=re.MULTILINE), target
    paths = re.findall(r"(?:tests|docs|examples)/[\w./-]*\w", README)
    assert [path for path in paths if not (ROOT / path).exists()] == []
    for module in re.findall(r"python -m (benchmarks\.\w+)", README):
        assert (ROOT / f"{module.replace('.', '/')}.py").exists(), module


def test_the_links_of_the_readme_go_to_headings_that_exist() -> None:
    for page, heading in re.findall(r"\]\(([\w./-]+\.md)#([\w-]+)\)", README):
        titles = re.findall(r"^#+ (.*)$", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE)
        assert heading in {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in titles}, f"{page}#{heading}"


def test_the_numbers_of_the_readme_are_those_of_the_pages() -> None:
    models, evaluation = ((ROOT / "docs" / page).read_text(encoding="utf-8") for page in ("models.md", "evaluation.md"))
    stable, filtered = (
        re.search(rf"^\| {way}.*\| (\d+)% \|$", models, flags=re.MULTILINE) for way in ("`stable`, `allowed_tools`", "a per-step filter")
    )
    assert stable is not None
    assert filtered is not None
    assert f"{stable[1]} % of its bytes are read anew, {filtered[1]} % with a filter" in README
    rules = re.search(r"^\| ask unless it was named \| (\d+) of \1 .*?\| (\d+) of (\d+) \|", evaluation, flags=re.MULTILINE)
    assert rules is not None
    assert f"of {rules[3]} recorded attacks {rules[2]} are refused or put to a person, and all {rules[1]} tasks" in README
    rows = re.findall(
        r"^\| ([\w* -]+) \| \d+ \| (\d+) \| \d+ \| \d+ \| \d \|$", (ROOT / "docs" / "benchmarks.md").read_text("utf-8"), re.MULTILINE
    )
    batches = {name.strip("*"): int(runs) for name, runs in rows}
    assert batches.pop("maymust") == 0
    around = sorted(runs for runs in batches.values() if runs)
    assert len(around) == 5
    assert f"in {around[0]} to {around[-1]} of 1,000 runs, in five frameworks" in README

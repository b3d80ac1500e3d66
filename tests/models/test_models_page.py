"""docs/models.md says what the table says, and what a prompt costs today."""

from __future__ import annotations

from benchmarks.prompt_bytes import rows

from scripts.models_page import PAGE, written


def test_the_generated_parts_of_the_page_are_up_to_date() -> None:
    text = PAGE.read_text(encoding="utf-8")
    assert written(text) == text, "run `python -m scripts.models_page`"


def test_a_prompt_that_stays_put_is_the_cheapest_by_far() -> None:
    stable, changes, *others = rows()
    for row in others:
        assert row.anew > 2 * max(stable.anew, changes.anew), row

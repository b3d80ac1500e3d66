"""The thinking tool."""

from maymust import ThinkTool


def test_a_thought_is_taken_and_answered_shortly() -> None:
    think = ThinkTool()
    assert (think.name, think.effect, list(think.parameters["properties"])) == ("think", "read", ["thought"])
    assert "thought" in think.invoke(think.parse({"thought": "first look, then leap"}).values, None).lower()


def test_it_may_go_by_another_name() -> None:
    assert ThinkTool(name="ponder").name == "ponder"

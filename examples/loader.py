"""A thousand tools, and a model that is shown only those it asked for.

`find_tools` searches a catalogue and adds what fits to the run; from the next turn on the model can call it. Rules about tools that
are not loaded yet hold from their first turn, because the catalogue is given as `loadable`.

Run it: python -m examples.loader
"""

from collections.abc import Iterable

from maymust import Agent, ConditionalRequirement, FunctionInvocationContext, RunResult, Tool, tool
from maymust.models import ChatModel, ScriptedModel, call

UNITS = ("stock", "price", "supplier", "discount", "returns")
PARTS = tuple(f"part_{number:03}" for number in range(200))


def catalogue() -> list[Tool]:
    """The tools of a warehouse: five for each of its 200 parts."""

    def make(unit: str, part: str) -> Tool:
        async def look_up() -> str:
            return f"{unit} of {part}: {sum(map(ord, unit + part)) % 100}"

        async def change(value: int) -> str:
            return f"{unit} of {part} is now {value}"

        body = change if unit == "discount" else look_up
        return tool(name=f"{unit}_{part}", description=f"{'Change' if unit == 'discount' else 'Look up'} the {unit} of {part}.")(body)

    return [make(unit, part) for part in PARTS for unit in UNITS]


def search(tools: Iterable[Tool], words: str) -> list[Tool]:
    """The tools whose description has all of the words; at most eight."""
    wanted = words.lower().split()
    return [one for one in tools if all(word in one.description.lower() for word in wanted)][:8]


def make_agent(model: ChatModel) -> Agent:
    """An agent that starts with one tool and can get at a thousand."""
    tools = catalogue()

    @tool
    def find_tools(words: str, context: FunctionInvocationContext) -> str:
        """Find tools by words of what they do. They can be called from the next step on."""
        found = search(tools, words)
        context.add_tools(found)
        return "\n".join(f"{one.name}: {one.description}" for one in found) or "Nothing fits; try other words."

    # A discount may be changed only after somebody has looked at the price.
    rules = [ConditionalRequirement(f"discount_{part}", only_after=[f"price_{part}"]) for part in PARTS]
    return Agent(model, instructions="You look after a warehouse.", tools=[find_tools], loadable=tools, requirements=rules)


SCRIPT = [
    call("find_tools", words="part_042"),
    call("discount_part_042", value=10),
    call("price_part_042"),
    call("discount_part_042", value=10),
    call("final_answer", answer="The discount of part_042 is 10 now."),
]


def main() -> RunResult:
    """Run the script and tell what happened."""
    result = make_agent(ScriptedModel(SCRIPT)).run_sync("Give part_042 a discount of 10.")
    for turn in result.turns:
        print(f"turn {turn.number}: {len(turn.permit.tools)} tools, may call {', '.join(turn.permit.allowed)}")
    for step in result.steps:
        print(f"{step.outcome:8} {step.tool}: {(step.text or '').splitlines()[0]}")
    return result


if __name__ == "__main__":
    main()

"""What tools cost: `python -m benchmarks.tools`.

The first request of an agent with 1,000 function tools needs 1,000 schemas; that is the number to watch (at most 400 ms).
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

TOOLS = 1_000


def main() -> None:
    """Print one line a measurement."""
    print(f"import maymust.tools.function_tool   {_import_time():8.1f} ms")
    first, second = min((_register() for _ in range(5)), key=sum)
    print(f"register {TOOLS} function tools       {first:8.1f} ms")
    print(f"their schemas, at first use          {second:8.1f} ms   (together at most 400)")
    for name, microseconds in _per_call().items():
        print(f"{name:<36} {microseconds:8.1f} µs")


def _import_time() -> float:
    code = "import time; s = time.perf_counter(); import maymust.tools.function_tool; print(time.perf_counter() - s)"
    runs = [float(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout) for _ in range(5)]
    return min(runs) * 1e3


def function_numbered(number: int) -> Callable[..., Any]:
    """A plain function with five parameters and a docstring that tells of each."""

    def search(
        query: str,
        limit: int = 5,
        tags: list[str] | None = None,
        mode: Literal["exact", "fuzzy"] = "exact",
        weight: Annotated[float, "How much this counts."] = 1.0,
    ) -> str:
        """Search the shop.

        Args:
            query: What to look for.
            limit: How many at most.
            tags: All of these.
            mode: How exactly.
            weight: How much it counts.
        """
        return query

    search.__name__ = f"search_{number}"
    return search


def _register() -> tuple[float, float]:
    from pydantic import TypeAdapter

    from maymust.tools.function_tool import Tool, tool
    from maymust.tools.typed import forget_adapters

    # Loaded before the clock starts, as in any program that has a model of its own.
    TypeAdapter(int)
    forget_adapters()
    functions = [function_numbered(number) for number in range(TOOLS)]
    start = time.perf_counter()
    tools: list[Tool] = [tool(function) for function in functions]
    registered = time.perf_counter()
    for made in tools:
        assert made.parameters
    done = time.perf_counter()
    return (registered - start) * 1e3, (done - registered) * 1e3


def _per_call() -> dict[str, float]:
    from maymust.tools.function_tool import Tool, tool
    from maymust.tools.json_schema import fragment_check
    from maymust.tools.output import render_output

    made = tool(function_numbered(0))
    arguments = {"query": "tea", "limit": "7", "tags": ["a", "b"]}
    schema_tool = Tool.from_schema("search", "", made.parameters, function_numbered(0))
    fragment = {"type": "integer", "maximum": 100}
    rows = [{"id": number, "name": "tea", "price": 3.5} for number in range(10)]
    return {
        "parse arguments (types)": _each(lambda: made.parse(arguments)),
        "parse arguments (JSON schema)": _each(lambda: schema_tool.parse({"query": "tea", "limit": 7})),
        "check a rule's fragment": _each(lambda: fragment_check(fragment)(50)),
        "render an output of ten rows": _each(lambda: render_output(rows)),
    }


def _each(work: Callable[[], Any], times: int = 5_000) -> float:
    work()
    start = time.perf_counter()
    for _ in range(times):
        work()
    return (time.perf_counter() - start) / times * 1e6


if __name__ == "__main__":
    main()

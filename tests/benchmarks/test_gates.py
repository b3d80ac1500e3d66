"""What must not become dearer: counted as operations, calls, modules and distributions, never as seconds."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from benchmarks._footprint import closure
from benchmarks.tools import function_numbered

from maymust import Agent, tool
from maymust.core.history import History
from maymust.models import ScriptedModel, call
from maymust.tools.function_tool import Tool
from maymust.tools.parameters import read_parameters
from tests.core.test_cost import operations, policy_of, walk

ROOT = Path(__file__).parent.parent.parent


def test_a_permit_after_100_000_steps_takes_the_operations_of_one_after_10() -> None:
    policy = policy_of(10, 10)
    long = walk(History(), 100_000, 10)[-1]
    # Of the same shape: the last tool, and whether it failed, decide which rules speak.
    short = walk(walk(History(), 40, 10)[-1], 10, 10)[-1]
    for history in (short, long):
        policy.permit(history)
    first, second = operations([lambda: policy.permit(short), lambda: policy.permit(long)])
    assert 0 < first == second


@pytest.mark.parametrize(("tools", "requirements", "allowance"), [(10, 10, 450), (1000, 100, 1350)])
def test_a_permit_stays_within_its_allowance_of_operations(tools: int, requirements: int, allowance: int) -> None:
    policy, versions = policy_of(tools, requirements), walk(History(), 60, 10)
    for history in versions[:40]:
        policy.permit(history)
    counts = operations([lambda history=history: policy.permit(history) for history in versions[40:]])  # type: ignore[misc]
    assert max(counts) <= allowance


def calls_of(code: object, work: Callable[[], Any]) -> int:
    """How often the function with this code is called."""
    seen: Counter[object] = Counter()

    def watch(frame: FrameType, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is code:
            seen[code] += 1

    before = sys.getprofile()
    sys.setprofile(watch)
    try:
        work()
    finally:
        sys.setprofile(before)
    return seen[code]


def test_a_thousand_tools_get_their_schemas_at_the_first_request_and_once() -> None:
    made: list[Tool] = []

    def register() -> None:
        made.extend(tool(function_numbered(number)) for number in range(1000))
        Agent(ScriptedModel([]), tools=made)

    assert calls_of(read_parameters.__code__, register) <= 1  # that of the final answer

    def two_requests() -> None:
        for _ in range(2):
            Agent(ScriptedModel([call("final_answer", answer="done")]), tools=made).run_sync("go")

    assert calls_of(read_parameters.__code__, two_requests) <= 1000 + 4


def loaded_by(statement: str) -> list[str]:
    """The modules that a statement loads in a fresh interpreter."""
    code = f"import sys; sys.path[:0] = {sys.path!r}; before = set(sys.modules); {statement}; print(*sorted(set(sys.modules) - before))"
    done = subprocess.run([sys.executable, "-I", "-S", "-c", code], capture_output=True, text=True, check=True)
    return done.stdout.split()


def foreign(modules: list[str]) -> list[str]:
    return [name for name in modules if name.split(".")[0] not in sys.stdlib_module_names | {"maymust"}]


def test_the_package_alone_loads_no_third_party_module_and_few_of_its_own() -> None:
    modules = loaded_by("import maymust")
    assert foreign(modules) == []
    assert [name for name in modules if name.startswith("maymust.")] == []
    assert len(modules) <= 40


def test_the_agent_loads_neither_pydantic_nor_the_prover() -> None:
    modules = loaded_by("from maymust import Agent")
    assert foreign(modules) in (["typing_extensions"], [])
    assert not any(name.startswith("maymust.verify.") for name in modules)
    assert len(modules) <= 290


def test_the_core_install_is_small() -> None:
    needs = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]["dependencies"]
    names = closure(needs)
    assert "pydantic" in names
    assert len(names) + 1 <= 9, names

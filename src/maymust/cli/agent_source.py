"""Where `maymust run` gets its agent from."""

from __future__ import annotations

import inspect
from typing import Any

from maymust.agent.agent import Agent
from maymust.cli.console import UnusableError
from maymust.cli.target import import_module, import_object
from maymust.core.tool_spec import did_you_mean
from maymust.policyfile.load import PolicyFile, read_policy_file
from maymust.policyfile.problem import PolicyFileError, Problem
from maymust.tools.function_tool import Tool, as_tool


def agent_from_reference(text: str) -> Agent[Any]:
    """The agent that `module:name` is, or gives when called. Raises UnusableError."""
    found, _ = import_object(text)
    if inspect.isfunction(found):
        try:
            found = found()
        except Exception as error:
            raise UnusableError(f"{text} is called for its agent, and raised {type(error).__name__}: {error}") from error
    if not isinstance(found, Agent):
        raise UnusableError(f"{text} is {type(found).__name__}: give an Agent, or a function without arguments that gives one")
    return found


def agent_from_policy(path: str, module: str, model: str, instructions: str) -> Agent[Any]:
    """An agent under a policy file, with the tools of a module. Raises PolicyFileError where a tool is missing."""
    file = read_policy_file(path)
    tools = _tools(file, module)
    return Agent(model, instructions=instructions, tools=tools, policy=file.policy)


def _tools(file: PolicyFile, module: str) -> list[Tool]:
    """The tools the policy names, in its order."""
    found = _tools_of(import_module(module))
    problems = []
    for name, position in file.tool_positions().items():
        if name not in found:
            near = did_you_mean(name, found).removeprefix("; ") or f"it has {', '.join(found) or 'no tools'}"
            problems.append(Problem("MF010", f"{module} has no tool called {name}", position, near))
    if problems:
        raise PolicyFileError(file.path, problems, file.source.text)
    return [as_tool(found[name]) for name in file.policy.tools]


def _tools_of(module: Any) -> dict[str, Any]:
    """Everything in a module that is a tool, by its name: Tool objects, Tool classes, lists of them, and the module's own functions."""
    found: dict[str, Any] = {}
    plain: dict[str, Any] = {}
    for name, value in vars(module).items():
        if name.startswith("_"):
            continue
        for thing in value if isinstance(value, list | tuple) else (value,):
            if isinstance(thing, Tool) or (inspect.isclass(thing) and issubclass(thing, Tool) and thing is not Tool):
                made = as_tool(thing)
                found.setdefault(made.name, made)
            elif inspect.isfunction(thing) and thing.__module__ == module.__name__:
                plain.setdefault(thing.__name__, thing)
    return {**plain, **found}

"""What a command works on: a policy file, or something in a Python module."""

from __future__ import annotations

import contextlib
import importlib
import inspect
import os
import sys
from dataclasses import dataclass
from typing import Any

from maymust.cli.console import UnusableError
from maymust.core.policy import Policy
from maymust.core.tool_spec import did_you_mean
from maymust.policyfile.load import PolicyFile, read_policy_file
from maymust.reports.diagnostic import Locator


@dataclass(frozen=True, slots=True)
class Target:
    """A policy and where it came from. `name` is as it was given."""

    name: str
    policy: Policy
    file: PolicyFile | None = None
    module: str | None = None

    @property
    def locator(self) -> Locator:
        """Where its rules stand."""
        return Locator(self.file, self.module)


def load_target(text: str) -> Target:
    """Read a policy file (`-` is standard input), or get `module:name`: a Policy, an Agent, or a function that gives one.

    Raises PolicyFileError for a bad file, and UnusableError for what is no policy.
    """
    if text == "-" or not is_reference(text):
        file = read_policy_file(text)
        return Target(file.path, file.policy, file)
    found, module = import_object(text)
    if inspect.isfunction(found):
        try:
            found = found()
        except Exception as error:
            raise UnusableError(f"{text} is called for its policy, and raised {type(error).__name__}: {error}") from error
    # An Agent has a policy; loading the class to ask would load everything that runs agents.
    policy = found if isinstance(found, Policy) else getattr(found, "policy", None)
    if not isinstance(policy, Policy):
        raise UnusableError(f"{text} is {type(found).__name__}: give a Policy, an Agent, or a function without arguments that gives one")
    return Target(text, policy, None, module)


def is_reference(text: str) -> bool:
    """True for `module:name`, false for what reads like a path. Raises UnusableError for the path of Python code."""
    module, colon, name = text.partition(":")
    if module.endswith(".py"):
        dotted = ".".join(part for part in module.removesuffix(".py").split("/") if part not in ("", "."))
        raise UnusableError(f"{text}: what is in Python is named by its module, {dotted}:{name or 'NAME'}")
    parts = (*module.split("."), *name.split("."))
    return bool(colon) and all(part.isidentifier() for part in parts) and not os.path.exists(text)


def import_object(text: str) -> tuple[Any, str | None]:
    """What `module:name` stands for, and the path of the module. Raises UnusableError."""
    module_name, _, name = text.partition(":")
    module = import_module(module_name)
    found: Any = module
    for part in name.split("."):
        if not hasattr(found, part):
            public = [one for one in vars(found) if not one.startswith("_")]
            raise UnusableError(f"there is no {part} in {module_name}{did_you_mean(part, public)}")
        found = getattr(found, part)
    path = getattr(module, "__file__", None)
    return found, None if path is None else shown_path(path)


def import_module(name: str) -> Any:
    """Import a module, also from the current directory. What it prints goes to stderr. Raises UnusableError."""
    here = os.getcwd()
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            return importlib.import_module(name)
    except ModuleNotFoundError as error:
        if error.name is not None and (name == error.name or name.startswith(f"{error.name}.")):
            raise UnusableError(f"there is no module {error.name} here or on the path; the directory is {here}") from error
        raise UnusableError(f"importing {name} failed: {error}{_where(error)}") from error
    except (Exception, SystemExit) as error:
        raise UnusableError(f"importing {name} failed: {type(error).__name__}: {error}{_where(error)}") from error


def shown_path(path: str) -> str:
    """A path relative to the current directory where that is shorter to read."""
    relative = os.path.relpath(path)
    return path if relative.startswith("..") else relative


def _where(error: BaseException) -> str:
    """The innermost line of the user's own code; a syntax error says itself where it is."""
    if isinstance(error, SyntaxError):
        return ""
    trace = error.__traceback__
    place = ""
    while trace is not None:
        path = trace.tb_frame.f_code.co_filename
        if not path.startswith("<frozen") and os.path.realpath(path) != os.path.realpath(__file__):
            place = f" ({shown_path(path)}:{trace.tb_lineno})"
        trace = trace.tb_next
    return place

"""Every error of the library, and whose fault it is.

    MaymustError
    ├── PolicyError (also ValueError)   the author of the policy or of its setup: fix the code before it runs
    │   └── UnsupportedRuleError        the rule is fine, but the framework it is to be enforced in cannot enforce it
    ├── PermitError                     the rules, taken together, leave no lawful next step in this history
    │   ├── ForceUnmetError             one requirement forces its tool at a step at which it also forbids it
    │   ├── ConflictError               one requirement forces a tool that another one closes
    │   └── DeadEndError                nothing may be called, and the run may not end
    ├── RunError                        the run, or something it called, went wrong
    │   └── NoAnswerError               a run without an answer was asked for one
    └── ToolError                       raised by tools and middleware: a failed step, with a text for the model

An error that ends a run carries the run's state in `.state`; it is None for errors of construction.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "ConflictError",
    "DeadEndError",
    "ForceUnmetError",
    "MaymustError",
    "NoAnswerError",
    "PermitError",
    "PolicyError",
    "RunError",
    "ToolError",
    "UnsupportedRuleError",
]


class MaymustError(Exception):
    """Base of every error that this library raises on purpose.

    state   the state of the run that the error ended (a `RunState`), None outside a run
    """

    state: Any = None


class PolicyError(MaymustError, ValueError):
    """A requirement, a policy or a setting is wrong. The text names it and says what to write instead."""


class UnsupportedRuleError(PolicyError):
    """A framework cannot enforce a rule of the policy. The text names the rule, and says what to do instead.

    framework   the framework
    features    what it cannot enforce, as in the table of docs/reference/adapters.md
    """

    def __init__(self, message: str = "", *, framework: str = "", features: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.framework = framework
        self.features = features


class PermitError(MaymustError):
    """The rules of a policy leave no lawful next step in the given history."""


class DeadEndError(PermitError):
    """Nothing may be called, and the run may not end.

    permit         the permit as far as it was computed: its `allowed` is empty
    requirements   names of every requirement that closes a tool or prevents the end
    """

    def __init__(self, message: str = "", *, permit: Any = None, requirements: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.permit = permit
        self.requirements = requirements


class ConflictError(PermitError):
    """A tool is forced by some requirements and closed by others.

    tool      the tool
    forcing   names of the requirements that force it
    closing   names of the requirements that deny it, hide it or leave its arguments no value
    """

    def __init__(self, message: str = "", *, tool: str = "", forcing: tuple[str, ...] = (), closing: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.tool = tool
        self.forcing = forcing
        self.closing = closing


class ForceUnmetError(PermitError):
    """A requirement forces its tool at this step (`force_at_step`), and one of its own checks forbids it.

    tool          the tool
    step          the step, counted from 1
    check         the parameter of the failing check, e.g. `only_after`
    requirement   name of the requirement
    rule          the denying rule, which counts where obligations are relaxed
    """

    def __init__(
        self, message: str = "", *, tool: str = "", step: int = 0, check: str = "", requirement: str = "", rule: Any = None
    ) -> None:
        super().__init__(message)
        self.tool = tool
        self.step = step
        self.check = check
        self.requirement = requirement
        self.rule = rule


class RunError(MaymustError):
    """A run could not go on. The cause, if there is one, is in `__cause__`."""


class NoAnswerError(RunError):
    """The run has no answer, or none of the wanted type."""


class ToolError(MaymustError):
    """Raise it in a tool or in middleware: the step is failed, and the text is shown to the model as it is."""


def missing(needs: str, extra: str, fault: ImportError) -> ImportError:
    """The error to raise where what an extra brings is not installed, or in a version that is not known: it has the line to type.

    It is of the kind of `fault`. `needs` says what needs what, as in `this adapter needs LangChain`.
    """
    return type(fault)(f"{needs}: pip install 'maymust[{extra}]' ({fault})", name=fault.name, path=fault.path)


def text_of(error: BaseException) -> str:
    """The text of an exception, whatever its class makes of being asked for one."""
    try:
        return str(error)
    except Exception:
        return "(an exception without a readable text)"

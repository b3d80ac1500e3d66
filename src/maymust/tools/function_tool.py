"""`Tool` and `@tool`: what a model may call, made from a Python function."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Literal, overload

from maymust.core.tool_spec import RESERVED_NAMES
from maymust.errors import PolicyError
from maymust.tools.arguments import Arguments, FunctionArguments, Parsed
from maymust.tools.context import FunctionInvocationContext
from maymust.tools.docstring import read_docstring
from maymust.tools.parameters import check_signature, context_parameter, name_of, read_parameters, resolve_early, same_function, unwrap
from maymust.tools.schema_arguments import SchemaArguments

ApprovalMode = Literal["never_require", "always_require"]
Effect = Literal["read", "idempotent", "once"]

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SETTINGS = ("name", "description", "approval_mode", "timeout", "repeatable", "effect", "untrusted", "resolve")
_FROZEN = frozenset({*_SETTINGS, "function", "is_async", "parameters", "secrets"})


class Tool:
    """Something a model may call. Immutable; one object may serve any number of agents and runs.

    name           what the model calls it: letters, digits, `_` and `-`, at most 64
    description    what the model reads about it
    parameters     JSON schema of its arguments, built at first use
    approval_mode  "always_require" asks a person before every call
    timeout        seconds after which a call has failed; None waits for ever
    repeatable     True exempts it from the loop guard
    effect         what a second call of the same arguments does: "read" changes nothing, "idempotent" changes nothing more,
                   "once" (the default) may do harm, so an interrupted call is not repeated
    untrusted      True says that its output may carry a stranger's instructions
    resolve        for an effect of "once": a function of the call's context, sync or async, that finds out what became of a call whose
                   process ended while it ran: `Happened(output)`, False (it did not), or None (not known: a person is asked)
    function       the function it was made from, None for a subclass
    is_async       whether the body is a coroutine function; other bodies run in a thread

    Make one with `@tool`, or subclass: set `name` and `description`, define `run(self, ...)`.
    Raises PolicyError for names a provider would refuse, reserved names, and functions whose arguments cannot be named.
    """

    name: str = ""
    description: str = ""
    approval_mode: ApprovalMode = "never_require"
    timeout: float | None = None
    repeatable: bool = False
    effect: Effect = "once"
    untrusted: bool = False
    resolve: Callable[..., Any] | None = None
    function: Callable[..., Any] | None = None
    is_async: bool = False

    _may_be_reserved: ClassVar[bool] = False
    _is_bare = False
    _passes_dict = False
    _local_types: Mapping[str, Any] = {}
    _arguments: Arguments
    _context_name: str | None = None

    def __init__(
        self,
        *,
        name: str | None = None,
        description: str | None = None,
        approval_mode: ApprovalMode | None = None,
        timeout: float | None = None,
        repeatable: bool | None = None,
        effect: Effect | None = None,
        untrusted: bool | None = None,
        resolve: Callable[..., Any] | None = None,
    ) -> None:
        if type(self).run is Tool.run:
            raise PolicyError("A Tool needs a body. Decorate a function with @tool, or subclass Tool and define run(self, ...).")
        given = (name, description, approval_mode, timeout, repeatable, effect, untrusted, resolve)
        self._settle(None, dict(zip(_SETTINGS, given, strict=True)))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        # On the class, so that a subclass whose __init__ leaves out super().__init__() has them as well.
        cls.is_async = inspect.iscoroutinefunction(cls.run)
        if not cls.description:
            cls.description = read_docstring(cls.__dict__.get("__doc__") or cls.run.__doc__).text

    def _settle(self, function: Callable[..., Any] | None, settings: Mapping[str, Any]) -> None:
        """Set everything once; None leaves the class's own value."""
        fields = self.__dict__
        fields.update({key: value for key, value in settings.items() if value is not None})
        body = function if function is not None else self.run
        if function is not None:
            fields["function"] = function
            inner = unwrap(function)
            fields["is_async"] = inspect.iscoroutinefunction(inner)
            fields["_docstring"] = read_docstring(getattr(inner, "__doc__", None))
            fields.setdefault("description", fields["_docstring"].text)
        self._check()
        if "_arguments" not in fields:
            fields["_signature"] = check_signature(body, self.name)

    def _check(self) -> None:
        """Raise PolicyError for settings that no run could use."""
        # Callers without a type checker pass anything.
        me: Any = self
        name = me.name
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise PolicyError(
                f"{name!r} is no name for a tool: model providers take 1 to 64 letters, digits, '_' and '-'. Give another one with name=..."
            )
        if name in RESERVED_NAMES and not self._may_be_reserved:
            raise PolicyError(f"The tool name {name!r} is reserved. Give another one with name=...")
        if not isinstance(me.description, str):
            raise PolicyError(f"Tool {name!r}: description must be text, not {me.description!r}.")
        if me.approval_mode not in ("never_require", "always_require"):
            raise PolicyError(f"Tool {name!r}: approval_mode is 'never_require' or 'always_require', not {me.approval_mode!r}.")
        if me.effect not in ("read", "idempotent", "once"):
            raise PolicyError(f"Tool {name!r}: effect is 'read', 'idempotent' or 'once', not {me.effect!r}.")
        if me.resolve is not None and not callable(me.resolve):
            raise PolicyError(f"Tool {name!r}: resolve is a function of the call's context, not {me.resolve!r}.")
        limit = me.timeout
        if limit is not None and (isinstance(limit, bool) or not isinstance(limit, int | float) or not limit > 0):
            raise PolicyError(f"Tool {name!r}: timeout is a number of seconds above 0, not {limit!r}.")

    @classmethod
    def from_function(
        cls,
        function: Callable[..., Any] | Any,
        *,
        name: str | None = None,
        description: str | None = None,
        approval_mode: ApprovalMode | None = None,
        timeout: float | None = None,
        repeatable: bool | None = None,
        effect: Effect | None = None,
        untrusted: bool | None = None,
        resolve: Callable[..., Any] | None = None,
    ) -> Tool:
        """The tool of a function, bound method, partial or callable object; what `@tool` does."""
        if not callable(function) or inspect.isclass(function):
            raise TypeError(f"A tool is made from a function, not from {function!r}.")
        if isinstance(function, Tool):
            raise TypeError(f"{function!r} is a tool already.")
        made = object.__new__(Tool)
        settings = (name or name_of(function), description, approval_mode, timeout, repeatable, effect, untrusted, resolve)
        made._settle(function, dict(zip(_SETTINGS, settings, strict=True)))
        return made

    @classmethod
    def from_schema(
        cls,
        name: str,
        description: str,
        parameters: Mapping[str, Any],
        function: Callable[..., Any] | Any,
        *,
        pass_as: Literal["kwargs", "dict"] = "kwargs",
        validate: bool = True,
        approval_mode: ApprovalMode | None = None,
        timeout: float | None = None,
        repeatable: bool | None = None,
        effect: Effect | None = None,
        untrusted: bool | None = None,
        resolve: Callable[..., Any] | None = None,
    ) -> Tool:
        """A tool whose arguments are described by a JSON schema of an object instead of by the function's types.

        `function` is called with the arguments by name, or with one dict (`pass_as="dict"`); a parameter annotated
        `FunctionInvocationContext` gets the context. `validate=False` leaves the check of the arguments to it.
        Raises PolicyError for a schema that is none or that points elsewhere.
        """
        if pass_as not in ("kwargs", "dict"):
            raise PolicyError(f"Tool {name!r}: pass_as is 'kwargs' or 'dict', not {pass_as!r}.")
        if not callable(function) or isinstance(function, Tool):
            raise TypeError(f"A tool's body is a function, not {function!r}.")
        made = object.__new__(Tool)
        made.__dict__["_arguments"] = SchemaArguments(parameters, name, validate=validate)
        made.__dict__["_passes_dict"] = pass_as == "dict"
        settings = (name, description, approval_mode, timeout, repeatable, effect, untrusted, resolve)
        made._settle(function, dict(zip(_SETTINGS, settings, strict=True)))
        made.__dict__["_context_name"] = context_parameter(function)
        return made

    def run(self, *args: Any, **kwargs: Any) -> Any:
        """The body of a subclass."""
        raise NotImplementedError

    @property
    def parameters(self) -> dict[str, Any]:
        """JSON schema of the arguments, an object. Built at first use; do not change it."""
        return self._built().schema

    @property
    def secrets(self) -> frozenset[str]:
        """Names of the parameters that take secrets (`SecretStr`): traces and stores must mask what the model wrote there."""
        return self._built().secrets

    def parse(self, arguments: Mapping[str, Any]) -> Parsed:
        """Validate what the model wrote. Raises ArgumentsInvalid, whose text is for the model."""
        return self._built().parse(arguments)

    def invoke(self, values: Mapping[str, Any], context: FunctionInvocationContext | None, /) -> Any:
        """Call the body with validated values; gives what it returns, an awaitable when it is async."""
        self._built()
        body = self.function if self.function is not None else self.run
        extra = {} if self._context_name is None else {self._context_name: context}
        return body(dict(values), **extra) if self._passes_dict else body(**values, **extra)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the plain function, without validation."""
        return (self.function if self.function is not None else self.run)(*args, **kwargs)

    def same_as(self, other: Tool) -> bool:
        """Whether both are one tool: the same object, or made from the same function or bound method.

        Two tools made of one function under names of their own are two tools.
        """
        if self is other:
            return True
        if self.function is None or other.function is None or not same_function(self.function, other.function):
            return False
        return self.name == other.name or self._is_bare or other._is_bare

    def _built(self) -> Arguments:
        found = self.__dict__.get("_arguments")
        if found is not None:
            return found  # type: ignore[no-any-return]
        body = self.function if self.function is not None else self.run
        # A subclass whose __init__ leaves out super().__init__() has neither.
        signature = self.__dict__.get("_signature") or check_signature(body, self.name)
        docstring = self.__dict__.get("_docstring") or read_docstring(getattr(unwrap(body), "__doc__", None))
        parameters = read_parameters(body, self.name, signature, docstring.parameters, self._local_types)
        self.__dict__["_context_name"] = parameters.context
        # Threads may build it at once; all get the first one.
        return self.__dict__.setdefault("_arguments", FunctionArguments(parameters, self.name))  # type: ignore[no-any-return]

    def __setattr__(self, key: str, value: Any) -> None:
        if key in _FROZEN:
            raise AttributeError(f"A tool is immutable: {key!r} of {self!r} cannot be set. Give it to the constructor.")
        super().__setattr__(key, value)

    def __delattr__(self, key: str) -> None:
        if key in _FROZEN:
            raise AttributeError(f"A tool is immutable: {key!r} of {self!r} cannot be deleted.")
        super().__delattr__(key)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.name}>"


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    approval_mode: ApprovalMode | None = None,
    timeout: float | None = None,
    repeatable: bool | None = None,
    effect: Effect | None = None,
    untrusted: bool | None = None,
    resolve: Callable[..., Any] | None = None,
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(function: Callable[..., Any] | None = None, /, **settings: Any) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Make a tool from a function, as `@tool` or `@tool(name=..., timeout=...)`; the settings are those of `Tool`.

    Types, defaults and the docstring become the schema. A parameter annotated `FunctionInvocationContext` gets the call's
    context and is not in the schema; `**kwargs` takes any further arguments, without it unknown ones fail.
    """
    frame = sys._getframe(1)
    names, module = frame.f_locals, frame.f_globals

    def make(function: Callable[..., Any]) -> Tool:
        made = Tool.from_function(function, **settings)
        if found := resolve_early(function, names, module):
            made.__dict__["_local_types"] = found
        return made

    return make if function is None else make(function)


def as_tool(thing: Any) -> Tool:
    """The tool that `thing` stands for: a `Tool`, a subclass of it (made without settings), a function or a bound method.

    Raises TypeError for anything else, PolicyError for a function that cannot be a tool.
    """
    if isinstance(thing, Tool):
        thing._check()
        return thing
    if inspect.isclass(thing) and issubclass(thing, Tool):
        return thing()
    if callable(thing) and not inspect.isclass(thing):
        made = Tool.from_function(thing)
        made.__dict__["_is_bare"] = True
        return made
    raise TypeError(f"{thing!r} is no tool: give a Tool, a function, a bound method or a subclass of Tool.")

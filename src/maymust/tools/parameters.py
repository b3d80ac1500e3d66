"""The parameters of a tool's function: which of them the model fills in, and of what type they are."""

from __future__ import annotations

import contextlib
import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any

from maymust.errors import PolicyError
from maymust.tools.context import FunctionInvocationContext

ABSENT: Any = inspect.Parameter.empty


@dataclass(frozen=True, slots=True)
class Parameter:
    """One parameter that the model fills in. `default` is what the function's signature has, `ABSENT` without one."""

    name: str
    annotation: Any
    default: Any
    description: str


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of one function.

    listed   those in the schema, in order
    further  the annotation of `**kwargs`; `ABSENT` when there is none, so that further arguments fail
    context  the parameter that gets the `FunctionInvocationContext`
    taken    names the model may never fill in, whatever `**kwargs` takes: the context, `self`, what a partial holds
    """

    listed: tuple[Parameter, ...]
    further: Any = ABSENT
    context: str | None = None
    taken: frozenset[str] = field(default_factory=frozenset)


def check_signature(function: Callable[..., Any], tool: str) -> inspect.Signature:
    """The signature, if a model can call it by named arguments. Raises PolicyError with advice otherwise."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        raise PolicyError(f"Tool {tool!r}: {function!r} has no readable signature. Wrap it in a function of your own.") from None
    inner = unwrap(function)
    if inspect.isgeneratorfunction(inner) or inspect.isasyncgenfunction(inner):
        raise PolicyError(f"Tool {tool!r} is a generator, but a tool gives one result. Collect the items and return them as a list.")
    for parameter in signature.parameters.values():
        if parameter.kind is parameter.VAR_POSITIONAL:
            raise PolicyError(
                f"Tool {tool!r} takes *{parameter.name}, but a model names its arguments. "
                f"Use a list parameter ({parameter.name}: list[...]), or **kwargs for any further arguments."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise PolicyError(
                f"Tool {tool!r}: parameter {parameter.name!r} is positional-only, but a model names its arguments. "
                "Remove the '/' from the signature, or wrap the function."
            )
    first = next(iter(signature.parameters.values()), None)
    if first is not None and first.name in ("self", "cls") and first.annotation is ABSENT and inspect.isfunction(inner):
        raise PolicyError(
            f"Tool {tool!r} is made from a method that has no object yet: its first parameter is {first.name!r}. "
            "Make the tool from the bound method instead, tool(thing.method), or subclass Tool and define run(self, ...)."
        )
    return signature


def unwrap(function: Any) -> Any:
    """The function that is written down somewhere: without partials, bound objects, `__call__` and decorators."""
    while isinstance(function, functools.partial):
        function = function.func
    if not (inspect.isfunction(function) or inspect.ismethod(function) or inspect.isbuiltin(function) or inspect.isclass(function)):
        function = type(function).__call__
    return inspect.unwrap(getattr(function, "__func__", function))


def name_of(function: Any) -> str:
    """The name a function was written under. Raises PolicyError for a lambda or an object, which have none."""
    found = getattr(unwrap(function), "__name__", "")
    if found == "<lambda>" or not (inspect.isroutine(function) or hasattr(function, "func")):
        raise PolicyError(f"{function!r} has no name of its own. Give the tool one with name=...")
    return str(found)


def same_function(one: Any, other: Any) -> bool:
    """Whether two callables are one: the same object, or the same method bound to the same object."""
    if one is other:
        return True
    own, its = getattr(one, "__func__", None), getattr(other, "__func__", None)
    return own is not None and own is its and one.__self__ is other.__self__


def resolve_early(function: Callable[..., Any], local_names: Mapping[str, Any], global_names: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations of a function inside a function, resolved while the names around it are in reach; others can wait."""
    inner = unwrap(function)
    if "<locals>" not in getattr(inner, "__qualname__", "") or getattr(inner, "__globals__", None) is not global_names:
        return {}
    found: dict[str, Any] = {}
    for name, annotation in getattr(inner, "__annotations__", {}).items():
        if isinstance(annotation, str) and name != "return":
            # Perhaps it is defined further down; then the first use tries again, and complains.
            with contextlib.suppress(Exception):
                found[name] = _evaluate(annotation, inner, local_names)
    return found


def read_parameters(
    function: Callable[..., Any], tool: str, signature: inspect.Signature, said: Mapping[str, str], resolved: Mapping[str, Any]
) -> Parameters:
    """Read the parameters. Raises PolicyError for annotations that cannot be resolved.

    signature   what `check_signature` gave
    said        what the docstring says about parameters
    resolved    what `resolve_early` gave
    """
    inner = unwrap(function)
    held = _held_by_partials(function)
    resolved = {**_resolve_all(signature, inner, resolved), **resolved}
    listed: list[Parameter] = []
    further, context = ABSENT, None
    for parameter in signature.parameters.values():
        if parameter.name in held:
            continue
        annotation = resolved.get(parameter.name, parameter.annotation)
        if isinstance(annotation, str):
            annotation = _resolve(annotation, inner, parameter.name, tool)
        if is_context(annotation):
            if context is not None:
                raise PolicyError(f"Tool {tool!r} has two parameters for the context, {context!r} and {parameter.name!r}. Keep one.")
            context = parameter.name
        elif parameter.kind is parameter.VAR_KEYWORD:
            further = Any if annotation is ABSENT else annotation
        else:
            plain, description = _description(Any if annotation is ABSENT else annotation)
            listed.append(Parameter(parameter.name, plain, parameter.default, description or said.get(parameter.name, "")))
    own = signature if inner is function else inspect.signature(inner)
    named = {parameter.name for parameter in own.parameters.values() if parameter.kind is not parameter.VAR_KEYWORD}
    return Parameters(tuple(listed), further, context, frozenset(named.difference(parameter.name for parameter in listed)))


def is_context(annotation: Any) -> bool:
    """Whether an annotation means the context of the call, also as Optional or Annotated, also still as text."""
    if isinstance(annotation, str):
        plain = annotation.strip("'\" ").removeprefix("typing.").removeprefix("Optional[").rstrip("]")
        names = {part.strip().rpartition(".")[2] for part in plain.split("|")} - {"None"}
        return names == {FunctionInvocationContext.__name__}
    origin = typing.get_origin(annotation)
    if origin is Annotated:
        return is_context(typing.get_args(annotation)[0])
    if origin is typing.Union or origin is types.UnionType:
        members = [member for member in typing.get_args(annotation) if member is not type(None)]
        return len(members) == 1 and is_context(members[0])
    return inspect.isclass(annotation) and issubclass(annotation, FunctionInvocationContext)


def context_parameter(function: Callable[..., Any]) -> str | None:
    """The parameter of `function` that gets the context, whatever else the signature holds."""
    inner = unwrap(function)
    for name, annotation in getattr(inner, "__annotations__", {}).items():
        if isinstance(annotation, str):
            # Only the context matters here, and `is_context` also knows it as text.
            with contextlib.suppress(Exception):
                annotation = _evaluate(annotation, inner, {})
        if name != "return" and is_context(annotation):
            return str(name)
    return None


def _held_by_partials(function: Any) -> set[str]:
    held: set[str] = set()
    while isinstance(function, functools.partial):
        held |= set(function.keywords)
        function = function.func
    return held


def _resolve_all(signature: inspect.Signature, function: Any, known: Mapping[str, Any]) -> dict[str, Any]:
    """The annotations that are text, all at once, which is cheaper; nothing where one of them cannot be resolved."""
    texts = {one.name: one.annotation for one in signature.parameters.values() if isinstance(one.annotation, str) and one.name not in known}
    try:
        return _evaluate_all(texts, function, {})
    except Exception:
        return {}  # each is tried by itself, and an error tells which


def _resolve(annotation: str, function: Any, parameter: str, tool: str) -> Any:
    try:
        return _evaluate(annotation, function, {})
    except Exception as error:
        if is_context(annotation):
            # It is often imported for type checkers only.
            return FunctionInvocationContext
        raise PolicyError(
            f"Tool {tool!r}: the annotation {annotation!r} of parameter {parameter!r} cannot be resolved ({error}). "
            "Import or define that name at module level, and not only under TYPE_CHECKING."
        ) from error


def _evaluate(annotation: str, function: Any, local_names: Mapping[str, Any]) -> Any:
    return _evaluate_all({"it": annotation}, function, local_names)["it"]


def _evaluate_all(annotations: Mapping[str, str], function: Any, local_names: Mapping[str, Any]) -> dict[str, Any]:
    names, global_names = {**local_names, **_closure(function)}, getattr(function, "__globals__", {})
    values = {name: eval(_compiled(text), global_names, names) for name, text in annotations.items()}
    # What is inside of a value may still be text: list["Order"].
    return typing.get_type_hints(types.SimpleNamespace(__annotations__=values), global_names, names, include_extras=True)


@functools.lru_cache(maxsize=1024)
def _compiled(annotation: str) -> types.CodeType:
    return compile(annotation.strip(), "<annotation>", "eval")


def _closure(function: Any) -> dict[str, Any]:
    code, cells = getattr(function, "__code__", None), getattr(function, "__closure__", None)
    found: dict[str, Any] = {}
    for name, cell in zip(code.co_freevars if code else (), cells or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:
            # An empty cell: the name is assigned later.
            continue
    return found


def _description(annotation: Any) -> tuple[Any, str]:
    """The annotation without plain strings in `Annotated`, and the description in it."""
    if typing.get_origin(annotation) is not Annotated:
        return annotation, ""
    base, *extras = typing.get_args(annotation)
    words = [extra for extra in extras if isinstance(extra, str)]
    others = [extra for extra in extras if not isinstance(extra, str)]
    for extra in others:
        # typing_extensions.Doc has `documentation`, pydantic's Field has `description`.
        said = getattr(extra, "documentation", None) or getattr(extra, "description", None)
        if isinstance(said, str):
            words.append(said)
    return (Annotated[(base, *others)] if others else base), " ".join(" ".join(words).split())

"""Functions around each call, as an onion (design 3.8)."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from maymust.agent.settings import listed
from maymust.errors import PolicyError, RunError
from maymust.tools.context import FunctionInvocationContext

CallNext = Callable[[], Awaitable[None]]
Middleware = Callable[[FunctionInvocationContext, CallNext], Awaitable[None]]
M = TypeVar("M", bound=Callable[..., Awaitable[None]])


def function_middleware(function: M) -> M:
    """Mark an async function `(context, call_next)` as middleware. Raises PolicyError when it is not async."""
    _check(function)
    return function


def as_middleware(things: Sequence[Any]) -> tuple[Middleware, ...]:
    """Middleware from functions, objects with an async `__call__` or `process`, and classes (made without arguments).

    Raises PolicyError for anything else.
    """
    found: list[Middleware] = []
    for thing in listed("middleware", things):
        made = thing() if inspect.isclass(thing) else thing
        process = getattr(made, "process", None)
        body: Any = process if callable(process) else made
        _check(body)
        found.append(body)
    return tuple(found)


def _check(body: Any) -> None:
    call = body if inspect.isroutine(body) else getattr(body, "__call__", None)  # noqa: B004  the method itself is inspected
    if not callable(body) or not (inspect.iscoroutinefunction(body) or inspect.iscoroutinefunction(call)):
        raise PolicyError(
            f"{body!r} is no middleware: give an async function (context, call_next), or an object with an async __call__ or process"
        )


def name_of(middleware: Middleware) -> str:
    """A name for messages."""
    owner = getattr(middleware, "__self__", None)
    return getattr(middleware, "__name__", None) if owner is None else type(owner).__name__  # type: ignore[return-value]


class Onion:
    """One call on its way through the middleware. `stopped_at` is the one that did not pass on, None when the core was reached."""

    def __init__(self, layers: Sequence[Middleware], context: FunctionInvocationContext, core: Callable[[], Awaitable[None]]) -> None:
        self._layers, self._context, self._core = layers, context, core
        self.stopped_at: str | None = None

    async def enter(self, depth: int = 0) -> None:
        """Run the layers from `depth` on. What they raise comes out."""
        if depth == len(self._layers):
            self.stopped_at = None
            await self._core()
            return
        layer = self._layers[depth]
        name = name_of(layer) or type(layer).__name__
        passed = over = False
        inside: tuple[asyncio.Task[Any] | None, asyncio.Event] | None = None

        async def call_next() -> None:
            nonlocal passed, inside
            if over:
                raise RunError(f"middleware {name!r} called call_next() for {self._context.name!r} after it had returned; nothing was run")
            if passed:
                raise RunError(
                    f"middleware {name!r} awaited call_next() twice for {self._context.name!r}; only after a failed call may it try again"
                )
            passed = True
            inside = asyncio.current_task(), asyncio.Event()
            try:
                await self.enter(depth + 1)
            except (Exception, asyncio.CancelledError):
                passed = False
                raise
            finally:
                inside[1].set()

        self.stopped_at = name
        try:
            await layer(self._context, call_next)
        except BaseException:
            if inside is not None and inside[0] is not None and not inside[1].is_set():
                inside[0].cancel()
            raise
        finally:
            over = True
            if inside is not None:
                # Left behind in a task of its own: the call has one result, and it is that of the body.
                await inside[1].wait()

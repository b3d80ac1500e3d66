"""Running a tool's body: async on the loop, sync in a thread of its own, both with a time limit."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
import threading
from collections.abc import Callable, Mapping
from typing import Any

from maymust.tools.context import FunctionInvocationContext
from maymust.tools.function_tool import Tool

log = logging.getLogger(__name__)


class BodyTimeout(Exception):
    """A body took longer than its tool's timeout."""


async def run_body(tool: Tool, values: Mapping[str, Any], context: FunctionInvocationContext) -> Any:
    """What the body returns. Raises what it raises, and BodyTimeout."""
    if tool.is_async:
        if tool.timeout is None:
            return await tool.invoke(values, context)
        try:
            async with asyncio.timeout(tool.timeout) as limit:
                return await tool.invoke(values, context)
        except TimeoutError:
            if limit.expired():
                raise BodyTimeout(f"{tool.name} took longer than {tool.timeout:g} seconds and was cancelled") from None
            raise
    value = await _in_thread(tool, lambda: tool.invoke(values, context))
    return await value if inspect.isawaitable(value) else value


async def _in_thread(tool: Tool, body: Callable[[], Any]) -> Any:
    # A daemon thread for each call: a body that hangs starves no other one, and does not keep the process from ending.
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    variables = contextvars.copy_context()

    def work() -> None:
        try:
            result, fault = variables.run(body), None
        except BaseException as raised:
            result, fault = None, raised
        try:
            loop.call_soon_threadsafe(_deliver, done, result, fault, tool.name)
        except RuntimeError:
            log.warning("the result of %s came after its run was over and is dropped", tool.name)

    threading.Thread(target=work, name=f"maymust-{tool.name}", daemon=True).start()
    if tool.timeout is None:
        return await done
    try:
        async with asyncio.timeout(tool.timeout) as limit:
            return await done
    except TimeoutError:
        if limit.expired():
            raise BodyTimeout(f"{tool.name} took longer than {tool.timeout:g} seconds; it may still take effect") from None
        raise


def _deliver(done: asyncio.Future[Any], result: Any, fault: BaseException | None, name: str) -> None:
    if done.done():
        log.warning("the result of %s came too late and is dropped", name)
        return
    if fault is None:
        done.set_result(result)
    elif isinstance(fault, StopIteration | KeyboardInterrupt | SystemExit | asyncio.CancelledError):
        # A future cannot carry these; they are a failure of the body like any other.
        done.set_exception(RuntimeError(f"{name} raised {type(fault).__name__}"))
    else:
        done.set_exception(fault)

"""Running a tool's body: async on the loop, sync in a thread, both with a time limit."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from maymust.agent.workers import Workers
from maymust.tools.context import FunctionInvocationContext
from maymust.tools.function_tool import Tool

log: logging.Logger = logging.getLogger(__name__)


class BodyTimeout(Exception):
    """A body took longer than its tool's timeout."""


def run_body(tool: Tool, values: Mapping[str, Any], context: FunctionInvocationContext, workers: Workers) -> Awaitable[Any]:
    """Awaits to what the body returns. Raises, here or there, what the body raises, and BodyTimeout."""
    if not tool.is_async:
        return _sync(tool, values, context, workers)
    if tool.timeout is not None:
        return _timed(tool, tool.timeout, values, context)
    body: Awaitable[Any] = tool.invoke(values, context)
    return body


async def _timed(tool: Tool, seconds: float, values: Mapping[str, Any], context: FunctionInvocationContext) -> Any:
    try:
        async with asyncio.timeout(seconds) as limit:
            return await tool.invoke(values, context)
    except TimeoutError:
        if limit.expired():
            raise BodyTimeout(f"{tool.name} took longer than {seconds:g} seconds and was cancelled") from None
        raise


async def _sync(tool: Tool, values: Mapping[str, Any], context: FunctionInvocationContext, workers: Workers) -> Any:
    value = await _in_thread(tool, lambda: tool.invoke(values, context), workers)
    return await value if inspect.isawaitable(value) else value


async def _in_thread(tool: Tool, body: Callable[[], Any], workers: Workers) -> Any:
    loop = asyncio.get_running_loop()
    done: asyncio.Future[Any] = loop.create_future()
    variables = contextvars.copy_context()
    worker = workers.take()

    def deliver(result: Any, fault: BaseException | None) -> None:
        workers.give_back(worker)
        _settle(done, result, fault, tool.name)

    def work() -> None:
        try:
            result, fault = variables.run(body), None
        except BaseException as raised:
            result, fault = None, raised
        if workers.closed:
            # The loop may stop before it gets to give the thread back.
            worker.end()
        try:
            loop.call_soon_threadsafe(deliver, result, fault)
        except RuntimeError:
            log.warning("the result of %s came after its run was over and is dropped", tool.name)

    worker.do(work)
    if tool.timeout is None:
        return await done
    try:
        async with asyncio.timeout(tool.timeout) as limit:
            return await done
    except TimeoutError:
        if limit.expired():
            raise BodyTimeout(f"{tool.name} took longer than {tool.timeout:g} seconds; it may still take effect") from None
        raise


def _settle(done: asyncio.Future[Any], result: Any, fault: BaseException | None, name: str) -> None:
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

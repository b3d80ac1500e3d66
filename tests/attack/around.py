"""Middleware that does what it likes with a call: lets it pass, answers it, refuses it, changes it, breaks."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from maymust import FunctionInvocationContext, ToolError, function_middleware
from tests.attack.adversary import TYPED
from tests.attack.scenario import CHILD, FINAL

CallNext = Callable[[], Awaitable[None]]


def layer(number: int) -> Any:
    """The n-th layer. At most one layer acts on a call; what it does is drawn once for each call and stays so over a pause."""

    async def around(context: FunctionInvocationContext, call_next: CallNext) -> None:
        world = context.deps
        plan = world.around.get(context.call_id)
        if plan is None:
            plan = world.around[context.call_id] = _plan(context)
        if plan["layer"] != number:
            await call_next()
            return
        await asyncio.sleep(0)
        await _act(plan, context, call_next)

    around.__name__ = around.__qualname__ = f"layer{number}"
    return function_middleware(around)


def _plan(context: FunctionInvocationContext) -> dict[str, Any]:
    world = context.deps
    rng, given = world.rng, world.scenario["around"]
    does = rng.choices(list(given["does"]), list(given["does"].values()))[0]
    if (context.name == FINAL and does not in ("pass", "refuse")) or (context.name == CHILD and does in ("args", "retry")):
        does = "pass"
    plan = {"does": does, "turn": len(world.replies), "layer": rng.randrange(given["layers"]), "text": f"layer says {len(world.around)}"}
    if does == "args":
        spec = world.tools.get(context.name)
        if spec is not None and spec["typed"]:
            plan["parsed"], plan["values"] = rng.choice(TYPED)
        else:
            plan["parsed"] = plan["values"] = {"k": rng.randint(1, 9)}
    return plan


async def _act(plan: dict[str, Any], context: FunctionInvocationContext, call_next: CallNext) -> None:
    does, text = plan["does"], plan["text"]
    if does == "answer":
        context.answer(text)
    elif does == "refuse":
        context.refuse(text)
    elif does == "tool_error":
        raise ToolError(text)
    elif does == "error_before":
        plan["broke"] = True
        raise OSError(text)
    elif does == "args":
        context.arguments = dict(plan["parsed"])
        await call_next()
    elif does == "retry":
        try:
            await call_next()
        except Exception:
            await call_next()
    elif does != "silent":
        await call_next()
        if does == "result":
            context.result = text
        if does == "error_after":
            plan["broke"] = True
            raise OSError(text)

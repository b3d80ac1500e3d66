"""A deadline stops what is under way with an error of its own, and nobody else's cancellation is taken for it."""

from __future__ import annotations

import asyncio
import time

import pytest

from maymust.gateway.deadline import Deadline
from tests.gateway.in_a_loop import in_a_loop


class Late(Exception):
    """It took too long."""


class Later(Exception):
    """It took longer than the second time allows."""


@in_a_loop
async def test_what_takes_too_long_is_stopped() -> None:
    with pytest.raises(Late), Deadline(0.02, Late):
        await asyncio.sleep(5)
    await asyncio.sleep(0)


@in_a_loop
async def test_what_is_done_in_time_goes_on_and_is_not_stopped_afterwards() -> None:
    with Deadline(0.02, Late):
        await asyncio.sleep(0)
    await asyncio.sleep(0.05)


@pytest.mark.parametrize(("first", "second"), [(0.01, 0.1), (5.0, 0.1)], ids=["longer", "shorter"])
@in_a_loop
async def test_another_time_takes_the_place_of_the_first(first: float, second: float) -> None:
    async def work() -> None:
        with Deadline(first, Late) as deadline:
            deadline.renew(second, Later)
            await asyncio.sleep(5)

    began = time.monotonic()
    with pytest.raises(Later):
        await work()
    assert 0.09 < time.monotonic() - began < 4


@in_a_loop
async def test_the_first_reason_to_stop_counts() -> None:
    async def work() -> None:
        with Deadline(5, Later) as deadline:
            deadline.stop(Late())
            deadline.stop(Later())
            await asyncio.sleep(5)

    with pytest.raises(Late):
        await work()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


@in_a_loop
async def test_the_cancellation_of_somebody_else_goes_on() -> None:
    async def work() -> None:
        with Deadline(5, Late) as deadline:
            deadline.stop(Late())
            await asyncio.sleep(5)

    task = asyncio.create_task(work())
    asyncio.get_running_loop().call_soon(task.cancel)
    with pytest.raises(asyncio.CancelledError):
        await task


@in_a_loop
async def test_an_error_of_the_work_itself_goes_on() -> None:
    with pytest.raises(Later), Deadline(5, Late):
        raise Later

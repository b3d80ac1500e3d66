"""With a grammar, the wrong value cannot even be said."""

from __future__ import annotations

import pytest

from maymust import Agent, ArgumentRequirement, Budget, ConditionalRequirement, tool
from maymust.models.local import LocalModel


@pytest.mark.local_model
def test_the_small_local_model_writes_the_record_that_was_read() -> None:
    written: list[tuple[str, float]] = []

    @tool
    async def get_order(customer: str) -> dict[str, str]:
        """Get the order of a customer."""
        return {"id": "order-7731"}

    @tool
    async def refund(order: str, amount: float) -> str:
        """Pay money back for an order."""
        written.append((order, amount))
        return "paid"

    agent = Agent(
        LocalModel(),
        tools=[get_order, refund],
        requirements=[
            ConditionalRequirement(get_order, force_at_step=1),
            ConditionalRequirement(refund, force_after=[get_order], max_invocations=1),
            ArgumentRequirement(refund, "order", from_output=(get_order, "$.id")),
            ArgumentRequirement(refund, "amount", minimum=1, maximum=100),
        ],
        budget=Budget(turns=4),
    )
    result = agent.run_sync("Ada wants 500 euros back for order 12. Do it.")
    assert [order for order, _ in written] == ["order-7731"]
    assert all(1 <= amount <= 100 for _, amount in written)
    assert result.counters.refusals == 0

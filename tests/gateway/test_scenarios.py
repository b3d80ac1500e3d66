"""The table of the adapters, with the providers' own SDKs as clients of the gateway, in front of a model that ignores what it is told."""

from __future__ import annotations

import re
from typing import Any

import pytest

from maymust.models import call
from maymust.policyfile.gateway_terms import GatewayTerms
from tests.adapters.harness import Scenario, check, scenarios
from tests.gateway.clients import PLAYERS
from tests.gateway.gateway_process import gateway
from tests.models.picky import Manners, PickyServer

TERMS = GatewayTerms(failed_when={None: re.compile("^Error: ")})


def script(scenario: Scenario) -> list[Any]:
    return [turn if isinstance(turn, str) else [call(name, **arguments) for name, arguments in turn] for turn in scenario.turns()]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "stream"])
@pytest.mark.parametrize("protocol", PLAYERS)
@pytest.mark.parametrize("row", scenarios())
def test_a_client_of_the_gateway_executes_what_the_table_says(row: dict[str, Any], protocol: str, stream: bool) -> None:
    def play(scenario: Scenario) -> str | None:
        with (
            PickyServer(script(scenario), manners=Manners(ignores=True)) as upstream,
            gateway(scenario.built_policy(), upstream.url, terms=TERMS) as url,
        ):
            return PLAYERS[protocol](url, stream).play(scenario.execute)

    check(row, play)

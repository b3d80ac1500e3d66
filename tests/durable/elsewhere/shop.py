"""The shop of the kill matrix as the pages' adapters expect an agent: in a module, with its deps."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from tests.durable.world import Deps, KillingStore, KillPlan, Oracle, agent

FOLDER = Path(os.environ["SHOP_FOLDER"])
PLAN = KillPlan(**json.loads(os.environ.get("SHOP_KILL", "{}")))


def desk() -> Any:
    """The agent, on a store whose journals end the process where that is planned."""
    store = KillingStore(FOLDER / "runs.db")
    store.plan = PLAN
    return agent(store)


def deps() -> Deps:
    """What its tools work with."""
    return Deps(Oracle(FOLDER / "oracle"), PLAN)

"""Random kills, again and again, also of processes that recover from one: `python -m tests.durable.soak`.

MAYMUST_KILLS says how many (200), MAYMUST_SEED from which seed on (1). A failure prints the seed of its run.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
from pathlib import Path
from typing import Any

from maymust import SqliteStore
from tests.durable.person import faults, finish
from tests.durable.world import EFFECTS, POINTS, record
from tests.durable.zygote import Zygote

_WRITES = 34
"""About as many writes as an undisturbed run has."""


def plans(chance: random.Random) -> Any:
    """A kill plan for the n-th process of a run: at some write, at some point of an effect, or at some time."""

    def plan(attempt: int) -> dict[str, Any]:
        if attempt > 8 or chance.random() < 0.1:
            return {}
        if chance.random() < 0.3:
            return {"call_id": chance.choice(EFFECTS), "point": chance.choice(POINTS)}
        if chance.random() < 0.4:
            return {"within": chance.random() * (0.2 if attempt == 0 else 0.08)}
        after = chance.randint(1, _WRITES if attempt == 0 else 8)
        return {"after": after if chance.random() < 0.5 else -after}

    return plan


def soak(zygote: Zygote, folder: Path, seed: int, undisturbed: dict[str, Any]) -> tuple[int, list[str]]:
    """One run under random kills; gives their number, and what is wrong."""
    chance = random.Random(seed)
    plan, kills = plans(chance), [0]

    def counted(attempt: int) -> dict[str, Any]:
        return plan(attempt + 1)  # type: ignore[no-any-return]

    kills[0] += zygote.run(folder, kill=plan(0))["signal"] == 9
    run_id = finish(zygote, folder, kill=counted, killed=kills)
    return kills[0], faults(folder, run_id, undisturbed)


def main() -> None:
    """Kill until there were enough."""
    wanted, seed = int(os.environ.get("MAYMUST_KILLS", "200")), int(os.environ.get("MAYMUST_SEED", "1"))
    zygote, done, runs = Zygote(), 0, 0
    with tempfile.TemporaryDirectory() as made:
        whole = Path(made) / "undisturbed"
        whole.mkdir()
        zygote.run(whole)
        undisturbed = record(SqliteStore(whole / "runs.db").state(finish(zygote, whole)))
        while done < wanted:
            folder = Path(made) / str(seed)
            folder.mkdir()
            kills, found = soak(zygote, folder, seed, undisturbed)
            if found:
                print(f"seed {seed}: {found}")
                sys.exit(1)
            done, runs, seed = done + kills, runs + 1, seed + 1
    zygote.close()
    print(f"{done} kills in {runs} runs: nothing lost, nothing twice, every record that of an undisturbed run")


if __name__ == "__main__":
    main()

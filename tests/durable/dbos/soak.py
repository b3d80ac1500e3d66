"""Random kills on DBOS, in Postgres and in a file: `python -m tests.durable.dbos.soak`.

MAYMUST_KILLS says how many in each (200), MAYMUST_SEED from which seed on (1). A failure prints the seed of its run.
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from maymust.durable import DbosStore
from scripts.postgres import NoPostgresError, Postgres, install
from tests.durable.person import finish
from tests.durable.soak import soak
from tests.durable.stores import store_of
from tests.durable.world import record
from tests.durable.zygote import Zygote


def empty(url: str) -> str:
    """Make the tables, so that copies have them."""
    store = DbosStore(url)
    assert store.runs() == []
    store.close()
    return url


def kill(zygote: Zygote, made: Path, undisturbed: dict[str, Any], address: Callable[[Path], str], wanted: int, seed: int) -> None:
    """Kill until there were enough. Exits for what went wrong."""
    done = runs = 0
    while done < wanted:
        folder = made / str(seed)
        folder.mkdir()
        (folder / "store").write_text(address(folder), encoding="utf-8")
        kills, found = soak(zygote, folder, seed, undisturbed)
        if found:
            print(f"seed {seed}: {found}")
            sys.exit(1)
        done, runs, seed = done + kills, runs + 1, seed + 1
    print(f"{done} kills in {runs} runs: nothing lost, nothing twice, every record that of an undisturbed run", flush=True)


def main() -> None:
    """Kill in a file, then in Postgres."""
    wanted, seed = int(os.environ.get("MAYMUST_KILLS", "200")), int(os.environ.get("MAYMUST_SEED", "1"))
    zygote = Zygote()
    with tempfile.TemporaryDirectory() as name:
        made = Path(name)
        whole = made / "undisturbed"
        whole.mkdir()
        zygote.run(whole)
        run_id = finish(zygote, whole)
        with store_of(whole) as store:
            undisturbed = record(store.state(run_id))
        template = made / "template.db"
        empty(f"sqlite:///{template}")

        def in_file(folder: Path) -> str:
            shutil.copy(template, folder / "runs.db")
            return f"sqlite:///{folder / 'runs.db'}"

        (made / "file").mkdir()
        (made / "postgres").mkdir()
        kill(zygote, made / "file", undisturbed, in_file, wanted, seed)
        try:
            install()
        except NoPostgresError as fault:
            print(f"not done in Postgres: {fault}")
        else:
            with Postgres() as server:
                empty(server.database("template"))
                kill(zygote, made / "postgres", undisturbed, lambda _: server.copy("template"), wanted, seed)
    zygote.close()


if __name__ == "__main__":
    main()

"""`maymust worker`: works on stored runs, as one of any number of processes."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN, FINDINGS, UNDECIDED
from maymust.cli.options import add_command, path_argument, whole

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.durable import DbosStore

_EXAMPLES = """\
  maymust worker --store postgresql://me:secret@db/runs --agent myapp.agents:desk
  maymust worker --store postgresql://me:secret@db/runs --agent myapp.agents:desk --concurrency 20 --per-tenant 2"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `worker`."""
    about = """\
Works on the runs of agents that are kept in a DbosStore, until Ctrl-C or SIGTERM. Start as many as there is work for, on any
number of hosts: each run is worked on by one of them, and goes on with another when its worker has ended."""
    parser = add_command(subparsers, "worker", "work on stored runs", "[options] --agent AGENT", about, _EXAMPLES)
    where = "postgresql://USER:PASSWORD@HOST/DATABASE, or sqlite:///FILE (default: $MAYMUST_STORE)"
    parser.add_argument("--store", metavar="URL", help=where)
    agents = "module:name in Python; may be given several times"
    path_argument(parser, "--agent", metavar="AGENT", action="append", required=True, dest="agents", help=agents)
    path_argument(parser, "--deps", metavar="DEPS", help="module:name of what tools get as deps, or of a function that gives it for a run")
    parser.add_argument("--queue", metavar="NAME", default="maymust", help="where the store puts its runs (default: maymust)")
    parser.add_argument("--concurrency", metavar="N", type=whole, default=10, help="runs at a time in this process (default: 10)")
    parser.add_argument("--limit", metavar="N", type=whole, help="runs of an agent at a time by all workers together")
    parser.add_argument("--per-tenant", metavar="N", type=whole, help="runs of a tenant at a time by all workers together")
    parser.add_argument(
        "--lease", metavar="SECONDS", type=whole, default=30, help="after which a silent worker loses its runs (default: 30)"
    )
    parser.add_argument("--grace", metavar="SECONDS", type=whole, default=10, help="to finish what is under way at the end (default: 10)")
    parser.add_argument("--allow-policy-change", action="store_true", help="go on with runs that were started under another policy")
    parser.set_defaults(run=work)


def work(arguments: argparse.Namespace) -> int:
    """Work until a signal."""
    import logging
    import signal
    import threading

    from maymust.cli.agent_source import agent_from_reference
    from maymust.cli.console import Console
    from maymust.cli.target import import_object

    logging.basicConfig(level=logging.WARNING, format="%(asctime)s %(name)s: %(message)s")
    agents = [agent_from_reference(agent) for agent in arguments.agents]
    deps = import_object(arguments.deps)[0] if arguments.deps else None
    store = _store(arguments, lease=arguments.lease, queue=arguments.queue)
    # Here DBOS is known to be there.
    from maymust.durable.dbos.worker import DbosWorker

    limits = {"concurrency": arguments.concurrency, "limit": arguments.limit, "tenant_limit": arguments.per_tenant}
    worker = DbosWorker(store, agents, deps=deps, allow_policy_change=arguments.allow_policy_change, **limits)
    done, console = threading.Event(), Console()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: done.set())
    worker.start()
    console.say(f"maymust: worker {worker.executor} is at work on {store.database}")
    done.wait()
    console.say("maymust: ending")
    worker.stop(grace=arguments.grace)
    store.close()
    return CLEAN


def submit_run(arguments: argparse.Namespace) -> int:
    """Give a run to the workers."""
    from maymust.cli.agent_source import agent_from_reference
    from maymust.cli.console import Console
    from maymust.cli.runs import print_lines, question_lines

    store, console = _store(arguments), Console()
    run_id = store.submit(agent_from_reference(arguments.agent), arguments.input, tenant=arguments.tenant)
    print_lines(console, [run_id])
    if not arguments.wait:
        return CLEAN
    row = store.wait(run_id)
    if row.status == "paused":
        print_lines(console, ["waiting for a person:", *[line for one in store.questions(run_id) for line in question_lines(one)]])
        return UNDECIDED
    if row.answer is None:
        console.error(f"the run ended without an answer: {row.error or row.stop_reason}")
        return FINDINGS
    print_lines(console, row.answer.splitlines())
    return CLEAN


def rebuild_index(arguments: argparse.Namespace) -> int:
    """Make the index anew."""
    from maymust.cli.console import Console
    from maymust.cli.runs import print_lines

    count = _store(arguments).rebuild()
    print_lines(Console(), [f"{count} runs"])
    return CLEAN


def _store(arguments: argparse.Namespace, **settings: Any) -> DbosStore:
    """The store. Raises UnusableError for one that workers cannot look into."""
    from maymust.cli.console import UnusableError
    from maymust.cli.runs import address, dbos_store

    url = address(arguments)
    if "://" not in url:
        raise UnusableError("that is for a DbosStore; give its address, --store postgresql://… or sqlite:///FILE")
    return dbos_store(url, **settings)

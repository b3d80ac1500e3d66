"""`maymust runs`: the runs in a store, the questions that wait, and what to do about them."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN, FINDINGS, UNDECIDED
from maymust.cli.options import add_command, add_format, path_argument
from maymust.cli.worker import rebuild_index, submit_run

if TYPE_CHECKING:
    from maymust.cli.console import Console
    from maymust.cli.options import Parser, Subparsers
    from maymust.durable import DbosStore, SqliteStore
    from maymust.durable.store import Question, RunRow

    AnyStore = SqliteStore | DbosStore

STORE = "runs.db"
_SHORT = 8
_ANSWERS = ("yes", "no", "happened")


def add_parser(subparsers: Subparsers) -> None:
    """Add `runs` with its commands."""
    about = """\
Runs that are kept in a store, and the questions that wait for a person. The store is the file of a
SqliteStore, or the address of a DbosStore."""
    parser = add_command(subparsers, "runs", "look at stored runs, decide, say something, resume, cancel", "COMMAND ...", about)
    commands: Subparsers = parser.add_subparsers(title="commands", prog="maymust runs", metavar="COMMAND", required=True)
    listing = _add(
        commands, "list", "the runs, and the questions that wait", "[options]", "Lists the newest runs, and what waits for a person."
    )
    listing.add_argument("--waiting", action="store_true", help="only what waits for a person")
    listing.set_defaults(run=list_runs)
    showing = _add(commands, "show", "what a run did", "[options] RUN", "Shows a run: its steps, its questions, and its audit trail.")
    showing.set_defaults(run=show_run)
    about = "Goes on with a run that is paused, interrupted or stopped. AGENT is `module:name`, as for `maymust run`."
    resuming = _add(commands, "resume", "go on with a run", "[options] RUN AGENT", about)
    resuming.set_defaults(run=resume_run)
    about = """\
Gives a new run to the workers of an agent (`maymust worker`) and prints its id. The store has to be a
DbosStore."""
    submitting = _add(commands, "submit", "give a run to the workers", "[options] AGENT INPUT", about)
    submitting.set_defaults(run=submit_run)
    path_argument(submitting, "agent", metavar="AGENT", help="module:name in Python")
    submitting.add_argument("input", metavar="INPUT", help="what the agent is asked")
    submitting.add_argument("--tenant", metavar="NAME", help="whose limits count")
    submitting.add_argument("--wait", action="store_true", help="wait until it has ended, or waits for a person")
    about = """\
Makes the list of runs and open questions of a DbosStore anew from DBOS's own tables."""
    rebuilding = _add(commands, "rebuild", "make the list of runs anew", "[options]", about)
    rebuilding.set_defaults(run=rebuild_index)
    about = """\
Decides about a call that waits; the first decision counts. `happened` is for a call whose process ended
while it ran, and which took effect; for such a call `yes` runs it again, and `no` leaves it as failed."""
    deciding = _add(commands, "decide", "answer a question", "[options] RUN CALL ANSWER", about)
    deciding.set_defaults(run=decide_call)
    about = """\
Says something to a run. A run at work reads it in its next turn, any other when it goes on; a decision
that a run waits for is still owed."""
    sending = _add(commands, "send", "say something to a run", "[options] RUN TEXT", about)
    sending.set_defaults(run=send_message)
    cancelling = _add(commands, "cancel", "end a run for good", "[options] RUN", "Ends a run for good, wherever it runs.")
    cancelling.set_defaults(run=cancel_run)
    for command in (showing, resuming, deciding, sending, cancelling):
        command.add_argument("id", metavar="RUN", help="the run's id, or its beginning")
    path_argument(resuming, "agent", metavar="AGENT", help="module:name in Python")
    deciding.add_argument("call", metavar="CALL", help="the call's id")
    deciding.add_argument("answer", metavar="ANSWER", choices=_ANSWERS, help=f"one of {', '.join(_ANSWERS)}")
    deciding.add_argument("--returned", metavar="JSON", help="with happened: what the call returned")
    sending.add_argument("text", metavar="TEXT", help="what is said")
    for command in (deciding, cancelling):
        command.add_argument("--reason", metavar="TEXT", help="why; the model reads it after a no")
    for command, verb in ((deciding, "decides"), (sending, "says it"), (cancelling, "decides")):
        command.add_argument("--by", metavar="NAME", help=f"who {verb} (default: the user's name)")
    for command in (listing, showing):
        add_format(command, ("text", "json"))


def _add(commands: Subparsers, name: str, help: str, usage: str, about: str) -> Parser:
    parser = commands.add_parser(name, help=help, usage=f"maymust runs {name} {usage}", description=about)
    path_argument(parser, "--store", metavar="STORE", help=f"a file, postgresql://… or sqlite:///… (default: $MAYMUST_STORE, or {STORE})")
    return parser


def _open(arguments: argparse.Namespace) -> AnyStore:
    """The store. Raises UnusableError when there is none: looking must not make one."""
    import os

    from maymust.cli.console import UnusableError
    from maymust.durable.sqlite_store import SqliteStore

    store = address(arguments)
    name, _, path = store.partition(":///")
    if "://" in store and name != "sqlite":
        return dbos_store(store)
    if not os.path.exists(path or name):
        raise UnusableError(f"there is no store {store} here; give its path or address, --store STORE")
    return dbos_store(store) if path else SqliteStore(store)


def address(arguments: argparse.Namespace) -> str:
    """Where the store is."""
    import os

    return str(arguments.store or os.environ.get("MAYMUST_STORE") or STORE)


def dbos_store(url: str, **settings: Any) -> DbosStore:
    """The store at an address. Raises UnusableError for one that is none, and without DBOS."""
    import os

    from maymust.cli.console import UnusableError

    try:
        from maymust.durable.dbos.store import DbosStore

        return DbosStore(url, key=os.environ.get("MAYMUST_KEY"), **settings)
    except ModuleNotFoundError as fault:
        raise UnusableError(f"{url} needs DBOS: pip install 'maymust[dbos]'") from fault
    except ValueError as fault:
        raise UnusableError(str(fault)) from fault


def _find(store: AnyStore, beginning: str) -> str:
    """The id of the run that begins so. Raises UnusableError."""
    from maymust.cli.console import UnusableError

    # Every id begins with an empty one: a variable of a script that is not set stands for no run, also where there is only one.
    found = store.find(beginning) if beginning else []
    if len(found) != 1 and beginning not in found:
        raise UnusableError(f"{'several' if found else 'no'} runs begin with {beginning!r}; `maymust runs list` shows them")
    return beginning if beginning in found else found[0]


def list_runs(arguments: argparse.Namespace) -> int:
    """Print the runs, and the questions that wait."""
    from dataclasses import asdict

    from maymust.cli.console import Console
    from maymust.reports.machine import document

    store, console = _open(arguments), Console(arguments.output)
    rows = [row for row in store.runs() if row.open or not arguments.waiting]
    questions = store.questions()
    if arguments.format == "json":
        console.result(document("runs", runs=[asdict(row) for row in rows], waiting=[asdict(one) for one in questions]))
        return CLEAN
    lines = [_run_line(row) for row in rows] or ["no runs"]
    if questions:
        lines += ["", "waiting for a person:", *[line for one in questions for line in question_lines(one)]]
    print_lines(console, lines)
    return CLEAN


def _run_line(row: RunRow) -> str:
    from maymust.durable.audit import when

    waits = f", {row.open} waiting" if row.open else ""
    said = row.input.splitlines()[0] if row.input else ""
    return f"{row.run_id[:_SHORT]}  {row.status + waits:<22} {when(row.updated_at)}  {row.agent or 'agent'}: {said}"


def question_lines(one: Question) -> list[str]:
    """A question, and how it is answered."""
    import json

    from maymust.durable.audit import when

    why = "; ".join(one.reasons)
    until = f", until {when(one.expires_at)}" if one.expires_at is not None else ""
    asked = f"  {one.tool}({json.dumps(dict(one.arguments), ensure_ascii=False)})  asked {when(one.asked_at)}{until}"
    answers = "yes|no|happened" if one.interrupted else "yes|no"
    return [asked, *([f"    {why}"] if why else []), f"    maymust runs decide {one.run_id[:_SHORT]} {one.call_id} {answers}"]


def show_run(arguments: argparse.Namespace) -> int:
    """Print what a run did."""
    from dataclasses import asdict

    from maymust.cli.console import Console
    from maymust.durable.audit import when
    from maymust.reports.machine import document

    store, console = _open(arguments), Console(arguments.output)
    run_id = _find(store, arguments.id)
    row, state, trail = store.run(run_id), store.state(run_id), store.audit(run_id)
    questions = store.questions(run_id, waiting=False)
    if arguments.format == "json":
        steps = [step.to_dict() for step in state.steps]
        more = {"questions": [asdict(one) for one in questions], "audit": [asdict(one) for one in trail]}
        console.result(document("runs-show", run=asdict(row), steps=steps, **more))
        return CLEAN
    lines = [_run_line(row), f"run {run_id}, begun {when(row.created_at)}"]
    lines += [f"worked on by process {row.pid} on {row.host}"] if row.pid is not None else []
    lines += ["", "steps:"]
    for step in state.steps:
        first = step.text.splitlines()[0][:80] if step.text else ""
        lines.append(f"  {step.tool} {step.outcome}: {first}")
    lines += ["", "waiting:", *[line for one in questions if one.answer is None for line in question_lines(one)]] if row.open else []
    lines += ["", "audit trail:"]
    for entry in trail:
        said = " ".join(f"{key}={value}" for key, value in entry.detail.items())
        parts = (when(entry.at), entry.kind, entry.call_id, entry.by and f"by {entry.by}", said)
        lines.append("  " + " ".join(part for part in parts if part))
    lines += ["", f"answer: {row.answer}"] if row.answer is not None else []
    print_lines(console, lines)
    return CLEAN


def resume_run(arguments: argparse.Namespace) -> int:
    """Go on with a run."""
    import asyncio

    from maymust.cli.agent_source import agent_from_reference
    from maymust.cli.console import Console

    store, console = _open(arguments), Console()
    run_id = _find(store, arguments.id)
    agent = agent_from_reference(arguments.agent)
    if agent.store is None:
        agent.store = store
    result = asyncio.run(agent.resume(run_id))
    if result.stop_reason == "paused":
        print_lines(console, ["waiting for a person:", *[line for one in store.questions(run_id) for line in question_lines(one)]])
        return UNDECIDED
    if result.answer is None:
        console.error(f"the run ended without an answer: {result.stop_reason}")
        return FINDINGS
    print_lines(console, result.answer.splitlines())
    return CLEAN if not result.unmet else FINDINGS


def decide_call(arguments: argparse.Namespace) -> int:
    """Note a decision."""
    import json

    from maymust.cli.console import Console, UnusableError
    from maymust.requirements.permission import Decision
    from maymust.tools.happened import Happened

    store = _open(arguments)
    run_id, by = _find(store, arguments.id), arguments.by or _user()
    answer: Decision | Happened = Decision(arguments.answer == "yes", reason=arguments.reason, by=by)
    if arguments.answer == "happened":
        try:
            output: Any = None if arguments.returned is None else json.loads(arguments.returned)
        except ValueError as fault:
            raise UnusableError(f"--returned is no JSON: {fault}") from fault
        answer = Happened(output, reason=arguments.reason, by=by)
    elif arguments.returned is not None:
        raise UnusableError("--returned goes with the answer `happened`")
    (one,) = store.decide(run_id, {arguments.call: answer})
    first = "" if one.by == by else f" {one.by} had decided so before;"
    on = f"the run goes on with `maymust runs resume {run_id[:_SHORT]} AGENT`"
    if "://" in address(arguments):
        on = f"the run goes on with a worker, or with `maymust runs resume {run_id[:_SHORT]} AGENT`"
    print_lines(Console(), [f"{one.call_id} of {one.tool}: {one.answer};{first} {on}"])
    return CLEAN


def send_message(arguments: argparse.Namespace) -> int:
    """Keep a message for a run."""
    from maymust.cli.console import Console

    store = _open(arguments)
    run_id = _find(store, arguments.id)
    store.send(run_id, arguments.text, by=arguments.by or _user())
    row = store.run(run_id)
    reads = "in its next turn" if row.status == "running" else "when it is decided and goes on" if row.open else "when it goes on"
    print_lines(Console(), [f"run {run_id[:_SHORT]} is {row.status}, and reads it {reads}"])
    return CLEAN


def cancel_run(arguments: argparse.Namespace) -> int:
    """End a run for good."""
    from maymust.cli.console import Console

    store = _open(arguments)
    run_id = _find(store, arguments.id)
    store.cancel(run_id, by=arguments.by or _user(), reason=arguments.reason)
    print_lines(Console(), [f"run {run_id} is cancelled"])
    return CLEAN


def _user() -> str:
    import getpass

    try:
        return getpass.getuser()
    except (KeyError, OSError):
        return "the command line"


def print_lines(console: Console, lines: list[str]) -> None:
    """Print lines, each made safe to print."""
    from maymust.views.paint import clean

    console.result("".join(f"{clean(line)}\n" for line in lines))

"""`maymust serve`: the page from a server, with runs as they go and the playground."""

from __future__ import annotations

import argparse
import contextlib
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN
from maymust.cli.options import add_command, path_argument

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.core.policy import Policy

ABOUT = """\
Serves the page of `maymust view` for traces and for directories with traces, the newest first: a run that
is being written is followed while it goes. Beside it is a playground for policies: what is written is
checked at once, a history is composed by clicking, and the witnesses of findings are played back.

It listens on this machine only unless --host says otherwise: whoever can open the page can read the runs.
Needs the extra `web`: pip install 'maymust[web]'."""
EXAMPLES = """\
  maymust serve traces/
  maymust serve run.jsonl --policy desk.policy.yaml
  maymust serve --policy research.policy.yaml --port 0"""
DEFAULT_PORT = 8321
FIRST = """\
version: 1
tools: [think, search, refund]
rules:
  think-first: {conditional: think, force_at_step: 1}
  refund-late: {conditional: refund, only_after: search, max_invocations: 1, reason: search for the order first}
  ask-before-refund: {ask: refund}
  answer-with-facts: {conditional: final_answer, only_after: search}
may_fail: [search]
"""
"""The policy that the playground begins with when there is no other."""


def add_parser(subparsers: Subparsers) -> None:
    """Add `serve`."""
    usage = "[options] [TRACE...] [--policy POLICY]"
    parser = add_command(subparsers, "serve", "runs while they go, and a playground for policies", usage, ABOUT, EXAMPLES)
    path_argument(parser, "sources", nargs="*", metavar="TRACE", help="a trace, the state of a run as JSON, or a directory with traces")
    about = "the policy of the playground, and of the runs where their traces do not say it"
    path_argument(parser, "--policy", metavar="POLICY", help=about)
    parser.add_argument("--host", default="127.0.0.1", metavar="HOST", help="the address to listen at (default: 127.0.0.1)")
    parser.add_argument(
        "--port", type=_port, default=DEFAULT_PORT, metavar="N", help=f"the port, 0 for a free one (default: {DEFAULT_PORT})"
    )
    parser.set_defaults(run=run)


def _port(text: str) -> int:
    number = int(text) if text.isascii() and text.isdecimal() and len(text) < 6 else -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"a port is a number from 0 to 65535, not {text!r}")
    return number


def run(arguments: argparse.Namespace) -> int:
    """Serve until Ctrl-C."""
    import os

    from maymust.cli.console import Console, UnusableError

    try:
        import starlette
        import uvicorn  # noqa: F401
    except ImportError:
        raise UnusableError("serve needs starlette and uvicorn, which are not installed: pip install 'maymust[web]'") from None
    del starlette
    from maymust.web.known import Known
    from maymust.web.server import Served
    from maymust.web.shelf import Shelf

    absent = [source for source in arguments.sources if not os.path.exists(source)]
    if absent:
        raise UnusableError(f"{', '.join(absent)}: there is no such file or directory")
    policy, text = _policy(arguments.policy)
    served = Served(Shelf(arguments.sources, None if policy is None else Known(policy)), text, arguments.host)
    return _serve(served, arguments, Console())


def _policy(name: str | None) -> tuple[Policy | None, str]:
    """The policy, and its text for the playground. Raises UnusableError for one that has no text."""
    from maymust.cli.console import UnusableError
    from maymust.cli.target import load_target
    from maymust.errors import PolicyError
    from maymust.policyfile.write import dump_policy

    if name is None:
        return None, FIRST
    target = load_target(name)
    if target.file is not None:
        return target.policy, target.file.source.text
    try:
        return target.policy, dump_policy(target.policy)
    except PolicyError as fault:
        raise UnusableError(f"{name}: {fault}") from fault


def _serve(served: Any, arguments: argparse.Namespace, console: Any) -> int:
    import socket

    import uvicorn

    from maymust.cli.console import UnusableError

    try:
        family = socket.AF_INET6 if ":" in arguments.host else socket.AF_INET
        listening = socket.create_server((arguments.host, arguments.port), family=family, backlog=128)
        # Inherited by what is accepted: events of a page are small, and none waits for the acknowledgement of the one before.
        listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except OSError as fault:
        taken = "; another program has it, choose one with --port" if fault.errno in (48, 98, 10048) else ""
        raise UnusableError(f"{arguments.host}:{arguments.port} cannot be listened at: {fault.strerror or fault}{taken}") from fault
    settings = uvicorn.Config(served.app(), log_level="warning", access_log=False, timeout_graceful_shutdown=2, server_header=False)
    server = uvicorn.Server(settings)
    served.stopping = lambda: server.should_exit
    shown = f"[{arguments.host}]" if ":" in arguments.host else arguments.host
    console.say(f"maymust: http://{shown}:{listening.getsockname()[1]}/ (Ctrl-C ends it)")
    with listening, contextlib.suppress(KeyboardInterrupt):
        server.run(sockets=[listening])
    return CLEAN

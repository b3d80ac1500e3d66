"""`maymust mcp-proxy`: a policy in front of an MCP server."""

from __future__ import annotations

import argparse
import contextlib
import logging
import sys
from typing import TYPE_CHECKING

from maymust.cli.exit_codes import CLEAN, FINDINGS, INTERRUPTED
from maymust.cli.options import add_command, path_argument

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers

ABOUT = """\
Runs an MCP server and stands between it and the client at stdin and stdout: the client is shown the
tools that the policy leaves it at the moment, calls that are not let through are answered with the
reason, and a person is asked by elicitation where the client has it. Everything else passes as it is.

One connection is one run of the policy. What cannot be held is said at the start, see the how-to page."""
EXAMPLES = """\
  maymust mcp-proxy --policy files.policy.yaml -- npx -y @modelcontextprotocol/server-filesystem /home/me
  maymust mcp-proxy --policy shop.policy.yaml --unlisted hide -- python -m shop.server"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `mcp-proxy`."""
    usage = "[options] --policy POLICY -- SERVER [ARGUMENT ...]"
    parser = add_command(subparsers, "mcp-proxy", "put a policy in front of an MCP server", usage, ABOUT, EXAMPLES)
    path_argument(parser, "--policy", metavar="POLICY", required=True, help="a policy file, or module:name in Python")
    about = "tools that the policy does not name: let through (default), or left out"
    parser.add_argument("--unlisted", choices=("allow", "hide"), default="allow", metavar="allow|hide", help=about)
    about = "tools that may not be called now: out of the list (default), or in it with the reason, for clients that ask for the list once"
    parser.add_argument("--closed", choices=("hide", "show"), default="hide", metavar="hide|show", help=about)
    about = "warn, where otherwise it is an error, of rules that a proxy cannot hold and of tools that the server does not have"
    parser.add_argument("--lenient", action="store_true", help=about)
    parser.add_argument("--quiet", action="store_true", help="tell errors only")
    parser.add_argument("server", nargs="+", metavar="SERVER", help="the command that runs the server over stdio, after --")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Relay until the client or the server goes."""
    import asyncio

    from maymust.cli.console import UnusableError
    from maymust.cli.target import load_target

    level = logging.ERROR if arguments.quiet else logging.WARNING
    logging.basicConfig(stream=sys.stderr, level=level, format="maymust mcp-proxy: %(message)s", force=True)
    # It writes down lines that it cannot read, whatever is in them.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    if arguments.policy == "-":
        raise UnusableError("--policy -: standard input belongs to the MCP client; give a file")
    with contextlib.redirect_stdout(sys.stderr):
        policy = load_target(arguments.policy).policy
    try:
        from maymust.mcp_proxy.limits import check_policy
        from maymust.mcp_proxy.stdio import serve
    except ImportError as error:
        # The cause is what the package says of itself; an SDK of another version fails later.
        raise UnusableError(f"mcp-proxy needs the MCP SDK: pip install 'maymust[mcp]' ({error.__cause__ or error})") from None
    check_policy(policy, lenient=arguments.lenient)
    settings = {"unlisted": arguments.unlisted == "allow", "closed": arguments.closed == "show", "lenient": arguments.lenient}
    try:
        client_went = asyncio.run(serve(policy, arguments.server, **settings))
    except asyncio.CancelledError:
        return INTERRUPTED
    return CLEAN if client_went else FINDINGS

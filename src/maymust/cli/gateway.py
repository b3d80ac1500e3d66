"""`maymust gateway`: the pass in front of any client."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from maymust.cli.exit_codes import CLEAN
from maymust.cli.options import add_command, path_argument, whole

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers
    from maymust.core.policy import Policy
    from maymust.gateway.options import Options
    from maymust.policyfile.gateway_terms import GatewayTerms

ABOUT = """\
Stands between a client and a provider, and puts the pass into each request: OpenAI Chat Completions,
OpenAI Responses and Anthropic Messages, streamed or not. The client changes its base URL, and nothing
else. What comes back is checked: calls and ends that the rules do not allow are answered here, and the
model is asked again, so that the client only sees lawful moves.

A policy is a policy file, or `module:name` in Python. The `gateway:` section of a policy file says what
belongs to a run, what has failed, and who is asked. Keys pass through and are never logged.

MAYMUST_APPROVALS_TOKEN is sent to the webhook that is asked about calls, as `Authorization: Bearer`."""
EXAMPLES = """\
  maymust gateway --policy desk.policy.yaml --upstream https://api.openai.com
  maymust gateway --policy desk.policy.yaml --upstream https://api.anthropic.com --shadow
  maymust gateway --policy desk.policy.yaml --by-path /finance=finance.policy.yaml --upstream URL --workers 4"""


def add_parser(subparsers: Subparsers) -> None:
    """Add `gateway`."""
    usage = "[options] --policy POLICY --upstream URL"
    parser = add_command(subparsers, "gateway", "put the pass in front of any client", usage, ABOUT, EXAMPLES)
    path_argument(parser, "--policy", metavar="POLICY", required=True, help="a policy file, or module:name in Python")
    parser.add_argument("--upstream", metavar="URL", required=True, help="the provider, such as https://api.openai.com")
    parser.add_argument("--host", default="127.0.0.1", metavar="HOST", help="where to listen (default: this machine only)")
    parser.add_argument("--port", type=_port, default=8808, metavar="PORT", help="default: 8808; 0 takes a free one")
    parser.add_argument("--workers", type=whole, default=1, metavar="N", help="processes (default: 1)")
    for by, what in (("path", "/PATH"), ("header", "'NAME: VALUE'"), ("model", "PATTERN")):
        about = f"another policy for requests with this {by if by != 'path' else 'beginning of the path, which is cut off'}"
        parser.add_argument(f"--by-{by}", action="append", default=[], metavar=f"{what}=POLICY", help=about)
    parser.add_argument("--shadow", action="store_true", help="change nothing, only report what would have been done")
    parser.add_argument("--asks", type=whole, metavar="N", help="ask the model at most N times for one request (default: 6)")
    parser.add_argument("--max-body", type=whole, metavar="BYTES", help="the longest request (default: 32 MiB)")
    parser.add_argument("--max-requests", type=whole, metavar="N", help="requests at once, in each process (default: 256)")
    parser.add_argument("--timeout", type=whole, metavar="SECONDS", help="for a whole request (default: 900)")
    parser.add_argument("--approval-timeout", type=whole, metavar="SECONDS", help="for a person's answer (default: 300)")
    about = "answer this name in the Host header as well, while only this machine is listened to"
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help=about)
    parser.add_argument("--quiet", action="store_true", help="log warnings only")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Serve until it is told to stop."""
    import logging
    from functools import partial

    from maymust.cli.console import Console, UnusableError

    try:
        from maymust.gateway.intake import LOOPBACK
        from maymust.gateway.server import serve
    except ModuleNotFoundError as error:
        raise UnusableError(f"the gateway needs {error.name}: pip install 'maymust[gateway]'") from error
    console = Console()
    options = _options(arguments)
    ways = [(by, text) for by in ("path", "header", "model") for text in getattr(arguments, f"by_{by}")]
    make_app = partial(app_for, arguments.policy, tuple(ways))
    make_app(options)  # what is wrong with the policies is told here, once
    if options.host not in LOOPBACK:
        console.say(f"maymust: {options.host} can be reached by others; rules say what a model may do, not who may ask it")

    def ready(url: str) -> None:
        shadow = ", reporting only" if options.shadow else ""
        console.say(f"maymust: listening on {url} for {options.upstream}{shadow}")

    serve(options, make_app, ready=ready, log_level=logging.WARNING if arguments.quiet else logging.INFO)
    return CLEAN


def app_for(policy: str, ways: Sequence[tuple[Any, str]], options: Options) -> Any:
    """The application of one worker."""
    from maymust.gateway.app import make_app
    from maymust.gateway.load import Way, load_routes

    return make_app(options, load_routes(policy, [Way(by, text) for by, text in ways], _find))


def _find(text: str) -> tuple[Policy, GatewayTerms]:
    from maymust.cli.console import UnusableError
    from maymust.cli.target import load_target
    from maymust.policyfile.gateway_terms import GatewayTerms

    if text == "-":
        raise UnusableError("the gateway cannot read a policy from stdin: each worker reads it for itself; give a file")
    target = load_target(text)
    return target.policy, target.file.gateway if target.file is not None else GatewayTerms()


def _options(arguments: argparse.Namespace) -> Options:
    from maymust.gateway.options import Options

    names = ("asks", "max_body", "max_requests", "timeout", "approval_timeout")
    given = {name: getattr(arguments, name) for name in names if getattr(arguments, name) is not None}
    return Options(
        upstream=arguments.upstream,
        host=arguments.host,
        port=arguments.port,
        workers=arguments.workers,
        shadow=arguments.shadow,
        approval_token=os.environ.get("MAYMUST_APPROVALS_TOKEN") or None,
        allow_hosts=tuple(name.lower() for name in arguments.allow_host),
        **given,
    )


def _port(text: str) -> int:
    number = int(text) if text.isdecimal() and len(text) < 6 else -1
    if not 0 <= number <= 65535:
        raise argparse.ArgumentTypeError(f"it has to be a port from 0 to 65535, not {text!r}")
    return number

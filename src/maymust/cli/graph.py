"""`maymust graph`: a policy as a picture."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from maymust.cli.exit_codes import CLEAN, UNDECIDED
from maymust.cli.options import add_command, path_argument

if TYPE_CHECKING:
    from maymust.cli.options import Subparsers

ABOUT = """\
Prints the smallest graph that behaves as the policy does: each node is a situation, each edge a call.
A doubled node says that the run may end there; `must t` that t has to be called; a dashed one that
there is no next step. A failed call that has no edge changes nothing."""
EXAMPLES = """\
  maymust graph research.policy.yaml --format mermaid
  maymust graph research.policy.yaml --format svg -o research.svg"""
FORMATS = ("mermaid", "dot", "svg")


def add_parser(subparsers: Subparsers) -> None:
    """Add `graph`."""
    parser = add_command(subparsers, "graph", "a policy as a picture", "[options] POLICY", ABOUT, EXAMPLES)
    path_argument(parser, "policy", metavar="POLICY", help="a policy file, - for stdin, or module:name in Python")
    about = f"one of {', '.join(FORMATS)} (default: mermaid)"
    parser.add_argument("--format", choices=FORMATS, default="mermaid", metavar="FORMAT", help=about)
    path_argument(parser, "-o", "--output", metavar="FILE", help="write to a file instead of stdout")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Print the graph."""
    from maymust.cli.console import Console
    from maymust.cli.target import load_target
    from maymust.views.automaton import LIMIT, TooLargeError, policy_graph
    from maymust.views.graph_svg import svg
    from maymust.views.graph_text import dot, mermaid

    console = Console(arguments.output)
    target = load_target(arguments.policy)
    try:
        with console.progress(f"drawing {target.name}"):
            graph = policy_graph(target.policy)
    except TooLargeError:
        console.error(f"{target.name} has more than {LIMIT} states, which nobody can look at; verify and check still work on it")
        return UNDECIDED
    if arguments.format == "svg":
        console.result(svg(graph, title=target.name))
    else:
        console.result(mermaid(graph) if arguments.format == "mermaid" else dot(graph))
    return CLEAN

"""What is measured against what: one table of versions. The adapters' tests run with the same ones.

Months are those of the release on the package index.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from pathlib import Path

from scripts.check_adapters import environment

ROOT = Path(__file__).resolve().parent.parent.parent


@dataclass(frozen=True)
class Peer:
    """A framework or library: where it is installed, what from, when that was released, and what a program imports first."""

    title: str
    home: str
    distribution: str
    version: str
    released: str
    imports: str

    @property
    def pin(self) -> str:
        """For pip."""
        return f"{self.distribution}=={self.version}"


PEERS: dict[str, Peer] = {
    "agent_framework": Peer(
        "Microsoft Agent Framework",
        "agent_framework",
        "agent-framework-core",
        "1.23.0",
        "2026-10",
        "from agent_framework import Agent, tool",
    ),
    "langchain": Peer("LangChain", "langchain", "langchain", "1.5.2", "2026-11", "from langchain.agents import create_agent"),
    "beeai": Peer(
        "BeeAI", "beeai", "beeai-framework", "0.1.85", "2026-09", "from beeai_framework.agents.requirement import RequirementAgent"
    ),
    "pydantic_ai": Peer("pydantic-ai", "pydantic_ai", "pydantic-ai-slim", "2.68.0", "2026-11", "from pydantic_ai import Agent"),
    "openai_agents": Peer("OpenAI Agents SDK", "openai_agents", "openai-agents", "0.24.0", "2026-10", "from agents import Agent, Runner"),
    "smolagents": Peer("smolagents", "smolagents", "smolagents", "1.26.0", "2026-05", "from smolagents import ToolCallingAgent"),
    "cedarpy": Peer("cedarpy", "deciders", "cedarpy", "4.12.2", "2026-10", "import cedarpy"),
    "transitions": Peer("transitions", "deciders", "transitions", "0.9.3", "2025-07", "import transitions"),
    "python-statemachine": Peer("python-statemachine", "deciders", "python-statemachine", "3.2.2", "2026-10", "import statemachine"),
    "casbin": Peer("casbin", "deciders", "casbin", "1.43.0", "2025-05", "import casbin"),
}

AGENTS = tuple(name for name, peer in PEERS.items() if peer.home == name)
"""Those that run agents."""

MAYMUST = "maymust"


HOMES = (MAYMUST, *dict.fromkeys(peer.home for peer in PEERS.values()))
"""All virtualenvs; maymust's has what its core needs and nothing else."""


@cache
def python_of(home: str) -> str:
    """The Python of a virtualenv, which is made if need be."""
    return str(environment(home, [peer.pin for peer in PEERS.values() if peer.home == home]))

"""What the reducer needs to know of an agent: immutable, shared by all runs, never stored."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, Literal

from maymust.agent.compaction import Compaction
from maymust.agent.final_answer import FinalAnswer
from maymust.agent.journal import Store
from maymust.agent.loop_guard import LoopGuard
from maymust.agent.present import Present
from maymust.agent.settings import listed, of_kind
from maymust.agent.templates import DEFAULT, Templates
from maymust.core.policy import Policy
from maymust.errors import PolicyError
from maymust.models.capabilities import Capabilities
from maymust.tools.function_tool import Tool

OnStall = Literal["relax", "stop"]
PromptLayout = Literal["stable", "classic"]
Narrow = Literal["status", "schema"]
"""Where the model is told what rules leave of arguments: in the step's status, or in the schemas of the tools as well."""


@dataclass(frozen=True)
class LoopPlan:
    """The configuration of the loop.

    `tools` are the agent's own, in order; `loadable` may be added during a run; rules may speak of both.
    `told` is what the model can be told about tools.
    """

    policy: Policy
    tools: tuple[Tool, ...]
    loadable: tuple[Tool, ...]
    final: FinalAnswer[Any]
    agent: str | None = None
    guard: LoopGuard | None = None
    on_stall: OnStall = "relax"
    layout: PromptLayout = "stable"
    told: Capabilities = field(default_factory=Capabilities)
    templates: Templates = DEFAULT
    compaction: Compaction | None = None
    narrow: Narrow = "status"

    @cached_property
    def present(self) -> Present:
        """The tools that every run begins with."""
        return Present(self.tools)

    @cached_property
    def known(self) -> Mapping[str, Tool]:
        """The tools that rules may speak of, by name."""
        return {tool.name: tool for tool in (*self.tools, *self.loadable)}

    @cached_property
    def answers_in_text(self) -> bool:
        """Whether `final_answer` is not sent to the model as a tool."""
        return not self.policy.final_answer_as_tool

    @cached_property
    def status_stays(self) -> bool:
        """Whether status messages stay in the conversation: what is said once must not change for these models."""
        return self.told.prefix_bound or self.told.subset == "tool_changes"

    @cached_property
    def tracks_offers(self) -> bool:
        """Whether the model is told inside the conversation how the offer changes."""
        return self.told.subset == "tool_changes" or self.told.inline_tools

    @cached_property
    def reads_said(self) -> bool:
        """Whether some built-in rule depends on what the user has said."""
        return any(callable(getattr(requirement, "excuses", None)) for requirement in self.policy.requirements)

    @cached_property
    def fingerprint(self) -> str:
        """Hash of the policy: names, parameters, tool names (design 3.12)."""
        return self.policy.hash

    @cached_property
    def description(self) -> dict[str, Any]:
        """The policy in words of JSON, to name what differs when a run is resumed under another one."""
        return self.policy.describe()


def check_settings(on_stall: str, prompt_layout: str, narrow: str | None, compaction: object, store: object) -> None:
    """Raise PolicyError for a setting that is none of what it may be; callers without a type checker pass anything."""
    if on_stall not in ("relax", "stop"):
        raise PolicyError(f"on_stall={on_stall!r}: give 'relax' or 'stop'")
    if prompt_layout not in ("stable", "classic"):
        raise PolicyError(f"prompt_layout={prompt_layout!r}: give 'stable' or 'classic'")
    if narrow not in (None, "status", "schema"):
        raise PolicyError(f"narrow={narrow!r}: give 'status' or 'schema'")
    if compaction is not None and not isinstance(compaction, Compaction):
        raise PolicyError(f"compaction={compaction!r}: give ShortenOutputs(), Summarise(), or an object with limit and compact()")
    if store is not None and not isinstance(store, Store):
        raise PolicyError(f"store={store!r}: give SqliteStore(path), or an object with the methods of a store")


def policy_of(
    policy: Policy | None, requirements: Iterable[Any] | None, as_tool_: bool | None, own: tuple[Tool, ...], loadable: tuple[Tool, ...]
) -> Policy:
    """The policy of an agent: the one given, or one of its requirements. Raises PolicyError when they contradict each other."""
    if policy is None:
        rules = () if requirements is None else listed("requirements", requirements)
        return Policy(rules, tools=[*own, *loadable], final_answer_as_tool=as_tool_ is not False)
    of_kind("policy", policy, Policy, "a Policy; load_policy(path) reads one from a file")
    if requirements is not None:
        raise PolicyError("Agent: give requirements or policy, not both")
    if as_tool_ is not None:
        raise PolicyError("Agent: final_answer_as_tool is a setting of the policy; leave it out, or make the policy with it")
    have, know = {tool.name for tool in (*own, *loadable)}, set(policy.tools)
    if have != know:
        missing, extra = sorted(know - have), sorted(have - know)
        parts = [f"the policy knows {', '.join(missing)}, which the agent has not"] if missing else []
        parts += [f"the agent has {', '.join(extra)}, which the policy does not know"] if extra else []
        raise PolicyError(f"Agent: the policy's tools must be the agent's: {'; '.join(parts)}")
    names = [tool.name for tool in (*own, *loadable)]
    if len(names) != len(have):
        raise PolicyError(
            f"two tools have the name {next(name for name in names if names.count(name) > 1)!r}; give one of them another name"
        )
    return policy


def supervised(policy: Policy, max_turns: int | None) -> Policy:
    """The policy with a supervisor."""
    # What proves policies is a quarter of what an agent would load, and few agents need it.
    made: Policy = importlib.import_module("maymust.verify.supervise").supervise(policy, max_turns=max_turns)
    return made

"""`supervise`: a policy that also holds back the calls after which its obligations could no longer be met."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from maymust.core.bounds import Bounds
from maymust.core.fold import Mode
from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.requirement import RunView
from maymust.core.rule import Rule
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike
from maymust.core.verdict import Extra
from maymust.errors import DeadEndError
from maymust.verify.automaton import Automaton
from maymust.verify.prove import check_number, check_policy
from maymust.verify.supervisor import LIMIT, Supervisor
from maymust.verify.world import World

NAME = "supervisor"
"""Whose rules the derived denials are, in `permit.why`."""

_EMPTY = History()


class SupervisedPolicy(Policy):
    """A policy with a supervisor. Its permits deny more than the plain ones, and never allow more.

    What it denies is derived from obligations, so a permit with `relaxed=True` is the plain one.
    """

    def __init__(self, policy: Policy, world: World, *, max_turns: int | None, limit: int) -> None:
        super().__init__(policy.requirements, tools=policy.specs, final_answer_as_tool=policy.final_answer_as_tool)
        self.plain = policy
        """The policy that is supervised."""
        self.supervisor: Supervisor = Supervisor(Automaton(policy, world), max_turns=max_turns, limit=limit)
        self._extras: dict[object, Extra] = {}

    def permit(
        self,
        history: History = _EMPTY,
        run: RunView | None = None,
        *,
        memories: Mapping[str, dict[str, Any]] | None = None,
        extra: Sequence[Extra] = (),
        given: Mapping[str, Iterable[Rule]] | None = None,
        relaxed: bool = False,
        mode: Mode = None,
        present: Sequence[ToolLike] | None = None,
    ) -> Permit:
        """Return the pass for the next turn, as `Policy.permit` does, without the calls that are held back."""

        def ask(more: Sequence[Extra]) -> Permit:
            return super(SupervisedPolicy, self).permit(
                history, run, memories=memories, extra=more, given=given, relaxed=relaxed, mode=mode, present=present
            )

        held = () if relaxed else self.supervisor.held_back(history)
        if not held:
            return ask(extra)
        try:
            return ask((*extra, *map(self._extra, held)))
        except DeadEndError:
            if any(one.lapses_force for one in extra):
                raise  # what the loop guard closes it can do without
            # Something that the supervisor knows nothing of (a check, a tool that went away) has closed the calls it had left open.
            return ask(extra)

    def _extra(self, held: tuple[str, str]) -> Extra:
        known = self._extras.get(held)
        if known is None:
            tool, reason = held
            known = self._extras[held] = Extra(NAME, Rule(tool, allowed=False, reason=reason), lapses_force=True)
        return known

    def surely_admits(
        self,
        tool: str,
        bounds: Bounds,
        *,
        run: RunView | None = None,
        memories: Mapping[str, dict[str, Any]] | None = None,
        present: Sequence[ToolLike] | None = None,
    ) -> bool:
        """True when the call is admitted however the open calls end, and is not held back either."""
        if not super().surely_admits(tool, bounds, run=run, memories=memories, present=present):
            return False
        if tool == FINAL_ANSWER:
            return True
        limit = self.supervisor.max_turns
        left = None if limit is None else limit - len(bounds.history) - len(bounds.tail)
        return self.supervisor.never_holds(tool, left)

    def describe(self) -> dict[str, Any]:
        """The plain policy's description, and how it is supervised."""
        world = self.supervisor.automaton.world
        return super().describe() | {
            "supervised": {
                "max_turns": self.supervisor.max_turns,
                "may_fail": sorted(world.may_fail),
                "may_be_denied": sorted(world.may_be_denied),
            }
        }


def supervise(
    policy: Policy,
    *,
    max_turns: int | None = None,
    may_fail: Iterable[Any] = (),
    may_be_denied: Iterable[Any] = (),
    limit: int = LIMIT,
) -> Policy:
    """Return the same policy with a supervisor: as permissive as can be, as long as the run can still end.

    A call is held back when after it, for some outcome that is declared possible, the obligations could no longer be met. Where
    the world may spoil every call, the ones that leave a chance stay open; where there is none either, nothing is held back.

    max_turns      a call is also held back when the turns that are left would no longer do; every step so far counts as a turn
    may_fail       tools whose calls may come back failed
    may_be_denied  tools whose calls a person may say no to
    limit          states to look at from where a run stands; beyond it nothing is held back

    Raises PolicyError for names the policy does not know. Supervising a supervised policy replaces its supervisor.
    """
    check_policy(policy, "supervise")
    check_number(max_turns, "max_turns")
    check_number(limit, "limit")
    plain = policy.plain if isinstance(policy, SupervisedPolicy) else policy
    world = World(plain.tools, may_fail=may_fail, may_be_denied=may_be_denied)
    return SupervisedPolicy(plain, world, max_turns=max_turns, limit=limit)

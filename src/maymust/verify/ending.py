"""Whether a run can end, asked of single states without looking at all ways there."""

from __future__ import annotations

from maymust.verify.actions import Actions
from maymust.verify.automaton import Automaton
from maymust.verify.hopeless import Hopeless
from maymust.verify.stubborn import Stubborn


class OutOfBounds(Exception):
    """There was more to look at than the limit allows."""


class Ending:
    """Answers whether the end can be reached, and keeps the answers.

    looked   how many states were looked at

    Raises OutOfBounds when a question takes more than `limit` states.
    """

    def __init__(self, actions: Actions, limit: int) -> None:
        self.actions = actions
        self.automaton: Automaton = actions.automaton
        self.looked: int = 0
        self._limit = self._left = limit
        self._stubborn = Stubborn(actions)
        self._hopeless = Hopeless(actions.automaton, actions.interference, actions.out_of_use)
        self._known: dict[int, bool] = {}
        self._early: dict[int, bool] = {}

    def can_end_from(self, state: int) -> bool:
        """Whether some way leads from any state to one in which the run may end."""
        self._left = self._limit
        return self._can_end_from(state)

    def _can_end_from(self, state: int) -> bool:
        if not self.automaton.compiled.is_past(state):
            return self._can_end_early(state)
        situation = self.automaton.situation(state)
        if situation.may_stop or situation.fault is not None:
            return situation.may_stop
        if situation.forced is None:
            return self._can_end(self.automaton.settled(state))
        outcomes = self.actions.from_any(state)
        return outcomes.ends is not None or any(self._can_end(after) for after in outcomes.states)

    def _can_end_early(self, state: int) -> bool:
        """The same where a step is still to come at which something is forced: there, every state is looked at."""
        known = self._early.get(state)
        if known is not None:
            return known
        seen, waiting = {state: -1}, [state]
        while waiting:
            here = waiting.pop()
            past = self.automaton.compiled.is_past(here)
            if self._early.get(here) or (self._can_end_from(here) if past else self.automaton.situation(here).may_stop):
                while here != -1:
                    self._early[here] = True
                    here = seen[here]
                return True
            if past or self._early.get(here) is False:
                continue
            self._count_one()
            for tool in self.automaton.situation(here).tools:
                for after in self.actions.calls(here, tool):
                    if after not in seen:
                        seen[after] = here
                        waiting.append(after)
        self._early.update(dict.fromkeys(seen, False))
        return False

    def possible(self, state: int) -> int:
        """The tools (bits) that can be called from a settled state on, as far as that is a matter of what they wait for."""
        return self._hopeless.possible(state)

    def _count_one(self) -> None:
        self.looked += 1
        self._left -= 1
        if self._left < 0:
            raise OutOfBounds

    def _can_end(self, state: int) -> bool:
        """Whether some way leads from a settled state to one in which the run may end."""
        known = self._known.get(state)
        if known is not None:
            return known
        seen, waiting = {state: -1}, [state]
        while waiting:
            here = waiting.pop()
            if self._known.get(here) or self.automaton.situation(here).may_stop:
                return self._remember_way(seen, here)
            if self._known.get(here) is False or self._hopeless.is_hopeless(here):
                continue
            self._count_one()
            for outcomes in self._stubborn.towards_end(here):
                if outcomes.ends is not None:
                    return self._remember_way(seen, here)
                for after in outcomes.states:
                    if after not in seen:
                        seen[after] = here
                        waiting.append(after)
        self._known.update(dict.fromkeys(seen, False))
        return False

    def _remember_way(self, seen: dict[int, int], here: int) -> bool:
        while here != -1:
            self._known[here] = True
            here = seen[here]
        return True

"""Whether a run can end, asked of settled states without looking at all ways there."""

from __future__ import annotations

from maymust.verify.actions import Actions
from maymust.verify.hopeless import Hopeless
from maymust.verify.stubborn import Stubborn


class OutOfBounds(Exception):
    """There was more to look at than the limit allows."""


class Ending:
    """Answers whether the end can be reached, and keeps the answers.

    looked   how many states were looked at

    Raises OutOfBounds beyond the limit.
    """

    def __init__(self, actions: Actions, limit: int) -> None:
        self.actions = actions
        self.automaton = actions.automaton
        self.looked = 0
        self._limit = limit
        self._stubborn = Stubborn(actions)
        self._hopeless = Hopeless(actions.automaton, actions.interference, actions.out_of_use)
        self._known: dict[int, bool] = {}

    def can_end_from(self, state: int) -> bool:
        """Whether some way leads from any state, in which no step that a rule asks for is still to come, to the end."""
        situation = self.automaton.situation(state)
        if situation.may_stop or situation.fault is not None:
            return situation.may_stop
        if situation.forced is None:
            return self.can_end(self.automaton.settled(state))
        outcomes = self.actions.from_any(state)
        return outcomes.ends is not None or any(self.can_end(after) for after in outcomes.states)

    def can_end(self, state: int) -> bool:
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
            self.looked += 1
            if self.looked > self._limit:
                raise OutOfBounds
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

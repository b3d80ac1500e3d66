"""The permit of a recorded turn, made anew: it knows its requirements, so that what would change it can be found."""

from __future__ import annotations

from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.errors import MaymustError
from maymust.trace.recording import RecordedTurn


def permit_anew(turn: RecordedTurn, policy: Policy) -> Permit | None:
    """The permit that a policy gives in the situation of a turn; None when there is none.

    So it is in a turn that was relaxed, or that a rule of the run itself has helped.
    """
    present = [tool for tool in turn.permit.tools if tool in policy.tools]
    try:
        return policy.permit(turn.history, run=turn.view, memories=dict(turn.memories), present=present)
    except MaymustError:
        return None

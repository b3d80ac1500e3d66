"""What to suggest where a run gets into a state from which it cannot end."""

from __future__ import annotations

from maymust.requirements.wording import listed
from maymust.verify.survey import Doom, Survey


def way_out(survey: Survey, doom: Doom) -> str:
    """Return the help for a finding: what should wait for what, and whether a supervisor would see to it."""
    if not doom.path:
        return "Loosen one of these rules"
    last = doom.path[-1]
    waiting = tuple(name for name in survey.owed_tools(doom.owing) if name != last.tool)
    if last.outcome.value != "ok":
        text = f"Leave another way to the end for when {last.tool} fails"
    elif waiting:
        text = f"Let {last.tool} wait for {listed(waiting)}: only_after=[{', '.join(repr(name) for name in waiting)}]".replace("'", '"')
    elif doom.forced is not None:
        text = "Give one of the forces a limit (max_invocations) in its own requirement, so that it lapses"
    else:
        text = f"Loosen the rules that close tools after {last.tool}"
    supervised = survey.safe_steps is not None and survey.complete
    return f"{text}; or use supervise(policy), which holds such calls back" if supervised else text

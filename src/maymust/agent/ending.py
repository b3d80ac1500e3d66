"""How a run ends: its stop reason, and what was owed and not done."""

from __future__ import annotations

from maymust.agent.admission import owed
from maymust.agent.state import RunState
from maymust.agent.turn import StopReason


def end_run(state: RunState, reason: StopReason) -> None:
    """End the run. What an answer left undone was noted when it was admitted; otherwise it is what is owed now."""
    if reason not in ("final_answer", "text_answer"):
        state.unmet = owed(state, state.history)
    state.phase, state.stop_reason, state.coming = "ended", reason, None
    state.calls, state.recorded = (), 0

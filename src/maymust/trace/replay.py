"""A recorded run, folded again."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

from maymust.core.fold import Mode
from maymust.core.history import History
from maymust.core.narrowing import outside
from maymust.core.permit import Permit
from maymust.core.policy import Policy
from maymust.core.rule import Rule
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import FINAL_ANSWER, ToolLike
from maymust.core.verdict import Extra, Voice
from maymust.errors import PermitError, PolicyError
from maymust.trace.difference import Difference, cause, of_permits
from maymust.trace.recording import RecordedTurn, Recording

_MODES: tuple[Mode, ...] = ("auto", "none")
_GIVING_WAY = ("budget", "loop_guard", "ladder")
"""Rules of the run itself before which the force of others lapses."""


@dataclass(frozen=True, slots=True)
class Replay:
    """What came of it.

    differences  where the policy says something else than what was recorded, in the order of the run
    undecided    what could not be folded again, in sentences
    turns        how many turns were folded
    """

    differences: tuple[Difference, ...]
    undecided: tuple[str, ...] = ()
    turns: int = 0


def replay(recording: Recording, policy: Policy, *, taken: tuple[str, ...] = ()) -> Replay:
    """Fold the recorded history again under a policy, and compare each permit, and each call, with what was recorded.

    The run's own rules (budget, loop guard, `tool_choice`, tools that always ask) are taken as they were recorded. So are the rules of
    the requirements in `taken`, which are not in `policy`, and those of custom requirements: nothing but the history is known here.
    """
    undecided = [f"{name}: its rules are taken as they were recorded" for name in taken]
    undecided += [f"{bound.name}: it is Python code, and its rules are taken as they were recorded" for bound in policy.opaque]
    if not recording.exact:
        undecided.append("what rules remembered, and the clock, are known of the end of the run only")
    found: list[Difference] = []
    for place, turn in enumerate(recording.turns):
        found.extend(_Fold(recording, turn, policy, taken).differences(recording.steps_of(place)))
    return Replay(tuple(found), tuple(dict.fromkeys(undecided)), len(recording.turns))


class _Fold:
    """One turn, folded again."""

    def __init__(self, recording: Recording, turn: RecordedTurn, policy: Policy, taken: tuple[str, ...]) -> None:
        self.turn, self.policy, self.whole = turn, policy, recording.history
        self.mode: Mode = next((mode for mode in _MODES if mode == recording.mode), None)
        voices = [Voice.from_dict(said, order) for order, said in enumerate(turn.permit.to_dict()["voices"])]
        own = [voice for voice in voices if voice.is_extra or voice.priority == 0]
        stand_ins = [voice for voice in voices if voice.requirement in taken and voice not in own]
        self.extra = tuple(_extra(voice, turn.relaxed and voice in stand_ins) for voice in (*own, *stand_ins))
        opaque = {bound.name for bound in policy.opaque}
        self.given: dict[str, tuple[Rule, ...]] = {
            name: tuple(voice.rule for voice in voices if voice.requirement == name and voice not in own) for name in opaque
        }
        # What these say between two calls of a turn was not recorded.
        self.steady = not opaque and not stand_ins
        schemas = {tool.name: tool for tool in recording.tools}
        self.present: list[ToolLike] = [schemas.get(name, name) for name in turn.permit.tools if name != FINAL_ANSWER]

    def differences(self, steps: tuple[Step, ...]) -> Iterator[Difference]:
        turn = self.turn
        step = turn.first_step + 1
        try:
            permit = self._permit(turn.history)
        except (PermitError, PolicyError) as fault:
            yield Difference(turn.number, step, "error", "a permit", f"no next step: {fault}", rules=_names(fault))
            return
        yield from of_permits(turn.number, step, turn.permit, permit)
        yield from self._calls(permit, steps)

    def _calls(self, permit: Permit, steps: tuple[Step, ...]) -> Iterator[Difference]:
        """Calls that ran, and would not be let through; those that a verdict of the turn has told of are left out."""
        for place, step in enumerate(steps):
            if step.outcome is Outcome.REFUSED or step.tool not in permit.allowed or (place and not self.steady):
                continue
            try:
                now = self._permit(self._history_before(place, steps))
            except PermitError as fault:
                yield self._refused(place, step, _names(fault), (str(fault),))
                return
            if step.tool not in now.allowed:
                yield self._refused(place, step, *cause(now, step.tool))
            elif step.outcome is Outcome.OK:
                wrong = outside(now, step.tool, step.arguments)
                if wrong is not None:
                    names = tuple(spoken.requirement for spoken in now.why(step.tool) if spoken.rule.arguments)
                    yield self._refused(place, step, names, (wrong,))

    def _refused(self, place: int, step: Step, rules: tuple[str, ...], reasons: tuple[str, ...]) -> Difference:
        turn = self.turn
        return Difference(turn.number, turn.first_step + place + 1, "call", step.outcome.value, "refused", step.tool, rules, reasons)

    def _history_before(self, place: int, steps: tuple[Step, ...]) -> History:
        """What a call was judged after: the calls before it; the final answer after all others of its turn."""
        history = self.whole.at(len(self.turn.history) + place)
        if steps[place].tool == FINAL_ANSWER:
            for step in steps[place + 1 :]:
                history = history.add(step)
        return history

    def _permit(self, history: History) -> Permit:
        return self.policy.permit(
            history,
            run=self.turn.view,
            memories=dict(self.turn.memories),
            extra=self.extra,
            given=self.given or None,
            relaxed=self.turn.relaxed,
            mode=self.mode,
            present=self.present,
        )


def _extra(voice: Voice, relaxed: bool) -> Extra:
    rule = replace(voice.rule, forced=False, prevent_stop=False) if relaxed else voice.rule
    return Extra(voice.requirement, rule, lapses_force=voice.is_extra and voice.requirement in _GIVING_WAY, priority=voice.priority)


def _names(fault: Exception) -> tuple[str, ...]:
    found: Any = getattr(fault, "requirements", None) or (getattr(fault, "requirement", None),)
    return tuple(str(name) for name in found if name)

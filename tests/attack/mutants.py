"""Deliberate faults of the loop: each is one function of it with a few words changed."""

from __future__ import annotations

import importlib
import inspect
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Mutant:
    """`old` becomes `new` in the function or method `where` (module:name or module:Class.name)."""

    name: str
    where: str
    old: str
    new: str


@contextmanager
def planted(mutant: Mutant) -> Iterator[None]:
    """The library with this fault in it, for as long as the block lasts. Raises LookupError when the fault no longer fits the source."""
    module_name, _, path = mutant.where.partition(":")
    module = importlib.import_module(f"maymust.{module_name}")
    owner_name, _, name = path.rpartition(".")
    owner: Any = getattr(module, owner_name) if owner_name else module
    original = inspect.getattr_static(owner, name)
    faulty = _changed(mutant, module, original, name)
    holders = [owner] if owner_name else [one for key, one in list(sys.modules.items()) if key.partition(".")[0] == "maymust"]
    places = [(holder, key) for holder in holders for key, value in list(vars(holder).items()) if value is original]
    for holder, key in places:
        setattr(holder, key, faulty)
    try:
        yield
    finally:
        for holder, key in places:
            setattr(holder, key, original)


def _changed(mutant: Mutant, module: Any, original: Any, name: str) -> Any:
    source = textwrap.dedent(inspect.getsource(original))
    if source.count(mutant.old) != 1:
        raise LookupError(
            f"{mutant.name}: {mutant.old!r} stands {source.count(mutant.old)} times in {mutant.where}; bring the mutant up to date"
        )
    made: dict[str, Any] = {}
    exec(compile(source.replace(mutant.old, mutant.new), f"<{mutant.name}>", "exec"), vars(module), made)
    return made[name]


RESULT = 'state.messages = state.messages.add(Message("tool", record.text, call_id=record.call_id))'

MUTANTS = (
    Mutant("the offer is ignored", "agent.admission:_judge", "if record.name not in offer.allowed:", "if False:"),
    Mutant(
        "a call is not judged again after the calls before it",
        "agent.admission:_judge",
        "if record.name in permit.allowed else",
        "if True else",
    ),
    Mutant("an answer counts beside a failure", "agent.admission:_judge_final", "if failed:", "if False:"),
    Mutant("a call never waits for what it depends on", "agent.admission:_judge", "if sure else None", "if True else None"),
    Mutant(
        "calls under way are taken for refused ones",
        "agent.admission:_before",
        "if record.refusal is not None else None",
        "if True else None",
    ),
    Mutant("the step budget is looked at between turns only", "agent.admission:_judge_steps", "if least >= limit:", "if False:"),
    Mutant("a denied call counts as one that ran", "agent.call_runner:CallRunner._ask", "Done(Outcome.DENIED,", "Done(Outcome.OK,"),
    Mutant("a no is not heard", "agent.call_runner:CallRunner._ask", "if not answer.allow:", "if False:"),
    Mutant(
        "a refused call runs",
        "agent.call_runner:CallRunner._outcome",
        "record.refusal is not None or self._tool is None",
        "self._tool is None",
    ),
    Mutant("the bounds of a rule are not looked at", "agent.call_runner:CallRunner._outcome", "if outside is not None:", "if False:"),
    Mutant("prevent_stop is dropped", "core.fold:fold", "if voice.rule.prevent_stop and binding:", "if False:"),
    Mutant(
        "permissions are relaxed on the last rung",
        "core.fold:_Tool.hear",
        "if not rule.allowed or rule.hidden:",
        "if forces and (not rule.allowed or rule.hidden):",
    ),
    Mutant("a force is forgotten", "core.fold:_Tool.hear", "if forces and rule.forced:", "if False:"),
    Mutant(
        "a result is given twice",
        "agent.batch:_record_prefix",
        RESULT,
        f"{RESULT}; {RESULT}",
    ),
    Mutant(
        "the result of a refused call is lost",
        "agent.batch:_record_prefix",
        RESULT,
        f"{RESULT} if record.outcome is not Outcome.REFUSED else state.messages",
    ),
    Mutant("a repeated id is kept", "agent.batch:_with_own_ids", "while not call_id or call_id in known:", "while not call_id:"),
    Mutant(
        "a failure releases the required choice",
        "agent.batch:_record_prefix",
        "elif record.outcome is Outcome.OK and",
        "elif record.outcome is Outcome.FAILED and",
    ),
    Mutant("the ladder has no last rung", "agent.planning:plan_turn", "if state.bad_replies >= RELAX:", "if False:"),
    Mutant("a nudge is not counted", "agent.batch:bad_reply", "nudges=state.counters.nudges + 1", "nudges=state.counters.nudges"),
    Mutant(
        "middleware opens a closed tool by answering",
        "agent.call_runner:CallRunner._with_middleware",
        'verdict == "answered" and self._record.refusal is None',
        'verdict == "answered"',
    ),
    Mutant("a removed tool stays", "agent.exposure:apply_changes", "tools.pop(name, None)", "pass"),
    Mutant("a child without an answer has succeeded", "agent.child:ChildTool.run", "if state.answer is None:", "if False:"),
    Mutant(
        "a value is used up by calls with any other",
        "requirements.keyed_calls:KeyedCalls._note",
        "key = key_of(call.value)",
        "key = None",
    ),
    Mutant("a spent budget ends nothing", "agent.planning:plan_turn", "over = spent(state)", "over = None"),
)
"""Each of these would be a hole in what the design promises."""

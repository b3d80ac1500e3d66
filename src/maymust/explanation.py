"""A verdict in words: the rules behind it, what of the history they rest on, and what would change it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from maymust.core.history import History
from maymust.core.permit import Permit
from maymust.core.speakers import guard_of
from maymust.core.step import Outcome
from maymust.core.tool_spec import FINAL_ANSWER
from maymust.core.verdict import Spoken, Verdict
from maymust.errors import PolicyError
from maymust.requirements.bound_argument import BoundArgument
from maymust.requirements.bound_conditional import BoundConditional
from maymust.requirements.bound_same import BoundSame
from maymust.requirements.wording import listed
from maymust.verify.automaton import Automaton
from maymust.verify.explore import Graph, Regions, named_by
from maymust.verify.opaque import opaque_of
from maymust.verify.supervise import NAME as SUPERVISOR
from maymust.verify.witness import words
from maymust.verify.world import World

LIMIT = 20_000
"""How many states are looked at for a way to open a tool."""

_OPEN = (Verdict.FORCED, Verdict.ALLOWED, Verdict.ASK)


@dataclass(frozen=True, slots=True)
class Explanation:
    """Why a tool has its verdict, and what would change it.

    tool       the tool
    verdict    its verdict
    rules      the rules that spoke about it, highest priority first
    evidence   facts of the history, in sentences
    change     a shortest sequence of successful calls after which it may be called: () when it may be called now, None when none is known
    waits_for  what no call of a tool can change: a check that says no, a person's no, a rule of the run itself
    nothing    True when no call and no check can ever open it again in this run
    """

    tool: str
    verdict: Verdict
    rules: tuple[Spoken, ...] = ()
    evidence: tuple[str, ...] = ()
    change: tuple[str, ...] | None = None
    waits_for: tuple[str, ...] = ()
    nothing: bool = False

    @property
    def outlook(self) -> str:
        """What would change the verdict, in a sentence."""
        if self.verdict is Verdict.ASK:
            return f"{self.tool} may be called, after a person's yes"
        if self.verdict in _OPEN:
            return f"{self.tool} {'has to be called' if self.verdict is Verdict.FORCED else 'may be called'} now"
        if self.nothing:
            return f"nothing can open {self.tool} any more in this run"
        waits = f"{listed(self.waits_for)} {'lets' if len(self.waits_for) == 1 else 'let'} it" if self.waits_for else ""
        if self.change is None:
            return f"{self.tool} opens when {waits}" if waits else f"no way to open {self.tool} was found"
        calls = f"after {', '.join(self.change)}" if self.change else ""
        return f"{self.tool} opens {' and when '.join(filter(None, (calls, waits)))}" if calls else f"{self.tool} opens when {waits}"

    def __str__(self) -> str:
        lines = [f"{self.verdict.glyph} {self.tool} is {self.verdict.word}"]
        lines.extend(f"  {spoken.requirement}: {_said(spoken)}" for spoken in self.rules if _matters(spoken))
        lines.extend(f"  {fact}" for fact in self.evidence)
        return "\n".join((*lines, f"  {self.outlook}"))


def _said(spoken: Spoken) -> str:
    rule = spoken.rule
    limits = f"it limits {' and '.join(rule.arguments)}" if rule.arguments else ""
    return rule.reason or spoken.evidence or ("a person is asked" if rule.ask else limits)


def _matters(spoken: Spoken) -> bool:
    rule = spoken.rule
    return not rule.allowed or rule.hidden or rule.forced or rule.prevent_stop or bool(rule.ask) or bool(rule.arguments)


def explain(permit: Permit, tool: str, *, limit: int = LIMIT) -> Explanation:
    """Explain the verdict of a permit on a tool. Raises PolicyError for a name the permit does not know.

    The way that would change it is looked for among successful calls, with everything else as it is. A permit that was read from
    JSON knows its rules and reasons only, so for it no way is found.

    limit  how many states are looked at for that way
    """
    if not isinstance(permit, Permit):
        raise PolicyError(f"explain() takes a Permit, such as policy.permit() or result.permits[0], got {permit!r:.80}")
    verdict, rules = permit.verdict(tool), permit.why(tool)
    evidence = tuple(_evidence(permit, tool, rules))
    if verdict in _OPEN:
        return Explanation(tool, verdict, rules, evidence, ())
    waits_for = tuple(dict.fromkeys(_waits_for(permit, rules)))
    if _is_refused_for_good(permit, rules):
        return Explanation(tool, verdict, rules, evidence, waits_for=waits_for, nothing=True)
    if not permit.requirements:
        return Explanation(tool, verdict, rules, evidence, waits_for=waits_for)
    change, complete = _way(permit, tool, any(spoken.requirement == SUPERVISOR for spoken in rules), limit)
    if change == () and not waits_for:
        # By counts it would be open: what closes it is something else, such as the turns that are left.
        waits_for = tuple(
            dict.fromkeys(f"the rule {spoken.requirement}" for spoken in rules if not spoken.rule.allowed or spoken.rule.arguments)
        )
    return Explanation(tool, verdict, rules, evidence, change, waits_for, nothing=change is None and complete)


# --- evidence ---
def facts(permit: Permit, tool: str) -> tuple[str, ...]:
    """The facts of the history behind a verdict, as `explain` tells them, without looking for what would change it."""
    return tuple(_evidence(permit, tool, permit.why(tool)))


def _evidence(permit: Permit, tool: str, rules: Iterable[Spoken]) -> Iterator[str]:
    """The facts behind the closing rules; for the steps that did not count, that they did not."""
    bound = {one.name: one for one in permit.requirements}
    facts: dict[str, None] = {}
    for spoken in rules:
        if not _matters(spoken):
            continue
        requirement = bound.get(spoken.requirement)
        if isinstance(requirement, BoundConditional):
            facts.update(dict.fromkeys(_facts(requirement, permit.history)))
        elif spoken.evidence:
            facts[spoken.evidence] = None
    yield from facts


def _facts(requirement: BoundConditional, history: History) -> Iterator[str]:
    failures = requirement.failures
    for group in requirement.after:
        if not any(history.seen(name, failures) for name in group):
            for name in group:
                yield from _in_vain(history, name, failures)
    for name in requirement.before:
        if history.seen(name, failures):
            yield f"{name} was called at step {_steps(history, name, failures)[0]}"
    count = history.count(requirement.tool, failures)
    if count < requirement.least:
        yield f"{requirement.tool} was called {count} of {requirement.least} times"
        yield from _in_vain(history, requirement.tool, failures, only_failures=True)
    limited = requirement.most is not None and count >= requirement.most
    used = requirement.attempts is not None and history.count(requirement.tool, True) >= requirement.attempts
    if (limited or used) and history.count(requirement.tool, True):
        places = _steps(history, requirement.tool, failures or used)
        yield f"{requirement.tool} was called at step{'' if len(places) == 1 else 's'} {listed(map(str, places))}"
    last = history.last_invocation if failures else history.last
    if last is not None and (last in requirement.force_after or (not requirement.consecutive and last == requirement.tool)):
        yield f"{last} was the last call, at step {_steps(history, last, failures)[-1]}"
    since = history.since(requirement.tool, failures)
    if since is not None and since < requirement.cooldown:
        yield f"{requirement.tool} was last called {since} step{'' if since == 1 else 's'} ago"
    if since is not None and requirement.follows:
        yield f"{requirement.tool} was called at step {_steps(history, requirement.tool, failures)[-1]}"


_WORDS = {Outcome.FAILED: "failed", Outcome.DENIED: "was denied", Outcome.REFUSED: "was refused", Outcome.OK: "succeeded"}


def _in_vain(history: History, name: str, failures: bool, *, only_failures: bool = False) -> Iterator[str]:
    """What became of calls that did not count, or that there were none."""
    tried = [(place, step.outcome) for place, step in enumerate(history, 1) if step.tool == name]
    if not tried and not only_failures:
        yield f"{name} was not called yet"
    elif tried:
        for outcome in (Outcome.FAILED, Outcome.DENIED, Outcome.REFUSED):
            places = [str(place) for place, came in tried if came is outcome]
            if places and not (failures and outcome is Outcome.FAILED):
                plural = {Outcome.FAILED: "failures", Outcome.DENIED: "denied calls", Outcome.REFUSED: "refused calls"}[outcome]
                yield f"{name} {_WORDS[outcome]} at step{'' if len(places) == 1 else 's'} {listed(places)}; {plural} do not count"


def _steps(history: History, name: str, failures: bool) -> list[int]:
    wanted = (Outcome.OK, Outcome.FAILED) if failures else (Outcome.OK,)
    return [place for place, step in enumerate(history, 1) if step.tool == name and step.outcome in wanted]


# --- what would change it ---
def _waits_for(permit: Permit, rules: Iterable[Spoken]) -> Iterator[str]:
    """The closing rules that no call changes: checks that say no, a person's no, rules of the run itself."""
    bound = {one.name: one for one in permit.requirements}
    tools = (*(name for name in permit.tools if name != FINAL_ANSWER), FINAL_ANSWER)
    for spoken in rules:
        requirement = bound.get(spoken.requirement)
        if spoken.rule.allowed and not spoken.rule.hidden:
            if isinstance(requirement, BoundSame):
                yield from requirement.waits_for(permit.history)
            continue
        if requirement is None:
            if spoken.requirement != SUPERVISOR:
                yield f"the run ({spoken.requirement})"
        elif isinstance(requirement, BoundConditional):
            view = permit.view_of(requirement.name)
            for check in requirement.checks:
                if not check(permit.history, view):
                    yield f"the check {check.text}" if check.is_named else f"the check of {requirement.name}"
        elif isinstance(requirement, BoundArgument | BoundSame):
            yield from requirement.waits_for(permit.history)
        elif any(True for _ in opaque_of([requirement], tools)):
            yield requirement.name


def _is_refused_for_good(permit: Permit, rules: Iterable[Spoken]) -> bool:
    """Whether a person's no is remembered, or no value of an argument is left."""
    bound = {one.name: one for one in permit.requirements}
    closed = (bound.get(spoken.requirement) for spoken in rules if not spoken.rule.allowed)
    if any(isinstance(one, BoundSame) and one.is_closed_for_good(permit.history) for one in closed):
        return True
    asking = {one.name for one in permit.requirements if callable(getattr(one, "asks_about", None))}
    return any(spoken.requirement in asking and (spoken.rule.hidden or not spoken.rule.allowed) for spoken in rules)


class _Source:
    """What a permit was made from, as far as an automaton needs it."""

    final_answer_as_tool = True

    def __init__(self, permit: Permit) -> None:
        self.requirements = permit.requirements
        named = [name for one in permit.requirements if (guard := guard_of(one)) is not None for name in sorted(named_by(guard))]
        self.tools = tuple(name for name in dict.fromkeys((*permit.tools, *named)) if name != FINAL_ANSWER)


def _way(permit: Permit, tool: str, supervised: bool, limit: int) -> tuple[tuple[str, ...] | None, bool]:
    """A shortest way to a state in which the tool is open, and whether all ways were looked at."""
    source = _Source(permit)
    present = [name for name in permit.tools if name != FINAL_ANSWER]
    automaton = Automaton(source, World(source.tools, present=present))
    graph = Graph(automaton, automaton.state_of(permit.history), limit)
    good = Regions(graph).distance if supervised and graph.complete else None
    place = automaton.place(tool)
    for number, situation in enumerate(graph.situations):
        if place == automaton.final:
            is_open = situation.may_stop
        else:
            is_open = place in situation.tools
            if is_open and good is not None:
                is_open = graph.number.get(automaton.step(graph.states[number], place), -1) in good
        if is_open:
            return words(graph.path(number)), True
    return None, graph.complete

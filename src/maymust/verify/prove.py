"""`verify`: what holds of every run of a policy, found before anything runs."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from maymust.core.policy import Policy
from maymust.errors import PolicyError
from maymust.requirements.wording import listed
from maymust.verify.automaton import Automaton
from maymust.verify.checks import ALL
from maymust.verify.ending import OutOfBounds
from maymust.verify.explore import Graph
from maymust.verify.finding import EQUAL_FORCES, FORCE_CLOSED, FORCE_UNMET, OVERRIDDEN, Finding
from maymust.verify.interference import Interference
from maymust.verify.outline import outline_of
from maymust.verify.report import Report, Word
from maymust.verify.survey import Survey, survey_of
from maymust.verify.symbolic_survey import survey_by_sets
from maymust.verify.witness import words
from maymust.verify.world import World

EFFORT = 1_600_000
"""How many states times tools are looked at before the search gives up: what a state costs grows with the tools. A few seconds."""

_FEW_TOOLS = 20
"""With so many tools or fewer, a state costs the same."""

SMALL = 400
"""Up to so many states, each one is looked at, which tells most."""

_WEIGHT = 16
"""So many states are looked at one by one in the time that a settled one takes with all that is asked about it."""

_CONFLICTS = frozenset(kind.code for kind in (FORCE_CLOSED, FORCE_UNMET, EQUAL_FORCES, OVERRIDDEN))
_GRAVITY = ("error", "warning", "note")


def verify(
    policy: Policy,
    *,
    max_turns: int | None = None,
    may_fail: Iterable[Any] = (),
    may_be_denied: Iterable[Any] = (),
    present: Iterable[Any] | None = None,
    loads: Mapping[str, Iterable[Any]] | None = None,
    limit: int | None = None,
) -> Report:
    """Look at every run that the policy permits, and report what can go wrong in one of them.

    max_turns      the turns a run has, of one call each: the verdict is `unreachable` when no run ends within them
    may_fail       tools whose calls may also come back failed; all others always succeed
    may_be_denied  tools whose calls a person may say no to
    present        the tools that are there from the start (default: all of the policy's)
    loads          per tool the tools that become available when it succeeds
    limit          give up after so many states; the verdict is then `undecided` or what was found so far, never `ok`. Default: as
                   many as take a few seconds, fewer the more tools there are (80,000 for 20 tools, 16,000 for 100)

    Raises PolicyError for names the policy does not know.
    """
    started = time.perf_counter()
    check_policy(policy, "verify")
    check_number(max_turns, "max_turns")
    check_number(limit, "limit")
    world = World(policy.tools, may_fail=may_fail, may_be_denied=may_be_denied, present=present, loads=loads)
    automaton = Automaton(policy, world)
    survey = survey_all(automaton, limit if limit is not None else EFFORT // max(len(policy.tools), _FEW_TOOLS))
    survey.max_turns = max_turns
    findings = _findings(survey)
    verdict, witness = _verdict(survey, findings)
    if verdict == "undecided" and (by_sets := survey_by_sets(automaton)) is not None:
        survey = by_sets
        survey.max_turns = max_turns
        findings = _findings(survey)
        verdict, witness = _verdict(survey, findings)
    in_time: bool | None = survey.safe_steps is not None and (max_turns is None or survey.safe_steps <= max_turns)
    if not survey.supervisor_known or not survey.complete:
        in_time = None
    return Report(
        verdict,
        witness,
        tuple(findings),
        min_steps=survey.min_steps,
        dead_tools=survey.dead_tools,
        supervisor_exists=in_time,
        stays_reachable=survey.doomed is None if survey.complete else None,
        forced_within=survey.forced_within,
        worst_steps=survey.worst_steps,
        doomed_after=None if survey.doomed is None else words(survey.doomed.path),
        relies_on=survey.needed,
        provided=tuple(dict.fromkeys(one.text for one in survey.provided)),
        assumptions=_assumptions(survey),
        states=survey.states,
        moves=survey.moves,
        seconds=time.perf_counter() - started,
    )


def _findings(survey: Survey) -> list[Finding]:
    """What the checks find, the gravest first."""
    return sorted((finding for check in ALL for finding in check(survey)), key=lambda finding: _GRAVITY.index(finding.severity))


def survey_all(automaton: Automaton, limit: int, *, small: int = SMALL) -> Survey:
    """Look at every state where there are few, else at as few as can be, else at as many as the limit allows.

    small  how many states are few
    """
    graph = Graph(automaton, automaton.start, min(limit, small))
    if graph.complete or limit <= small:
        return survey_of(graph)
    interference = Interference(automaton)
    if interference.why_not is None:
        try:
            few = max(limit // _WEIGHT, small)
            return outline_of(automaton, interference, few, near=few)
        except OutOfBounds:
            pass
    return survey_of(Graph(automaton, automaton.start, limit))


def _verdict(survey: Survey, findings: Iterable[Finding]) -> tuple[Word, tuple[str, ...] | None]:
    """The verdict with its witness. Of an incomplete search only what was found counts."""
    conflicts = [finding for finding in findings if finding.code in _CONFLICTS]
    if conflicts:
        return "conflict", min((finding.witness for finding in conflicts), key=len)
    if survey.complete and survey.min_steps is None:
        return "unreachable", ()
    if survey.complete and survey.max_turns is not None and (survey.min_steps or 0) > survey.max_turns:
        return ("unreachable", ()) if survey.exact else ("undecided", None)
    if survey.dead_end is not None:
        return "dead_end", words(survey.dead_end.path)
    if survey.doomed is not None:
        return "livelock", words(survey.doomed.path)
    return ("ok", None) if survey.complete else ("undecided", None)


def _assumptions(survey: Survey) -> tuple[str, ...]:
    automaton = survey.automaton
    world = automaton.world
    said = []
    fail = [name for name in automaton.tools[:-1] if name in world.may_fail]
    deny = [name for name in automaton.tools[:-1] if name in world.may_be_denied]
    steady = [name for name in automaton.tools[:-1] if name not in world.may_fail]
    if steady:
        said.append(f"{listed(steady) if len(steady) <= 8 else f'{len(steady)} tools'} always succeed{'s' if len(steady) == 1 else ''}")
    if fail:
        said.append(f"{listed(fail)} may fail, any number of times")
    said.append(f"a person may say no to {listed(deny)}" if deny else "a person who is asked says yes")
    for one in automaton.opaque:
        if one.max_denials is not None:
            said.append(f"{one.text} says no at most {one.max_denials} time{'' if one.max_denials == 1 else 's'}")
        if one.stable_once_true:
            said.append(f"{one.text} stays true once it was")
        if one.name not in {clause.name for clause in automaton.clauses}:
            said.append(f"{one.name} only ever closes tools: it forces nothing and prevents no end")
    said.extend(text for one in automaton.requirements if (text := getattr(one, "assumption", None)))
    if survey.max_turns is not None:
        said.append("one call a turn")
    return tuple(said)


def check_policy(policy: Any, function: str) -> None:
    """Raise PolicyError for what is no policy."""
    if not isinstance(policy, Policy):
        raise PolicyError(f"{function}() takes a Policy, got {policy!r:.80}; load_policy(path) reads one, agent.policy is an agent's")


def check_number(number: Any, name: str) -> None:
    """Raise PolicyError unless a number is a whole one above 0, or None."""
    if number is not None and (not isinstance(number, int) or isinstance(number, bool) or number < 1):
        raise PolicyError(f"{name} has to be a whole number above 0, got {number!r}")

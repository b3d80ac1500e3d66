"""What can come next: sections 3.6 and 3.9 of the design once more, for the checker. Shares no code with the library.

Where the design leaves open which of two reasons ends a run (a spent budget or a stalled model, say), both are given as options.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from tests.attack.adversary import Reply
from tests.attack.reference import ABOVE_ALL, FINAL, Done, NoPermit, Pass, Question, Said, permit_after


@dataclass
class Option:
    """A turn that may come now, or (without a permit) an end. `extras` are the rules of this turn alone."""

    permit: Pass | None = None
    end: str = ""
    relaxed: bool = False
    grace: bool = False
    last: bool = False
    measured: bool = False
    extras: tuple[Said, ...] = ()


class Turns:
    """What the run knows of itself between turns."""

    def __init__(self, scenario: dict[str, Any]) -> None:
        self.settings = scenario["settings"]
        self.policy = scenario["requirements"]
        self.text_agent: bool = self.settings["text_agent"]
        every = [*scenario["tools"], *scenario["later"]]
        self.present = tuple(tool["name"] for tool in scenario["tools"])
        self.may_be_present = [self.present]
        self.repeatable = {tool["name"] for tool in every if tool["repeatable"]}
        self.always_asking = [tool["name"] for tool in every if tool["approval"]]
        self.requirement_order = [declared["name"] for declared in self.policy]
        self.handlers = {declared["name"] for declared in self.policy if declared["kind"] == "ask" and declared["handler"]}
        self.remembering = {declared["name"] for declared in self.policy if declared.get("remember_choices")}
        self.remembered: dict[str, dict[str, bool]] = {}
        self.mode = self._mode()
        self.steps: list[dict[str, Any]] = []
        self.done = 0
        self.bad = 0
        self.failing = 0
        self.tokens = 0
        self.after: Option | None = None
        self.recent: list[str] = []
        self.hits = 0
        self.hit_tool: str | None = None
        self.broken = False
        self.answers: str | None = None
        self.counted = {name: [0, 0] for name in ("coercions", "nudges", "relaxations", "reissues", "refusals")}

    def count(self, name: str, *, optional: bool = False) -> None:
        """One more of these, or perhaps one more."""
        self.counted[name][1] += 1
        self.counted[name][0] += not optional

    # --- 3.9 ---
    def _mode(self) -> str | None:
        choice = self.settings["choice"]
        mode = choice["mode"] if isinstance(choice, dict) else choice
        return mode if mode in ("auto", "none") else None

    def _standing(self, pairs: list[Done], *, relaxed: bool) -> list[Said]:
        """Rules that stand beside the policy through the whole run."""
        choice = self.settings["choice"]
        # A tool's own wish to be asked about ranks below every requirement, so that it lifts no force.
        rules = [Said("approval_mode", 0, name, asks=True) for name in self.always_asking]
        if choice is None:
            return rules
        mode = choice["mode"] if isinstance(choice, dict) else choice
        if mode == "none":
            rules += [Said("tool_choice", ABOVE_ALL, name, allowed=False) for name in self.present]
        if isinstance(choice, dict) and "allowed_tools" in choice:
            rules += [Said("tool_choice", ABOVE_ALL, name, allowed=False) for name in self.present if name not in choice["allowed_tools"]]
        good = [tool for tool, outcome, _ in pairs if outcome == "ok"]
        if mode == "required" and not relaxed:
            name = choice.get("required_function_name") if isinstance(choice, dict) else None
            if name is not None and name not in good:
                rules.append(Said("tool_choice", ABOVE_ALL, name, forced=True, prevents=True))
            if name is None and not any(tool != FINAL for tool in good):
                rules.append(Said("tool_choice", ABOVE_ALL, FINAL, prevents=True))
        return rules

    def ask(self, pairs: list[Done], extras: tuple[Said, ...] = (), *, relaxed: bool = False) -> Pass:
        """The pass after these steps; raises NoPermit."""
        standing = self._standing(pairs, relaxed=relaxed)
        question = Question(pairs, self.present, (*standing, *extras), relaxed, self.mode, self.remembered)
        return permit_after(self.policy, question, text_agent=self.text_agent)

    def permit_in(self, option: Option, pairs: list[Done]) -> Pass:
        """The pass inside a batch of this turn; raises NoPermit."""
        try:
            return self.ask(pairs, option.extras, relaxed=option.relaxed)
        except NoPermit:
            if not option.measured:
                raise
            # The guard never makes a dead end: there its denial is not made.
            return self.ask(pairs, relaxed=option.relaxed)

    def pairs(self) -> list[Done]:
        """All steps so far."""
        return [(step["tool"], step["outcome"], step["arguments"]) for step in self.steps]

    # --- 3.6 ---
    def options(self) -> list[Option]:
        """What may come now."""
        ends = self._ends()
        if ends:
            return [Option(end=end) for end in sorted(ends)]
        options: list[Option] = []
        pairs = self.pairs()
        if self.bad >= 3:
            options.append(self._relaxed(pairs))
        over = self._spent()
        if self.bad >= 3 and not over:
            return options
        try:
            base = self.ask(pairs)
        except NoPermit as no:
            return [*options, Option(end=no.kind), *([Option(end="budget")] if over else [])]
        last = self.settings["turns"] is not None and self.done == self.settings["turns"] - 1
        if over:
            options.append(self._finish(pairs, grace=True) if base.may_stop else Option(end="budget"))
        elif last and base.may_stop:
            options.append(self._finish(pairs, last=True))
        elif self.hit_tool is not None:
            options.append(self._guarded(pairs, base, self.hit_tool))
        else:
            options.append(Option(base))
        return options

    def _ends(self) -> set[str]:
        ends = set[str]()
        if self.settings["turns"] is not None and self.done >= self.settings["turns"]:
            ends.add("budget")
        if self.after is not None and self.after.grace:
            ends.add("budget")
        if self.after is not None and self.after.relaxed:
            ends.add("stalled")
        if self.hit_tool is not None and self.hits >= 3:
            ends.add("stalled")
        if self.bad >= 3 and self.settings["on_stall"] == "stop":
            ends.add("stalled")
        return ends

    def _spent(self) -> bool:
        settings = self.settings
        invocations = sum(outcome in ("ok", "failed") for _, outcome, _ in self.pairs())
        return (
            (settings["steps"] is not None and invocations >= settings["steps"])
            or (settings["errors"] is not None and self.failing >= settings["errors"])
            or (settings["tokens"] is not None and self.tokens >= settings["tokens"])
        )

    def _finish(self, pairs: list[Done], *, grace: bool = False, last: bool = False, measured: bool = False) -> Option:
        extras = (Said("finish", ABOVE_ALL, FINAL, forced=True),)
        return Option(self.ask(pairs, extras), grace=grace, last=last, measured=measured, extras=extras)

    def _relaxed(self, pairs: list[Done]) -> Option:
        extras = (Said("ladder", ABOVE_ALL, FINAL, forced=True),)
        try:
            if not self.ask(pairs, relaxed=True).may_stop:
                return Option(end="stalled")
            return Option(self.ask(pairs, extras, relaxed=True), relaxed=True, extras=extras)
        except NoPermit:
            return Option(end="stalled")

    def _guarded(self, pairs: list[Done], base: Pass, tool: str) -> Option:
        if self.hits == 2 and base.may_stop:
            return self._finish(pairs, measured=True)
        if tool not in (*self.present, FINAL):
            return Option(base, measured=True)
        extras = (Said("guard", ABOVE_ALL, tool, allowed=False, lapses=True),)
        try:
            return Option(self.ask(pairs, extras), measured=True, extras=extras)
        except NoPermit:
            return Option(base)

    # --- after a turn ---
    def bad_reply(self, option: Option) -> None:
        """A reply that is neither a call nor an answer."""
        self.bad += 1
        if self.bad == 1:
            over = option.grace or option.relaxed or self.done + 1 == self.settings["turns"]
            self.count("nudges", optional=over)

    def after_turn(self, option: Option, steps: list[dict[str, Any]], reply: Reply, *, ran: bool, changes: list[dict[str, Any]]) -> None:
        """Take note of a turn that is over. `changes` are those of the calls that succeeded, in order."""
        self.done += 1
        self.after = option
        self.tokens += reply.tokens
        self.steps += steps
        if option.relaxed:
            self.count("relaxations")
        if option.measured:
            self.count("reissues")
        if ran:
            self.bad = 0
        outcomes = [step["outcome"] for step in steps]
        for outcome in outcomes:
            if outcome == "refused":
                self.count("refusals")
        if "ok" in outcomes:
            self.failing = 0
        elif "failed" in outcomes:
            self.failing += 1
        self._guard(steps, reply)
        # Whether a change looks at the tools of its turn or at those the changes before it leave is the same but for two changes
        # of one tool in one turn; there both are taken.
        self.may_be_present = list(
            dict.fromkeys((changed(self.present, changes, in_turn=False), changed(self.present, changes, in_turn=True)))
        )
        self.present = self.may_be_present[0]

    def _guard(self, steps: list[dict[str, Any]], reply: Reply) -> None:
        self.hit_tool = None
        if self.settings["guard"] is None:
            return
        repeats, (times, size) = self.settings["guard"]
        for made, step in zip(reply.calls, steps, strict=True):
            if step["tool"] in self.repeatable and step["tool"] in self.present:
                continue
            mark = _mark(step, made.raw if step["arguments"] is None else None)
            self.recent.append(mark)
            running = len(self.recent) >= repeats and set(self.recent[-repeats:]) == {mark}
            if running or self.recent[-size:].count(mark) >= times:
                self.hits += 1
                self.hit_tool = step["tool"]
                self.recent = []
                return

    def remember(self, requirement: str, tool: str, answer: bool) -> None:
        """A person has answered."""
        if requirement in self.remembering:
            self.remembered.setdefault(requirement, {})[tool] = answer

    def owed(self, *, answered: bool) -> tuple[set[str] | None, set[str]]:
        """What keeps the run from stopping at its end (None: there is no permit), and names about which opinions may differ."""
        pairs = [pair for pair in self.pairs() if pair[:2] != (FINAL, "ok")]
        try:
            permit = self.ask(pairs)
            owed = permit.left_by_answer if answered else permit.owed
            return set(owed) - {"tool_choice"}, {"tool_choice"}
        except NoPermit:
            return None, set()


def changed(present: tuple[str, ...], changes: list[dict[str, Any]], *, in_turn: bool) -> tuple[str, ...]:
    """The tools after these changes. `in_turn`: what is added or removed already in the turn of the changes is no change."""
    tools = list(present)
    for change in changes:
        mine: list[str] = []
        for name in change.get("added", ()):
            if name not in tools and not (in_turn and name in present):
                tools.append(name)
                mine.append(name)
        for name in change.get("removed", ()):
            if name in tools and (not in_turn or name in present or name in mine):
                tools.remove(name)
    return tuple(tools)


def _mark(step: dict[str, Any], raw: str | None) -> str:
    """Equal for steps with the same tool, canonical arguments and outcome."""
    said = step["output"] if step["outcome"] == "ok" else step["text"] if step["outcome"] == "failed" else None
    return json.dumps([step["tool"], raw, step["arguments"], step["outcome"], said], sort_keys=True)

"""Walks the record of a run and says where it breaks the design. Slow, sequential, and written from the design alone.

It plays the run once more as if the calls had gone one after another: before every turn it works out which passes are possible, before
every call whether it may run, and it believes of the record only what nobody can know beforehand: what the model said (from the
model's own log), how the bodies ended (from theirs) and what people answered. Every problem is a line that names a section of the design.
"""

from __future__ import annotations

from typing import Any

from tests.attack.adversary import Reply
from tests.attack.calls import Calls
from tests.attack.messages import check_messages
from tests.attack.play import Record
from tests.attack.reference import FINAL, Done, Pass
from tests.attack.turns import Option


def check(scenario: dict[str, Any], record: Record) -> list[str]:
    """The problems of a record; none when the run was what the design promises."""
    walk = Walk(scenario, record)
    walk.go()
    found = list(walk.problems)
    for call_id, child in record.children.items():
        if child.end != "aborted":
            found += [f"in the child at {call_id}: {problem}" for problem in check(scenario["child"], child)]
    return found


def done(step: dict[str, Any]) -> Done:
    """A recorded step, as far as rules look at it."""
    return step["tool"], step["outcome"], step["arguments"]


class Walk(Calls):
    """The walk through one record."""

    def __init__(self, scenario: dict[str, Any], record: Record) -> None:
        super().__init__(scenario, record)
        self.place = 0
        self.ended: set[str] = set()

    def go(self) -> None:
        """Walk turn by turn, then look at the end and at the whole."""
        ids = [step["call_id"] for step in self.record.steps]
        if len(set(ids)) != len(ids) or not all(ids):
            # Everything else goes by these.
            self.problem("3.5", f"call ids are missing or repeated: {ids}")
            return
        for number, reply in enumerate(self.record.replies):
            self.turn = number + 1
            if self.ended:
                self.problem("3.6", f"the run had to end with {sorted(self.ended)}, and the model was asked again")
                return
            option = self._permit(number, reply)
            if option is None:
                return
            self._batch(option, reply)
            if self.problems:
                # What follows a first problem only repeats it.
                return
        self.turn = len(self.record.replies)
        self._end()
        if not self.problems:
            self._whole()

    # --- the pass ---
    def _permit(self, number: int, reply: Reply) -> Option | None:
        if number >= len(self.record.permits):
            self.problem("3.5", "the model was asked, and there is no permit of that turn")
            return None
        recorded = self.record.permits[number]
        self.present = next((tools for tools in self.may_be_present if (*tools, FINAL) == recorded["tools"]), self.present)
        options = self.options()
        passes = [option for option in options if option.permit is not None]
        for option in passes:
            if option.permit is not None and option.permit.compared() == recorded:
                self._request(option.permit, reply)
                return option
        if not passes:
            self.problem("3.6", f"the run had to end with {[option.end for option in options]}, and the model was asked")
            return None
        differing = [
            {key: (value, recorded[key]) for key, value in option.permit.compared().items() if value != recorded[key]}
            for option in passes
            if option.permit
        ]
        self.problem("3.4", "the permit is not the one of the policy; (expected, got): " + " or ".join(map(str, differing)))
        return None

    def _request(self, permit: Pass, reply: Reply) -> None:
        sent = tuple(name for name in permit.allowed if name != FINAL or not self.text_agent)
        if set(reply.offered) != set(sent):
            self.problem("3.5", f"the permit allows {sent}, and the request offered {reply.offered}")
        if set(permit.hidden) & set(reply.shown):
            self.problem("3.1", f"hidden tools were shown: {sorted(set(permit.hidden) & set(reply.shown))}")
        choice = "none" if self.text_agent and permit.tool_choice == FINAL else permit.tool_choice
        if reply.choice != choice:
            self.problem("3.4", f"the permit's choice is {choice}, and the request's {reply.choice}")

    # --- the batch ---
    def _batch(self, option: Option, reply: Reply) -> None:
        steps = self.record.steps[self.place : self.place + len(reply.calls)]
        if [step["tool"] for step in steps] != [made.name for made in reply.calls]:
            if self.record.end == "paused" and self.turn == len(self.record.replies):
                return
            self.problem("3.5", f"calls {[made.name for made in reply.calls]}, steps {[step['tool'] for step in steps]}")
            return
        self.place += len(steps)
        before = [done(step) for step in self.steps]
        self.broken = False
        self.breaks = any(self.plan(step).get("broke") for step in steps)
        accepted: str | None = None
        order = [
            *(i for i, made in enumerate(reply.calls) if made.name != FINAL),
            *(i for i, made in enumerate(reply.calls) if made.name == FINAL),
        ]
        good = True
        for index in order:
            made, step = reply.calls[index], steps[index]
            if made.name != FINAL:
                self.call(option, made, step, self._ordered(before, reply, steps, index))
                good = good and step["outcome"] == "ok"
            else:
                siblings = [s for place, (m, s) in enumerate(zip(reply.calls, steps, strict=True)) if m.name != FINAL or place < index]
                pairs = [*before, *map(done, siblings)]
                accepted = self.final(option, made, step, pairs, good=good, accepted=accepted)
        if self.breaks:
            self.ended = {"RunError"}
        elif accepted is not None:
            self.ended = {"final_answer"}
            self.answers = accepted
        elif not reply.calls:
            self._words(option, reply)
        # A call that middleware answered is an invocation like one that ran.
        ran = any(step["call_id"] in self.bodies or step["outcome"] == "ok" for step in steps)
        changes = [self.bodies[step["call_id"]][-1][1] for step in steps if step["outcome"] == "ok" and step["call_id"] in self.bodies]
        self.after_turn(option, steps, reply, ran=ran, changes=changes)

    @staticmethod
    def _ordered(before: list[Done], reply: Reply, steps: list[dict[str, Any]], index: int) -> list[Done]:
        """What had happened before a call: the turns before, and the calls before it in its own batch; answers come after all of them."""
        return [
            *before,
            *(
                (s["tool"], s["outcome"], s["arguments"])
                for m, s in zip(reply.calls[:index], steps[:index], strict=True)
                if m.name != FINAL
            ),
        ]

    def _words(self, option: Option, reply: Reply) -> None:
        assert option.permit is not None
        guarded = [plan for call_id, plan in self.record.around.items() if plan["turn"] == self.turn]
        if self.layers and reply.text.strip() and option.permit.may_stop and not guarded:
            self.problem("3.8", "middleware never saw the text that was taken for the answer")
        if any(plan["does"] == "refuse" for plan in guarded):
            self.count("nudges", optional=True)
            self.bad += 1
        elif reply.text.strip() and option.permit.may_stop:
            self.ended = {"text_answer"}
            self.answers = reply.text
            expected = self.text_agent or self.mode in ("auto", "none")
            # Where the answer was forced under tool_choice auto, whether a text was asked for is a matter of taste.
            if not expected or (self.mode == "auto" and option.permit.forced == FINAL and not self.text_agent):
                self.count("coercions", optional=expected)
        else:
            self.bad_reply(option)

    # --- the end and the whole ---
    def _end(self) -> None:
        end = self.record.end
        if end == "paused":
            return
        ends = self.ended or self._ends_now()
        if end not in ends:
            expected = " or ".join(f"{end!r}" if end else "a further turn" for end in sorted(ends))
            self.problem("3.6", f"the run ended with {end!r} ({self.record.said}), and had to: {expected}")
        if self.ended and self.record.answer != self.answers:
            self.problem("3.5", f"the answer is {self.record.answer!r}, and {self.answers!r} was accepted")
        if end in ("stalled", "budget") and self.record.answer is not None:
            self.problem("3.6", f"the run ended {end} with the answer {self.record.answer!r}")

    def _ends_now(self) -> set[str]:
        ends: set[str] = set()
        for tools in self.may_be_present:
            self.present = tools
            ends |= {option.end for option in self.options()}
        return ends

    def _whole(self) -> None:
        record = self.record
        if len(record.permits) != len(record.replies) or len(record.steps) != self.place:
            self.problem(
                "3.5", f"{len(record.replies)} replies, {len(record.permits)} permits; {self.place} calls, {len(record.steps)} steps"
            )
        for name, (least, most) in self.counted.items():
            if not least <= record.counters.get(name, -1) <= most:
                self.problem(
                    "4", f"counters.{name} is {record.counters.get(name)}, and had to be {least if least == most else (least, most)}"
                )
        done = {step["call_id"] for step in record.steps}
        for call_id, bodies in self.bodies.items():
            if call_id not in done:
                self.problem("3.5", f"a body of {bodies[0][1]['tool']} ran for a call that is not in the record")
        if record.tasks_left:
            self.problem("3.5", f"{record.tasks_left} tasks were left over")
        if record.end in ("final_answer", "text_answer", "stalled", "budget"):
            expected, optional = self.owed(answered=record.end in ("final_answer", "text_answer"))
            if expected is not None and not (expected - optional <= set(record.unmet) <= expected | optional):
                self.problem("3.6", f"unmet is {record.unmet}, and owed was {sorted(expected)}")
        for text in check_messages(record):
            self.problem("3.5", text)

"""Walks the record of a run and says where it breaks the design. Slow, sequential, and written from the design alone.

It plays the run once more as if the calls had gone one after another: before every turn it works out which passes are possible, before
every call whether it may run, and it believes of the record only what nobody can know beforehand: what the model said (from the
model's own log), how the bodies ended (from theirs) and what people answered. Every problem is a line that names a section of the design.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.attack.adversary import Made, Reply
from tests.attack.messages import check_messages
from tests.attack.play import Record
from tests.attack.reference import FINAL, NoPermit, Pass
from tests.attack.turns import Option, Turns


def check(scenario: dict[str, Any], record: Record) -> list[str]:
    """The problems of a record; none when the run was what the design promises."""
    walk = Walk(scenario, record)
    walk.go()
    return walk.problems


class Walk(Turns):
    """The walk through one record."""

    def __init__(self, scenario: dict[str, Any], record: Record) -> None:
        super().__init__(scenario)
        self.record = record
        self.problems: list[str] = []
        self.turn = 0
        self.place = 0
        self.ended: set[str] = set()
        self.asked: dict[str, list[dict[str, Any]]] = {}
        for asked in record.questions:
            self.asked.setdefault(asked["call_id"], []).append(asked)
        self.bodies: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for index, body in enumerate(record.bodies):
            self.bodies.setdefault(body["call_id"], []).append((index, body))

    def problem(self, section: str, text: str) -> None:
        """Note a problem."""
        self.problems.append(f"turn {self.turn}, {section}: {text}")

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
        options = self.options()
        passes = [option for option in options if option.permit is not None]
        if number >= len(self.record.permits):
            self.problem("3.5", "the model was asked, and there is no permit of that turn")
            return None
        recorded = self.record.permits[number]
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
        before = [(step["tool"], step["outcome"]) for step in self.steps]
        self.broken = False
        accepted: str | None = None
        order = [
            *(i for i, made in enumerate(reply.calls) if made.name != FINAL),
            *(i for i, made in enumerate(reply.calls) if made.name == FINAL),
        ]
        good = True
        for index in order:
            made, step = reply.calls[index], steps[index]
            if made.name != FINAL:
                self._call(option, made, step, self._ordered(before, reply, steps, index))
                good = good and step["outcome"] == "ok"
            else:
                siblings = [s for place, (m, s) in enumerate(zip(reply.calls, steps, strict=True)) if m.name != FINAL or place < index]
                pairs = [*before, *((s["tool"], s["outcome"]) for s in siblings)]
                accepted = self._final(option, made, step, pairs, good=good, accepted=accepted)
        if accepted is not None:
            self.ended = {"final_answer"}
            self.answers = accepted
        elif not reply.calls:
            self._words(option, reply)
        self.after_turn(option, steps, reply, ran=any(step["call_id"] in self.bodies for step in steps))

    @staticmethod
    def _ordered(before: list[tuple[str, str]], reply: Reply, steps: list[dict[str, Any]], index: int) -> list[tuple[str, str]]:
        """What had happened before a call: the turns before, and the calls before it in its own batch; answers come after all of them."""
        return [*before, *((s["tool"], s["outcome"]) for m, s in zip(reply.calls[:index], steps[:index], strict=True) if m.name != FINAL)]

    def _call(self, option: Option, made: Made, step: dict[str, Any], before: list[tuple[str, str]]) -> None:
        permit = self._still(option, made, before)
        if permit is None:
            self._expect_refused(made, step)
        elif made.parsed is None or made.values is None:
            self._expect(made, step, "failed", runs=False, why="its arguments do not fit")
        elif not _within(permit, made):
            self._expect_refused(made, step)
        else:
            self._arguments(made, step)
            self._person(permit, made, step)

    def _still(self, option: Option, made: Made, before: list[tuple[str, str]]) -> Pass | None:
        """The pass as it is after the calls before, if it allows this call; None when the call has to be refused."""
        assert option.permit is not None
        if made.name not in option.permit.allowed or self.broken:
            return None
        try:
            permit = self.permit_in(option, before)
        except NoPermit:
            self.broken = True
            return None
        if made.name not in permit.allowed:
            return None
        limit = self.settings["steps"]
        if made.name != FINAL and limit is not None and sum(outcome in ("ok", "failed") for _, outcome in before) >= limit:
            return None
        return permit

    def _expect_refused(self, made: Made, step: dict[str, Any]) -> None:
        self._expect(made, step, "refused", runs=False, why="the pass after the calls before it does not allow it")

    def _expect(self, made: Made, step: dict[str, Any], outcome: str, *, runs: bool, why: str) -> None:
        bodies = self.bodies.get(step["call_id"], [])
        if step["outcome"] != outcome:
            self.problem(
                "3.5",
                f"{made.name} {made.raw} ({step['call_id']}) had to be {outcome}, for {why}, and is {step['outcome']}: {step['text']!r}",
            )
        if len(bodies) != int(runs):
            self.problem("3.5", f"the body of {made.name} ({step['call_id']}) ran {len(bodies)} times, and the step is {step['outcome']}")

    def _arguments(self, made: Made, step: dict[str, Any]) -> None:
        for _, body in self.bodies.get(step["call_id"], []):
            if body["arguments"] != made.values or body["tool"] != made.name:
                self.problem("3.5", f"{made.name} {made.raw}: the body got {body['tool']} {body['arguments']}")

    # --- 3.10 ---
    def _person(self, permit: Pass, made: Made, step: dict[str, Any]) -> None:
        askers = permit.askers.get(made.name, [])
        answers = list(self._answers(askers, made, step))
        if None in answers:
            return
        if False in answers:
            self._expect(made, step, "denied", runs=False, why="a person said no")
            return
        ended = [body["ended"] for _, body in self.bodies.get(step["call_id"], [])]
        self._expect(made, step, ended[0] if ended else "ok", runs=True, why="it is allowed and its body ended so")

    def _answers(self, askers: list[str], made: Made, step: dict[str, Any]) -> Iterator[bool | None]:
        """The answers to the questions about a call; None when one had to be asked and was not."""
        handled = [name for name in self.requirement_order if name in askers and name in self.handlers]
        asked = self.asked.get(step["call_id"], [])
        said = [question["by"] for question in asked]
        first_no = next((place for place, question in enumerate(asked) if not question["answer"]), None)
        if said != handled and not (first_no is not None and said == handled[: first_no + 1]):
            self.problem("3.10", f"{made.name} ({step['call_id']}): the handlers of {handled} had to be asked, and these were: {said}")
            yield None
        for question in asked:
            if question["arguments"] != made.values or question["tool"] != made.name:
                self.problem("3.10", f"{made.name} {made.raw}: the person was shown {question['tool']} {question['arguments']}")
            self.remember(question["by"], made.name, question["answer"])
            yield question["answer"]
        others = [name for name in askers if name not in self.handlers]
        if others and first_no is None:
            yield self._decision(others, made, step)

    def _decision(self, askers: list[str], made: Made, step: dict[str, Any]) -> bool | None:
        call_id = step["call_id"]
        decided = [(pause["bodies"], pause["decisions"][call_id]) for pause in self.record.pauses if call_id in pause["decisions"]]
        if len(decided) != 1:
            self.problem("3.10", f"{made.name} ({call_id}) had to wait for one decision of a person, and got {len(decided)}")
            return None
        bodies_before, answer = decided[0]
        if any(index < bodies_before for index, _ in self.bodies.get(call_id, [])):
            self.problem("3.10", f"the body of {made.name} ({call_id}) ran before the person had decided")
        for name in askers:
            self.remember(name, made.name, answer)
        return bool(answer)

    # --- answers ---
    def _final(
        self, option: Option, made: Made, step: dict[str, Any], before: list[tuple[str, str]], *, good: bool, accepted: str | None
    ) -> str | None:
        permit = self._still(option, made, before) if good and accepted is None and not self.text_agent else None
        if permit is None:
            self._expect_refused(made, step)
        elif made.parsed is None or made.values is None:
            self._expect(made, step, "failed", runs=False, why="its arguments do not fit")
        else:
            self._expect(made, step, "ok", runs=False, why="stopping is allowed and all calls beside it succeeded")
            return str(made.values["answer"])
        return accepted

    def _words(self, option: Option, reply: Reply) -> None:
        assert option.permit is not None
        if reply.text.strip() and option.permit.may_stop:
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
        ends = self.ended or {option.end for option in self.options()}
        if end not in ends:
            expected = " or ".join(f"{end!r}" if end else "a further turn" for end in sorted(ends))
            self.problem("3.6", f"the run ended with {end!r} ({self.record.said}), and had to: {expected}")
        if self.ended and self.record.answer != self.answers:
            self.problem("3.5", f"the answer is {self.record.answer!r}, and {self.answers!r} was accepted")
        if end in ("stalled", "budget") and self.record.answer is not None:
            self.problem("3.6", f"the run ended {end} with the answer {self.record.answer!r}")

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
        for body in record.bodies:
            if body["call_id"] not in done:
                self.problem("3.5", f"a body of {body['tool']} ran for a call that is not in the record")
        if record.tasks_left:
            self.problem("3.5", f"{record.tasks_left} tasks were left over")
        if record.end in ("final_answer", "text_answer", "stalled", "budget"):
            expected, optional = self.owed()
            if expected is not None and not (expected - optional <= set(record.unmet) <= expected | optional):
                self.problem("3.6", f"unmet is {record.unmet}, and owed was {sorted(expected)}")
        for text in check_messages(record):
            self.problem("3.5", text)


def _within(permit: Pass, made: Made) -> bool:
    """Whether the arguments keep to the fragments of the rules."""
    values = made.values or {}
    for fragments in permit.bounds.get(made.name, []):
        for parameter, fragment in fragments.items():
            value = values.get(parameter)
            if isinstance(value, int) and not fragment.get("minimum", value) <= value <= fragment.get("maximum", value):
                return False
    return True

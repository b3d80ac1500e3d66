"""What becomes of one call: sections 3.5, 3.7, 3.8 and 3.10 of the design once more, for the checker. Shares no code with the library."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tests.attack.adversary import Made
from tests.attack.play import Record
from tests.attack.reference import FINAL, Done, NoPermit, Pass
from tests.attack.scenario import CHILD
from tests.attack.turns import Option, Turns

PASS: dict[str, Any] = {"does": "pass", "layer": -1, "text": ""}
"""What middleware does where there is none."""


class Calls(Turns):
    """Judges the calls of a turn, one after another."""

    def __init__(self, scenario: dict[str, Any], record: Record) -> None:
        super().__init__(scenario)
        self.record = record
        self.problems: list[str] = []
        self.specs = {tool["name"]: tool for tool in [*scenario["tools"], *scenario["later"]]}
        self.layers: int = scenario["around"]["layers"]
        self.turn = 0
        self.breaks = False
        self.asked: dict[str, list[dict[str, Any]]] = {}
        for asked in record.questions:
            if asked["by"] in self.requirement_order:
                self.asked.setdefault(asked["call_id"], []).append(asked)
        self.bodies: dict[str, list[tuple[int, dict[str, Any]]]] = {}
        for index, body in enumerate(record.bodies):
            if body["run"] == record.run_id:
                self.bodies.setdefault(body["call_id"], []).append((index, body))
        for call_id, child in record.children.items():
            # To the rules of its parent a child agent is a tool, and its run a body.
            ended = "ok" if child.end in ("final_answer", "text_answer") else "failed"
            task = child.messages[0]["text"]
            body = {"call_id": call_id, "tool": CHILD, "arguments": {"task": task}, "ended": ended}
            self.bodies.setdefault(call_id, []).append((len(record.bodies), body))

    def problem(self, section: str, text: str) -> None:
        """Note a problem."""
        self.problems.append(f"turn {self.turn}, {section}: {text}")

    def call(self, option: Option, made: Made, step: dict[str, Any], before: list[Done]) -> None:
        permit = self._still(option, made, before)
        if self.breaks:
            self._broken_off(permit, made, step)
        elif permit is None:
            self._expect_refused(made, step)
        elif self.plan(step)["does"] == "answer" and made.values is not None and not _within(permit, made):
            # An answer is no permission: it counts where the call itself would have been let through.
            self._expect_refused(made, step)
        elif not self._stopped(made, step):
            plan = self.plan(step)
            if plan["does"] == "args":
                made = replace(made, parsed=plan["parsed"], values=plan["values"])
            self._through(permit, made, step)
            self._changes(option, permit, made, step)

    def _through(self, permit: Pass, made: Made, step: dict[str, Any]) -> None:
        """Gate and schema, person, body."""
        if made.parsed is None or made.values is None:
            self._expect(made, step, "failed", runs=False, why="its arguments do not fit")
        elif not _within(permit, made):
            self._expect_refused(made, step)
        else:
            self._arguments(made, step)
            self._person(permit, made, step)

    # --- 3.8 ---
    def plan(self, step: dict[str, Any]) -> dict[str, Any]:
        """What middleware did with a call."""
        return self.record.around.get(step["call_id"], PASS)

    def _stopped(self, made: Made, step: dict[str, Any]) -> bool:
        """Whether middleware kept an admitted call from its tool; then its outcome is known."""
        call_id, plan = step["call_id"], self.plan(step)
        if self.layers and call_id not in self.record.around:
            self.problem("3.8", f"middleware never saw {made.name} ({call_id})")
        outcome = {"answer": "ok", "refuse": "refused", "silent": "refused", "tool_error": "failed"}.get(plan["does"])
        words = f"layer{plan['layer']}" if plan["does"] == "silent" else plan["text"]
        if outcome is not None:
            self._expect(made, step, outcome, runs=False, why=f"middleware did {plan['does']}")
        says = outcome is not None or (plan["does"] == "result" and step["outcome"] in ("ok", "refused", "denied"))
        if says and words not in str(step["text"]):
            self.problem("3.8", f"middleware said {words!r} about {made.name} ({call_id}), and the model read {step['text']!r}")
        return outcome is not None

    def _broken_off(self, permit: Pass | None, made: Made, step: dict[str, Any]) -> None:
        """A call in a turn that middleware broke off: whatever became of it, it did not run against the rules."""
        plan, outcome = self.plan(step), step["outcome"]
        ended = [body["ended"] for _, body in self.bodies.get(step["call_id"], [])]
        what = f"{made.name} {made.raw} ({step['call_id']}), bodies {ended}, step {outcome}"
        if plan["does"] == "args":
            made = replace(made, parsed=plan["parsed"], values=plan["values"])
        if ended and (permit is None or made.values is None or not _within(permit, made)):
            self.problem("3.5", f"the body ran, and the pass after the calls before it does not allow it: {what}")
        if plan.get("broke") and plan["does"] == "error_before" and (ended or outcome != "refused"):
            self.problem("3.8", f"middleware broke before this call: {what}")
        if plan.get("broke") and plan["does"] == "error_after" and ended and outcome != ended[-1]:
            self.problem("3.8", f"middleware broke after this call, which keeps its outcome: {what}")
        if ended and outcome not in (ended[-1], "failed"):
            self.problem("3.8", f"a body ended otherwise than its step: {what}")

    # --- 3.7 ---
    def _changes(self, option: Option, permit: Pass, made: Made, step: dict[str, Any]) -> None:
        """What a body may change, it could; what it may not, it could not."""
        assert option.permit is not None
        spec = self.specs.get(made.name, {})
        for _, body in self.bodies.get(step["call_id"], []):
            if body.get("added_another"):
                self.problem("3.7", f"{made.name} ({step['call_id']}) added another tool of its own name")
            elif not spec.get("adds_other") and "adds" in spec and "added" not in body:
                self.problem("3.7", f"{made.name} ({step['call_id']}) could not add {spec['adds']}")
            elif not spec.get("adds_other") and "removes" in spec:
                owed = [name for name in spec["removes"] if name in self.present and name in permit.owed_tools]
                surely = [name for name in owed if name in option.permit.owed_tools]
                # Whether what has lapsed is owed all the same is a matter of taste.
                maybe = [name for name in spec["removes"] if name in (*permit.wanted_tools, *option.permit.wanted_tools)]
                if "removed" in body and surely:
                    self.problem("3.7", f"{made.name} ({step['call_id']}) removed {surely}, which was owed")
                if "removed" not in body and not maybe:
                    self.problem("3.7", f"{made.name} ({step['call_id']}) could not remove {spec['removes']}")

    def _still(self, option: Option, made: Made, before: list[Done]) -> Pass | None:
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
        if made.name != FINAL and limit is not None and sum(outcome in ("ok", "failed") for _, outcome, _ in before) >= limit:
            return None
        return permit

    def _expect_refused(self, made: Made, step: dict[str, Any]) -> None:
        self._expect(made, step, "refused", runs=False, why="the pass after the calls before it does not allow it")

    def _expect(self, made: Made, step: dict[str, Any], outcome: str, *, runs: bool, why: str) -> None:
        bodies = self.bodies.get(step["call_id"], [])
        if len(bodies) > 1 and self.plan(step)["does"] == "retry" and bodies[0][1]["ended"] == "failed":
            # A failed call may be tried once more by middleware.
            bodies = bodies[1:]
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
        if ended == ["failed"] and self.plan(step)["does"] == "retry":
            self.problem("3.8", f"middleware tried {made.name} ({step['call_id']}) again, and its body ran once")
        self._expect(made, step, ended[-1] if ended else "ok", runs=True, why="it is allowed and its body ended so")

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
    def final(
        self, option: Option, made: Made, step: dict[str, Any], before: list[Done], *, good: bool, accepted: str | None
    ) -> str | None:
        if self.breaks:
            return None
        permit = self._still(option, made, before) if good and accepted is None and not self.text_agent else None
        if permit is None or self.plan(step)["does"] == "refuse":
            self._expect_refused(made, step)
        elif made.parsed is None or made.values is None:
            self._expect(made, step, "failed", runs=False, why="its arguments do not fit")
        else:
            self._expect(made, step, "ok", runs=False, why="stopping is allowed and all calls beside it succeeded")
            return str(made.values["answer"])
        return accepted


def _within(permit: Pass, made: Made) -> bool:
    """Whether the arguments keep to the fragments of the rules."""
    values = made.values or {}
    for fragments in permit.bounds.get(made.name, []):
        for parameter, fragment in fragments.items():
            value = values.get(parameter)
            if value not in fragment.get("left", [value]) or value in fragment.get("gone", ()):
                return False
            if isinstance(value, int) and not fragment.get("minimum", value) <= value <= fragment.get("maximum", value):
                return False
    return True

"""`same=`: conditions that hold for each value of a parameter by itself."""

from __future__ import annotations

from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from maymust import Agent, ConditionalRequirement, History, Policy, PolicyError, RunState, explain, tool
from maymust.core.bounds import Bounds
from maymust.core.compiled import CompiledPolicy
from maymust.core.narrowing import outside
from maymust.core.permit import Permit
from maymust.core.requirement import RunView
from maymust.core.step import Outcome
from maymust.models import ScriptedModel, call
from maymust.tools.function_tool import Tool
from maymust.verify import supervise, verify

TOOLS = ("read", "list", "write", "seal")


def after(*words: str) -> History:
    """`read:a` is a call with the path "a", `read:a!failed` one that failed, `read:` one without a path."""
    history = History()
    for word in words:
        call_, _, outcome = word.partition("!")
        name, _, value = call_.partition(":")
        history = history.add(name, outcome=outcome or "ok", arguments={"path": value} if value else {})
    return history


def permit(*words: str, tools: Any = TOOLS, **parameters: Any) -> Permit:
    return Policy([ConditionalRequirement("write", same="path", **parameters)], tools=tools).permit(after(*words))


def admits(said: Permit, value: Any, name: str = "write") -> bool:
    return name in said.allowed and outside(said, name, {} if value is None else {"path": value}) is None


# --- what it means ---
def test_write_only_what_was_read() -> None:
    said = permit(only_after=["read"])
    assert "write" not in said.allowed
    assert said.reasons["write"] == ("read has to succeed first, with the same path",)
    said = permit("read:a", "read:b!failed", only_after=["read"])
    assert admits(said, "a")
    assert not admits(said, "b")
    assert not admits(said, None)
    assert said.why("write")[0].rule.reason == "path has to be a value that read took as path"


def test_failures_count_where_they_are_to() -> None:
    said = permit("read:a!failed", "read:b!denied", only_after=["read"], only_success_invocations=False)
    assert admits(said, "a")
    assert not admits(said, "b")


def test_every_group_has_to_have_the_same_value() -> None:
    assert permit("read:a", "list:b", only_after=["read", "list"]).reasons["write"] == (
        "no path is left: it has to be a value that read took as path and list took as path",
    )
    assert admits(permit("read:a", "list:b", "list:a", only_after=["read", "list"]), "a")
    assert admits(permit("list:b", only_after_any=["read", "list"]), "b")


def test_once_for_each_value() -> None:
    said = permit("write:a", "write:b!failed", max_invocations=1)
    assert admits(said, "b")
    assert not admits(said, "a")
    assert (
        outside(said, "write", {"path": "a"})
        == 'path has to be other than "a", got "a" (path has to be a value that write was not called with yet)'
    )
    said = permit("write:a", "write:b!failed", max_attempts=1)
    assert not admits(said, "a")
    assert not admits(said, "b")
    assert admits(said, "c")
    assert admits(permit("write:a", max_invocations=2), "a")
    assert permit(max_invocations=0).reasons["write"] == ("write may not be called at all (limit 0)",)


def test_nothing_is_narrowed_before_anything_was_called() -> None:
    assert not permit(max_invocations=1).arguments("write")


def test_a_sealed_value_stays_closed() -> None:
    said = permit("seal:a", only_before=["seal"])
    assert not admits(said, "a")
    assert admits(said, "b")


def test_limits_and_order_together() -> None:
    parameters: dict[str, Any] = {"only_after": ["read"], "only_before": ["seal"], "max_invocations": 1}
    said = permit("read:a", "read:b", "read:c", "seal:b", "write:c", **parameters)
    assert [admits(said, value) for value in "abcd"] == [True, False, False, False]
    said = permit("read:a", "write:a", **parameters)
    assert said.reasons["write"] == (
        "no path is left: it has to be a value that read took as path, seal did not take as path and write was not called with yet",
    )


def test_each_opened_value_has_to_be_closed() -> None:
    said = permit("write:a", "write:b", "seal:a", followed_by=["seal"])
    assert not said.may_stop
    assert said.reasons["final_answer"] == ('seal has to succeed with path "b" after write before the end',)
    assert permit("write:a", "write:b", "seal:a", "seal:b", followed_by=["seal"]).may_stop
    assert not permit("write:a", "seal:a", "write:a", followed_by=["seal"]).may_stop
    assert permit("write:", followed_by=["seal"]).may_stop
    assert not permit("write:a", "seal:", followed_by=["seal"]).may_stop


def test_other_names_of_the_parameter() -> None:
    rules = Policy([ConditionalRequirement("write", only_after=["read"], same={"path": "file"})], tools=TOOLS)
    said = rules.permit(History().add("read", arguments={"file": "a", "path": "b"}))
    assert admits(said, "a")
    assert not admits(said, "b")
    assert said.why("write")[0].rule.reason == "path has to be a value that read took as file"


def test_a_call_without_the_parameter_has_no_value_to_go_by_and_may_not_be_repeated() -> None:
    assert "write" not in permit("read:", only_after=["read"]).allowed
    said = permit("write:", max_invocations=1)
    assert not admits(said, None)
    assert admits(said, "a")


def test_a_default_stands_for_a_parameter_that_is_left_out() -> None:
    def make(name: str) -> Tool:
        schema = {"type": "object", "properties": {"path": {"type": "string", "default": "a"}}}
        return Tool.from_schema(name, "", schema, lambda **_: "")

    tools = [make(name) for name in TOOLS]
    said = permit("write:", tools=tools, max_invocations=1)
    assert not admits(said, "a")
    assert not admits(said, None)
    assert admits(said, "b")
    assert admits(permit("read:", tools=tools, only_after=["read"]), "a")


def test_values_are_compared_as_the_target_takes_them() -> None:
    @tool
    def read(path: int) -> str:
        """Read."""
        return ""

    @tool
    def write(path: str) -> str:
        """Write."""
        return ""

    rules = Policy([ConditionalRequirement(write, only_after=[read], same="path")], tools=[read, write])
    assert admits(rules.permit(History().add("read", arguments={"path": 7})), "7")
    plain = Policy([ConditionalRequirement("write", max_invocations=1, same="path")], tools=["write"])
    for done, again in ((1, 1.0), ([1.0, {"a": 2}], [1, {"a": 2.0}])):
        assert not admits(plain.permit(History().add("write", arguments={"path": done})), again)
    assert admits(plain.permit(History().add("write", arguments={"path": 1})), True)


def test_where_no_value_is_left_the_tool_is_denied() -> None:
    @tool
    def write(path: Literal["a", "b"]) -> str:
        """Write."""
        return ""

    rules = Policy([ConditionalRequirement(write, max_invocations=1, same="path")], tools=[write])
    assert "write" in rules.permit(after("write:a")).allowed
    said = rules.permit(after("write:a", "write:b"))
    assert said.reasons["write"] == ("no path is left: it has to be a value that write was not called with yet",)
    assert explain(said, "write").nothing


def test_the_author_s_reason_stands_instead() -> None:
    assert permit(only_after=["read"], reason="read it").reasons["write"] == ("read it",)
    assert permit("read:a", only_after=["read"], reason="read it").why("write")[0].rule.reason == "read it"
    assert permit(only_after=["read"], reason="read it").unlocks("write") == ("read has to succeed first, with the same path",)


# --- a second opinion ---
VALUES = ("a", "b", "c")
steps = st.tuples(st.sampled_from(TOOLS), st.sampled_from(VALUES), st.sampled_from(("ok", "ok", "ok", "failed", "denied")))
subsets = st.lists(st.sampled_from(["read", "list", "seal"]), max_size=2, unique=True)


@st.composite
def conditions(draw: st.DrawFn) -> dict[str, Any]:
    found: dict[str, Any] = {
        "only_after": draw(subsets),
        "only_after_any": draw(subsets),
        "only_before": draw(subsets),
        "followed_by": draw(subsets),
        "max_invocations": draw(st.sampled_from((None, None, 1, 2))),
        "max_attempts": draw(st.sampled_from((None, None, 1, 2))),
        "only_success_invocations": draw(st.booleans()),
    }
    found["only_before"] = [name for name in found["only_before"] if name not in (*found["only_after"], *found["only_after_any"])]
    return found


@settings(max_examples=300)
@given(conditions(), st.lists(steps, max_size=10))
def test_each_value_is_judged_as_if_nothing_else_had_been_called(given_: dict[str, Any], done: list[tuple[str, str, str]]) -> None:
    """By the same requirement without `same`, over the calls with this value alone."""
    if not any(value not in (None, []) for key, value in given_.items() if key != "only_success_invocations"):
        return
    keyed = Policy([ConditionalRequirement("write", same="path", **given_)], tools=TOOLS)
    plain = Policy([ConditionalRequirement("write", **given_)], tools=TOOLS)
    history = History()
    for length in range(len(done) + 1):
        said = keyed.permit(history)
        alone = {value: plain.permit(_of([one for one in done[:length] if one[1] == value])) for value in (*VALUES, "never seen")}
        assert {value: admits(said, value) for value in alone} == {value: "write" in one.allowed for value, one in alone.items()}
        assert said.may_stop == all(one.may_stop for one in alone.values())
        if length < len(done):
            name, value, outcome = done[length]
            history = history.add(name, outcome=outcome, arguments={"path": value})
    for length in (1, 0, len(done) // 2):
        # Older versions of a history are not confused by what came after.
        fresh = keyed.permit(_of(done[:length]))
        assert keyed.permit(history.at(min(length, len(done)))).arguments("write") == fresh.arguments("write")


def _of(done: list[tuple[str, str, str]]) -> History:
    history = History()
    for name, value, outcome in done:
        history = history.add(name, outcome=outcome, arguments={"path": value})
    return history


# --- the batch ---
def test_a_call_waits_for_the_open_calls_that_may_change_its_values() -> None:
    rules = Policy([ConditionalRequirement("write", only_after=["read"], same="path")], tools=TOOLS)
    bound: Any = rules.requirements[0]
    done = after("read:a")
    assert bound.surely_admits("write", Bounds(done, [("list", None)]), RunView())
    assert not bound.surely_admits("write", Bounds(done, [("read", None)]), RunView())
    assert not bound.surely_admits("write", Bounds(done, [("write", Outcome.OK)]), RunView())
    assert not bound.surely_admits("write", Bounds(History(), [("list", None)]), RunView())
    assert bound.surely_admits("read", Bounds(done, [("write", None)]), RunView())


def test_the_gate_judges_the_values_of_each_call() -> None:
    gate = Policy([ConditionalRequirement("refund", max_invocations=1, same="order")], tools=["refund"]).gate()
    gate.permit()
    first = {"name": "refund", "arguments": {"order": 1}, "call_id": "1"}
    again = {"name": "refund", "arguments": {"order": 1.0}, "call_id": "2"}
    other = {"name": "refund", "arguments": {"order": 2}, "call_id": "3"}
    assert gate.admit(first).allowed
    assert gate.admit(other).waits
    gate.observe(first, "ok")
    assert not gate.admit(again).allowed
    assert gate.admit(other).allowed


def _desk(*turns: Any, requirements: list[Any], **settings_: Any) -> Any:
    @tool
    def read(path: str) -> str:
        """Read."""
        return f"read {path}"

    @tool
    def write(path: str, text: str = "") -> str:
        """Write."""
        if text == "fail":
            raise ValueError("no room")
        return f"wrote {path}"

    @tool
    def seal(path: str) -> str:
        """Seal."""
        return f"sealed {path}"

    model = ScriptedModel([*turns, call("final_answer", answer="done")])
    return Agent(model, tools=[read, write, seal], requirements=requirements, **settings_), model


def texts(result: Any) -> list[tuple[str, str]]:
    return [(str(step.outcome), step.text) for step in result.steps[:-1]]


def test_a_run_writes_what_was_read_and_nothing_else() -> None:
    agent, model = _desk(
        call("write", path="a"),
        [call("read", path="a"), call("write", path="a")],
        [call("write", path="b"), call("read", path="b"), call("write", path="b"), call("write", path="a")],
        requirements=[ConditionalRequirement("write", only_after=["read"], same="path")],
    )
    result = agent.run_sync("go")
    assert [outcome for outcome, _ in texts(result)] == ["refused", "ok", "refused", "refused", "ok", "ok", "ok"]
    assert "read has to succeed first, with the same path" in texts(result)[0][1]
    assert texts(result)[3][1] == (
        'not with these arguments: path: "b" is not allowed; one of "a" (path has to be a value that read took as path)'
    )
    assert 'write takes only path: one of "a"' in model.requests[2].guidance


def test_in_one_batch_each_value_goes_once() -> None:
    agent, model = _desk(
        [call("write", path=path, text=text) for path, text in (("a", "fail"), ("a", ""), ("a", ""), ("b", ""))],
        call("write", path="b"),
        requirements=[ConditionalRequirement("write", max_invocations=1, same="path")],
        narrow="schema",
    )
    result = agent.run_sync("go")
    assert [outcome for outcome, _ in texts(result)] == ["failed", "ok", "refused", "ok", "refused"]
    assert 'write takes only path: other than "a", "b"' in model.requests[1].guidance
    # Few providers know `not`, so the schema leaves it to the gate.
    assert model.requests[1].tools[1].parameters["properties"]["path"] == {"type": "string"}


def test_what_is_owed_outlives_a_pause() -> None:
    agent, _ = _desk(
        call("write", path="a"),
        call("final_answer", answer="early"),
        call("seal", path="b"),
        call("final_answer", answer="early"),
        call("seal", path="a"),
        requirements=[ConditionalRequirement("write", followed_by=["seal"], same="path")],
    )
    result = agent.run_sync("go")
    assert [outcome for outcome, _ in texts(result)] == ["ok", "refused", "ok", "refused", "ok"]
    assert result.answer == "done"
    again = RunState.from_json(result.state.to_json())
    assert again.permits[-1].to_dict() == result.permits[-1].to_dict()


# --- explained, described, compiled ---
def test_explain_says_which_call_is_missing() -> None:
    once = {"only_after": ["read"], "max_invocations": 1}
    assert explain(permit(only_after=["read"]), "write").outlook == "write opens after read"
    assert explain(permit("read:a", "write:a", **once), "write").outlook == "write opens when a call of read with another path lets it"
    owed = explain(permit("write:a", "write:b", "seal:b", followed_by=["seal"]), "final_answer")
    assert owed.outlook == 'final_answer opens when a call of seal with path "a" lets it'
    assert explain(permit("write:a", followed_by=["seal"]), "final_answer").outlook == "final_answer opens after seal"


def test_the_evidence_names_values() -> None:
    said = permit("read:a", "write:a", "read:b", only_after=["read"], max_invocations=1).why("write")[0].evidence
    assert said == 'read: 2 ok calls; write: 1 ok call; path left: "b"'
    assert permit("write:a", max_invocations=1).why("write")[0].evidence == 'write: 1 ok call; path used up: "a"'


def test_it_describes_itself() -> None:
    rules = Policy([ConditionalRequirement("write", only_after=["read"], max_attempts=3, same={"path": "file"})], tools=TOOLS)
    assert rules.describe()["requirements"][0] == {
        "name": "conditional:write",
        "priority": 10,
        "enabled": True,
        "kind": "conditional",
        "target": "write",
        "only_after": ["read"],
        "max_attempts": 3,
        "same": {"path": "file"},
    }


def test_values_are_no_matter_of_the_compiled_policy() -> None:
    rules = Policy([ConditionalRequirement("write", only_after=["read"], same="path")], tools=TOOLS)
    with pytest.raises(PolicyError, match="cannot be compiled"):
        CompiledPolicy(rules)
    assert "write" not in CompiledPolicy(rules, opaque="open").permit(0).allowed


# --- what cannot be meant ---
@pytest.mark.parametrize(
    ("parameters", "text"),
    [
        ({"same": ""}, "same has to be the name of a parameter"),
        ({"same": ["path"]}, "same has to be the name of a parameter"),
        ({"same": {"path": "file", "id": "id"}}, "same has to be the name of a parameter"),
        ({"same": {"path": 1}}, "same has to be the name of a parameter"),
        (
            {"same": "path", "only_after": ()},
            "same speaks of only_after, only_after_any, only_before, max_invocations, max_attempts, followed_by",
        ),
        ({"same": "path", "min_invocations": 1}, "min_invocations is no condition on a value; write it in a requirement of its own"),
        ({"same": "path", "consecutive_allowed": False}, "consecutive_allowed is no condition on a value"),
        ({"same": "path", "cooldown": 1}, "cooldown is no condition on a value"),
        ({"same": "path", "force_at_step": 1}, "force_at_step is no condition on a value"),
        ({"same": "path", "force_after": ["read"]}, "force_after is no condition on a value"),
        ({"same": "path", "custom_checks": [lambda history: True]}, "custom_checks is no condition on a value"),
    ],
)
def test_what_is_no_condition_on_a_value_is_refused(parameters: dict[str, Any], text: str) -> None:
    with pytest.raises(PolicyError, match=text.replace("(", r"\(")):
        ConditionalRequirement("write", **{"only_after": ["read"], **parameters})


def test_parameters_are_checked_when_the_tools_are_known() -> None:
    agent_tools = _desk(requirements=[])[0].tools
    with pytest.raises(PolicyError, match="read has no parameter called pth; did you mean path"):
        Policy([ConditionalRequirement("write", only_after=["read"], same={"path": "pth"})], tools=agent_tools)
    with pytest.raises(PolicyError, match="the fields of final_answer are a matter of output_type"):
        Policy([ConditionalRequirement("final_answer", only_after=["read"], same="path")], tools=agent_tools)


# --- verified ---
def test_what_counts_tell_is_proved() -> None:
    rules = Policy(
        [
            ConditionalRequirement("write", name="write-read", only_after=["read"], same="path"),
            ConditionalRequirement("write", name="owed", min_invocations=1),
            ConditionalRequirement("read", name="never", only_before=["list"]),
        ],
        tools=TOOLS,
    )
    report = verify(rules)
    assert (report.verdict, report.witness, report.provided) == ("livelock", ("list",), ())
    assert "write-read: a call of read has a path that write takes" in report.assumptions
    assert "list" not in supervise(rules).permit().allowed


@pytest.mark.parametrize(
    ("parameters", "provided"),
    [
        ({"only_after": ["read"]}, False),
        ({"only_after_any": ["read", "list"]}, False),
        ({"max_invocations": 1}, False),
        ({"only_before": ["seal"]}, False),
        ({"only_after": ["read", "list"]}, True),
        ({"only_after": ["read"], "max_invocations": 1}, True),
        ({"only_after": ["read"], "only_before": ["seal"]}, True),
    ],
)
def test_what_they_do_not_tell_is_named(parameters: dict[str, Any], provided: bool) -> None:
    rules = [ConditionalRequirement("write", name="w", same="path", **parameters), ConditionalRequirement("write", min_invocations=1)]
    assert verify(Policy(rules, tools=TOOLS)).provided == (("w",) if provided else ())


def test_two_rules_on_one_parameter_leave_perhaps_nothing() -> None:
    rules = [
        ConditionalRequirement("write", name="one", only_after=["read"], same="path"),
        ConditionalRequirement("write", name="two", max_invocations=1, same="path"),
        ConditionalRequirement("write", min_invocations=2),
    ]
    assert verify(Policy(rules, tools=TOOLS)).provided == ("one", "two")


def test_a_debt_for_each_value_is_no_matter_of_counts() -> None:
    rules = Policy([ConditionalRequirement("write", name="w", followed_by=["seal"], same="path")], tools=TOOLS)
    assert verify(rules).provided == ("w",)
    assert verify(rules).verdict == "ok"


def test_explain_names_the_rules_where_only_together_they_leave_nothing() -> None:
    rules = [
        ConditionalRequirement("write", name="one", only_after=["read"], same="path"),
        ConditionalRequirement("write", name="two", max_invocations=1, same="path"),
    ]
    said = explain(Policy(rules, tools=TOOLS).permit(after("read:a", "write:a")), "write")
    assert said.outlook == "write opens when the rule one and the rule two let it"


def test_explain_knows_a_call_that_had_no_value() -> None:
    said = explain(permit("read:", only_after=["read"]), "write")
    assert said.outlook == "write opens when a call of read with another path lets it"

"""`ArgumentRequirement`: which values an argument may have, after what has been seen."""

from __future__ import annotations

import builtins
import gc
import threading
import weakref
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import SecretStr

from maymust import ArgumentRequirement, History, Policy, PolicyError, Verdict, tool
from maymust.core.bounds import Bounds
from maymust.core.narrowing import outside
from maymust.core.requirement import RunView
from maymust.core.step import Outcome

TOOLS = ["get", "find", "write"]


def policy(*requirements: Any, tools: Any = TOOLS) -> Policy:
    return Policy(requirements, tools=tools)


def enum(rules: Policy, history: History, param: str = "id") -> Any:
    """The values `write` may have; None while it is denied."""
    permit = rules.permit(history)
    if permit.verdict("write") is Verdict.DENIED:
        return None
    (fragment,) = permit.arguments("write")[param]
    return fragment["enum"]


read_first = ArgumentRequirement("write", "id", from_output=("get", "$.id"))


def test_nothing_seen_yet_denies_and_says_what_to_call_first() -> None:
    permit = policy(read_first).permit()
    assert permit.denied == ("write",)
    assert permit.reasons["write"] == ("call get first: id has to be a value that get returned ($.id), and there is none yet",)
    assert permit.why("write")[0].evidence == "get: 0 ok calls; values of id: none"


def test_values_come_from_ok_calls_only_and_stay() -> None:
    rules = policy(read_first)
    history = History().add("get", outcome="failed", output={"id": "x"}).add("get", outcome="refused", output={"id": "y"})
    assert enum(rules, history) is None
    history = history.add("get", output={"id": "a"}).add("find").add("get", output={"id": "b"}).add("get", output={"id": "a"})
    assert enum(rules, history) == ["a", "b"]
    permit = rules.permit(history)
    assert outside(permit, "write", {"id": "b"}) is None
    assert outside(permit, "write", {"id": "c"}) == 'id has to be one of "a", "b", got "c" (id has to be a value that get returned)'
    assert permit.why("write")[0].evidence == 'get: 3 ok calls; values of id: "a", "b"'


def test_an_output_without_the_place_is_no_value() -> None:
    outputs: list[Any] = [{"name": "x"}, [], None, 5, "text", "{broken"]
    for output in outputs:
        assert enum(policy(read_first), History().add("get", output=output)) is None


def test_json_in_a_text_is_read() -> None:
    assert enum(policy(read_first), History().add("get", output='{"id": "a"}')) == ["a"]
    whole = policy(ArgumentRequirement("write", "id", from_output=("get", "$")))
    assert enum(whole, History().add("get", output="plain text")) == ["plain text"]
    assert enum(whole, History().add("get", output="5")) == ["5"]


def test_several_places_and_tools_make_one_set() -> None:
    rules = policy(
        ArgumentRequirement(
            "write",
            "id",
            one_of=["always"],
            from_output=[("find", "$.items[*].id"), ("get", "$.id")],
            from_argument=("get", "key"),
        )
    )
    assert enum(rules, History()) == ["always"]
    history = History().add("find", output={"items": [{"id": 1}, {"id": 2}]}).add("get", arguments={"key": 2}, output={"id": 3})
    assert enum(rules, history) == ["always", 1, 2, 3]


def test_from_argument_takes_a_parameter_a_path_or_a_function() -> None:
    history = History().add("get", arguments={"path": "/a", "more": ["b", "c"]})
    for place, values in (("path", ["/a"]), ("$.more[*]", ["b", "c"]), (lambda arguments: sorted(arguments), ["more", "path"])):
        assert enum(policy(ArgumentRequirement("write", "id", from_argument=("get", place))), history) == values


def test_last_only_forgets_earlier_calls() -> None:
    rules = policy(ArgumentRequirement("write", "id", from_output=[("get", "$.id"), ("find", "$.ids[*]")], last_only=True))
    history = History().add("get", output={"id": "a"})
    assert enum(rules, history) == ["a"]
    history = history.add("find", output={"ids": ["b", "a"]})
    assert enum(rules, history) == ["b", "a"]
    assert enum(rules, history.add("write").add("get", outcome="failed")) == ["b", "a"]
    assert enum(rules, history.add("get", output={})) is None


def test_a_function_of_the_output_and_one_of_the_history() -> None:
    rules = policy(ArgumentRequirement("write", "id", from_output=("get", lambda text: text.split())))
    assert enum(rules, History().add("get", output="a b")) == ["a", "b"]
    rules = policy(ArgumentRequirement("write", "id", one_of=lambda history: [step.output for step in history][-2:]))
    assert enum(rules, History()) is None
    assert enum(rules, History().add("get", output=1).add("get", output=2).add("get", output=3)) == [2, 3]
    rules = policy(ArgumentRequirement("write", "id", one_of=lambda history, run: run.metadata["mine"]))
    assert rules.permit(History(), RunView(metadata={"mine": ["a"]})).arguments("write")["id"] == ({"enum": ["a"]},)


@pytest.mark.parametrize(
    ("settings", "good", "bad"),
    [
        ({"maximum": 100}, [100, -3, 0.5], [100.5, None, "100", True]),
        ({"minimum": 1, "maximum": 3}, [1, 3.0], [0, 4]),
        ({"pattern": r"[a-z]+@acme\.com"}, ["bob@acme.com"], ["bob@acme.com.evil.org", "x bob@acme.com", "bob@acme.com\n", None, 5]),
        ({"one_of": ["a", 1, None]}, ["a", 1, 1.0, None], ["b", True, "1"]),
        ({"one_of": ["a", "bb"], "pattern": "b+"}, ["bb"], ["a", "b"]),
        ({"each": True, "one_of": ["a", "b"]}, [[], ["a"], ["b", "a"]], [["c"], ["a", "c"], "a", None]),
        ({"each": True, "maximum": 3}, [[1, 2]], [[4], ["1"], 2]),
        ({"optional": True, "one_of": ["a"]}, ["a", None], ["b"]),
        ({"optional": True, "each": True, "one_of": ["a"]}, [["a"], [], None], [["b"], "a"]),
    ],
)
def test_fixed_values_and_bounds(settings: dict[str, Any], good: list[Any], bad: list[Any]) -> None:
    permit = policy(ArgumentRequirement("write", "id", **settings)).permit()
    assert [value for value in good if outside(permit, "write", {"id": value}) is not None] == []
    assert [value for value in bad if outside(permit, "write", {"id": value}) is None] == []
    assert (outside(permit, "write", {}) is None) == (None in good)


def test_an_optional_parameter_is_closed_while_nothing_was_seen_and_the_tool_is_not() -> None:
    rules = policy(ArgumentRequirement("write", "cc", from_output=("find", "$.mails[*]"), each=True, optional=True))
    permit = rules.permit()
    assert permit.denied == ()
    assert [outside(permit, "write", {"cc": value}) is None for value in (None, [], ["a"])] == [True, True, False]
    permit = rules.permit(History().add("find", output={"mails": ["a", "b"]}))
    assert [outside(permit, "write", {"cc": value}) is None for value in (None, [], ["a"], ["c"])] == [True, True, True, False]


@tool
async def get(key: int) -> dict[str, Any]:
    """Get."""
    return {"id": key}


@tool
async def write(id: str, amount: int = 0, tags: list[str] | None = None) -> str:
    """Write."""
    return id


def test_numbers_and_texts_are_brought_to_the_type_of_the_parameter() -> None:
    rules = policy(ArgumentRequirement(write, "id", from_output=(get, "$.id")), tools=[get, write])
    assert enum(rules, History().add("get", output={"id": 7})) == ["7"]
    rules = policy(ArgumentRequirement(write, "amount", from_output=(get, "$.id")), tools=[get, write])
    assert enum(rules, History().add("get", output={"id": "7"}), "amount") == [7]


def test_values_the_parameter_does_not_take_are_no_values() -> None:
    rules = policy(ArgumentRequirement(write, "amount", from_output=(get, "$.ids[*]"), maximum=10), tools=[get, write])
    assert enum(rules, History().add("get", output={"ids": ["a", 50, {"b": 1}]}), "amount") is None
    assert enum(rules, History().add("get", output={"ids": ["a", 50, 5]}), "amount") == [5]


def test_the_same_situation_gives_the_very_same_rule_in_whatever_run() -> None:
    rules = policy(read_first)
    first = History().add("get", output={"id": "a"})
    second = History().add("find").add("get", output={"id": "a"})
    spoken = [rules.permit(history).why("write")[0].rule for history in (first, second, first.add("find"), first.add("write"))]
    assert len({id(rule) for rule in spoken}) == 1


def test_two_requirements_on_one_parameter_leave_what_both_allow() -> None:
    rules = policy(read_first, ArgumentRequirement("write", "id", one_of=["b", "c"]))
    history = History().add("get", output={"id": "a"})
    permit = rules.permit(history)
    assert permit.denied == ("write",)
    permit = rules.permit(history.add("get", output={"id": "b"}))
    assert [value for value in "abc" if outside(permit, "write", {"id": value}) is None] == ["b"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({}, "say which values id may have"),
        ({"one_of": []}, "one_of is empty"),
        ({"one_of": "abc"}, "a list of JSON values"),
        ({"one_of": [object()]}, "a list of JSON values"),
        ({"one_of": Outcome}, "a list of values or a function"),
        ({"minimum": 5, "maximum": 3}, "no value of id"),
        ({"one_of": [5], "maximum": 3}, "no value of id"),
        ({"minimum": "5"}, "minimum of parameter id"),
        ({"pattern": "["}, "pattern of parameter id"),
        ({"pattern": "a", "maximum": 1}, "speak of numbers"),
        ({"last_only": True, "maximum": 3}, "last_only speaks of"),
        ({"from_output": "get"}, "a pair of a tool and a place"),
        ({"from_output": ("get",)}, "a pair of a tool and a place"),
        ({"maximum": 3, "each": 1}, "each has to be True or False"),
        ({"maximum": 3, "reason": 1}, "reason has to be a text"),
        ({"maximum": 3, "priority": 0}, "priority"),
    ],
)
def test_what_cannot_be_meant_is_refused_at_construction(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        ArgumentRequirement("write", "id", **settings)


@pytest.mark.parametrize(
    ("requirement", "said"),
    [
        (lambda: ArgumentRequirement("wirte", "id", maximum=1), "did you mean write"),
        (lambda: ArgumentRequirement("write", "idd", maximum=1), "no parameter called idd; did you mean id"),
        (lambda: ArgumentRequirement("write", "id", from_output=("gte", "$.id")), "did you mean get"),
        (lambda: ArgumentRequirement("write", "id", from_output=("get", "id")), "'id' is no JSONPath.*write e.g. "),
        (lambda: ArgumentRequirement("write", "id", from_output=("get", "$.items[")), "is no JSONPath"),
        (lambda: ArgumentRequirement("write", "id", from_output=("get", 5)), "a JSONPath such as"),
        (lambda: ArgumentRequirement("write", "id", from_argument=("get", "kye")), "get has no parameter called kye; did you mean key"),
        (lambda: ArgumentRequirement("write", "id", from_output=("write", "$.id")), "come from write itself"),
        (lambda: ArgumentRequirement("write", "amount", one_of=["a", "b"]), "takes none of the values in one_of"),
        (lambda: ArgumentRequirement("final_answer", "answer", one_of=["a"]), "output_type"),
    ],
)
def test_what_does_not_fit_the_tools_is_refused_by_the_policy(requirement: Any, said: str) -> None:
    with pytest.raises(PolicyError, match=said):
        policy(requirement(), tools=[get, write])


def test_a_function_that_raises_or_gives_no_list_closes_the_tool_with_an_error() -> None:
    broken = policy(ArgumentRequirement("write", "id", from_output=("get", lambda output: output["nothing"])))
    for _ in range(2):  # it is asked again, never taken for read
        with pytest.raises(PolicyError, match=r"from_output.*raised KeyError"):
            broken.permit(History().add("get", output={}))
    for answer in ("text", 5, [object()]):
        with pytest.raises(PolicyError, match="a list of JSON values"):
            policy(ArgumentRequirement("write", "id", one_of=lambda history, a=answer: a)).permit()


def test_without_the_library_the_error_names_the_line_for_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def missing(name: str, *arguments: Any) -> Any:
        if name == "jsonpath":
            raise ImportError("no module named jsonpath")
        return real(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(PolicyError, match=r"pip install 'maymust\[jsonpath\]'"):
        policy(read_first)
    policy(ArgumentRequirement("write", "id", from_argument=("get", "key")))


# --- in a batch, in any version, in any thread ---
steps = st.lists(
    st.tuples(st.sampled_from(TOOLS), st.sampled_from(list(Outcome)), st.lists(st.sampled_from(["a", "b", 1, 1.0, True]), max_size=3)),
    max_size=25,
)


def naive(history: History, last_only: bool) -> list[Any] | None:
    calls = [step for step in history if step.outcome is Outcome.OK and step.tool in ("get", "find")]
    values = [value for step in (calls[-1:] if last_only else calls) for value in step.output["ids"]]
    distinct: list[Any] = []
    for value in values:
        if not any(value == other and isinstance(value, bool) is isinstance(other, bool) for other in distinct):
            distinct.append(value)
    return distinct or None


@settings(max_examples=150)
@given(steps, st.booleans(), st.randoms(use_true_random=False))
def test_every_version_of_a_history_gives_its_own_values_in_whatever_order_they_are_asked(
    made: list[Any], last_only: bool, random: Any
) -> None:
    rules = policy(ArgumentRequirement("write", "id", from_output=[("get", "$.ids[*]"), ("find", "$.ids[*]")], last_only=last_only))
    versions = [History()]
    for name, outcome, ids in made:
        versions.append(versions[-1].add(name, outcome=outcome, output={"ids": ids}))
    # A fork shares no values with what came after.
    fork = versions[len(versions) // 2].add("get", output={"ids": ["fork"]})
    order = [*versions, fork, *versions]
    random.shuffle(order)
    for version in order:
        assert enum(rules, version) == naive(version, last_only)


@settings(max_examples=100)
@given(steps, st.lists(st.tuples(st.sampled_from(TOOLS), st.sampled_from([None, *Outcome])), max_size=3), st.booleans())
def test_a_call_that_is_sure_has_the_same_values_however_the_open_calls_end(made: list[Any], tail: list[Any], last_only: bool) -> None:
    rules = policy(ArgumentRequirement("write", "id", from_output=[("get", "$.ids[*]"), ("find", "$.ids[*]")], last_only=last_only))
    history = History()
    for name, outcome, ids in made:
        history = history.add(name, outcome=outcome, output={"ids": ids})
    if not rules.surely_admits("write", Bounds(history, tail)):
        return
    before = enum(rules, history)
    assert before is not None
    for end in Outcome:
        after = history
        for name, outcome in tail:
            after = after.add(name, outcome=outcome or end, output={"ids": ["new"]})
        assert enum(rules, after) == before


def test_a_call_waits_only_for_the_calls_its_values_come_from() -> None:
    rules = policy(read_first, ArgumentRequirement("find", "n", maximum=3))
    seen = History().add("get", output={"id": "a"})
    assert rules.surely_admits("write", Bounds(seen, [("find", None)]))
    assert not rules.surely_admits("write", Bounds(seen, [("get", None)]))
    assert not rules.surely_admits("write", Bounds(History(), [("find", None)]))
    assert rules.surely_admits("find", Bounds(seen, [("get", None), ("write", None)]))


def test_threads_that_grow_and_read_one_history_see_their_own_values() -> None:
    rules = policy(read_first)
    versions = [History()]
    faults: list[Any] = []

    def read() -> None:
        for _ in range(300):
            version = versions[-1]
            values = enum(rules, version)
            if values != ([f"v{place}" for place in range(len(version))] or None):
                faults.append((len(version), values))

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for place in range(300):
        versions.append(versions[-1].add("get", output={"id": f"v{place}"}))
    for thread in threads:
        thread.join()
    assert faults == []


def test_nothing_is_kept_when_a_run_is_over() -> None:
    class Canary(dict[str, Any]):
        pass

    rules = policy(read_first, ArgumentRequirement("write", "to", from_output=("get", lambda output: [output["id"]])))
    output = Canary(id="a" * 5000)
    watched = weakref.ref(output)
    history = History()
    for number in range(50):
        history = history.add("get", output=output if number == 7 else {"id": f"{number}-" + "b" * 50})
        rules.permit(history)
    del history, output
    # The one situation that is kept is that of the newest run; another run takes its place.
    rules.permit(History().add("get", output={"id": "c"}))
    gc.collect()
    assert watched() is None


def test_disabled_it_says_nothing_and_is_checked_all_the_same() -> None:
    assert policy(ArgumentRequirement("write", "id", maximum=1, enabled=False)).permit().arguments("write") == {}
    with pytest.raises(PolicyError):
        policy(ArgumentRequirement("wirte", "id", maximum=1, enabled=False))


def test_the_description_has_everything_that_changes_what_it_does() -> None:
    rules = policy(
        ArgumentRequirement(
            "write", "id", from_output=("get", "$.id"), from_argument=("find", "q"), one_of=["x"], pattern="x|y", last_only=True, reason="r"
        )
    )
    assert rules.describe()["requirements"][0] == {
        "name": "argument:write.id",
        "priority": 10,
        "enabled": True,
        "kind": "argument",
        "target": "write",
        "param": "id",
        "one_of": ["x"],
        "pattern": "^(?:x|y)$",
        "from_output": [["get", "$.id"]],
        "from_argument": [["find", "q"]],
        "last_only": True,
        "reason": "r",
    }
    assert rules.hash != policy(read_first).hash


def test_a_secret_parameter_is_refused() -> None:
    @tool
    def login(password: SecretStr) -> str:
        """Log in."""
        return "in"

    @tool
    def change(password: SecretStr) -> str:
        """Change it."""
        return "changed"

    with pytest.raises(PolicyError, match="password of change takes a secret, which no rule gets to see"):
        Policy([ArgumentRequirement(change, "password", from_argument=(login, "password"))], tools=[login, change])


@pytest.mark.parametrize("limits", [{"maximum": 9}, {"pattern": "[0-9]+"}])
def test_a_limit_that_no_value_of_the_parameter_satisfies_is_an_error_of_construction(limits: dict[str, Any]) -> None:
    @tool
    def pay(amount: int, note: str = "") -> None:
        """Pay."""

    @tool
    def tag(names: list[str]) -> None:
        """Tag."""

    parameter = "note" if "maximum" in limits else "amount"
    with pytest.raises(PolicyError, match=f"pay takes no value as {parameter} that satisfies all of this, so it could never be called"):
        policy(ArgumentRequirement("pay", parameter, **limits), tools=[pay])
    left_out = policy(ArgumentRequirement("pay", "note", optional=True, **limits), tools=[pay])
    assert left_out.permit().denied == ()
    assert policy(ArgumentRequirement("tag", "names", each=True, maximum=9), tools=[tag]).permit().denied == ()

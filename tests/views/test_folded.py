"""A graph made small: loops become words, what acts alike is told together, and of a large one the way of the run is kept."""

from maymust import ConditionalRequirement, History, Policy
from maymust.core.compiled import CompiledPolicy
from maymust.views.automaton import policy_graph
from maymust.views.folded import fold_graph, group_text

CHAIN = Policy(
    [
        ConditionalRequirement("b", only_after=["a"], max_invocations=1),
        ConditionalRequirement("final_answer", only_after=["b"]),
    ],
    tools=["a", "b", *(f"free_{number}" for number in range(9))],
)


def test_loops_are_no_edges() -> None:
    folded = fold_graph(policy_graph(CHAIN))
    assert [(source, target, calls) for source, target, calls in folded.edges] == [(0, 1, ("a",)), (1, 2, ("b",))]
    assert [node.stays for node in folded.nodes] == [(), ("a",), ("a",)]


def test_tools_that_are_free_everywhere_are_told_once() -> None:
    folded = fold_graph(policy_graph(CHAIN))
    assert folded.anywhere == tuple(f"free_{number}" for number in range(9))
    assert [node.lines for node in folded.nodes] == [("a",), ("b",), ("nothing changes",)]
    assert [node.may_stop for node in folded.nodes] == [False, False, True]


def test_tools_that_act_alike_are_one_group() -> None:
    either = Policy([ConditionalRequirement("final_answer", only_after=["a"])], tools=["a", "b"])
    rules = [ConditionalRequirement("last", min_invocations=1), ConditionalRequirement("last", name="after", force_after=["x", "y"])]
    twins = Policy(rules, tools=["x", "y", "last"])
    assert fold_graph(policy_graph(either)).edges == ((0, 1, ("a",)),)
    assert ("x, y",) in [calls for _, _, calls in fold_graph(policy_graph(twins)).edges]
    assert group_text(list("abcdefg")) == "a, b, c and 4 more"
    assert group_text(list("abcd")) == "a, b, c, d"


def test_of_a_large_graph_the_way_of_the_run_is_kept() -> None:
    names = [f"t{number}" for number in range(8)]
    large = policy_graph(Policy([ConditionalRequirement(name, max_invocations=1) for name in names], tools=names))
    folded = fold_graph(large, [0, 5, 77], most=10)
    assert {0, 5, 77} <= {node.number for node in folded.nodes}
    assert (len(folded.nodes), folded.left_out) == (10, len(large.verdicts) - 10)
    assert all({source, target} <= {node.number for node in folded.nodes} for source, target, _ in folded.edges)


def test_the_situation_of_a_history_is_known() -> None:
    graph, compiled = policy_graph(CHAIN), CompiledPolicy(CHAIN, opaque="open")
    history = History()
    seen = []
    for call in ("free_1", "a", "a", "b"):
        seen.append(graph.situations[compiled.state_of(history)])
        history = history.add(call)
    assert seen == [0, 0, 1, 1]
    assert graph.may_stop(graph.situations[compiled.state_of(history)])

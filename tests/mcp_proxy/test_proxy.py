"""A policy between the official client and the official server."""

from __future__ import annotations

import asyncio
import logging
from typing import Any

import pytest

pytest.importorskip("mcp")

from mcp.client.subscriptions import listen
from mcp.server.mcpserver import Context, MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp.shared.exceptions import MCPError
from mcp.types import CreateMessageResult, ElicitResult, TextContent
from pydantic import BaseModel

from maymust import (
    ArgumentRequirement,
    AskPermissionRequirement,
    ConditionalRequirement,
    Decision,
    History,
    Policy,
    Rule,
    requirement,
)
from maymust.errors import UnsupportedRuleError
from maymust.mcp_proxy.limits import check_policy
from tests.mcp_proxy.harness import ERAS, MODERN, Heard, names, person, proxied, run, text

TOOLS = ["think", "search", "refund"]


class Order(BaseModel):
    number: int


def shop(ran: list[str] | None = None) -> MCPServer:
    """A server with three tools."""
    server = MCPServer("shop")
    did = ran if ran is not None else []

    @server.tool()
    def think() -> str:
        """Think."""
        did.append("think")
        return "thought"

    @server.tool()
    def search(q: str) -> str:
        """Search."""
        did.append(f"search {q}")
        if q == "broken":
            raise ToolError("the index is broken")
        return f"found {q}"

    @server.tool()
    def refund(amount: float) -> str:
        """Pay back."""
        did.append(f"refund {amount}")
        return "refunded"

    return server


def policy(*rules: Any, tools: list[str] | None = None) -> Policy:
    return Policy(rules, tools=tools or TOOLS, final_answer_as_tool=False)


LATER = ConditionalRequirement("search", only_after=["think"])


# --- the list, and calls ---


@pytest.mark.parametrize("mode", ERAS)
def test_the_list_is_what_the_pass_leaves_and_a_refusal_says_what_unlocks(mode: str) -> None:
    async def main() -> None:
        ran: list[str] = []
        async with proxied(policy(LATER), shop(ran), mode=mode) as client:
            assert await names(client) == ["think", "refund"]
            refused = await client.call_tool("search", {"q": "x"})
            assert refused.is_error
            assert text(refused) == "not now: think has to succeed first; you may call: think, refund"
            assert ran == []
            assert not (await client.call_tool("think", {})).is_error
            assert await names(client) == TOOLS
            assert text(await client.call_tool("search", {"q": "x"})) == "found x"
        assert ran == ["think", "search x"]

    run(main)


def test_a_client_with_a_handshake_hears_that_its_list_has_changed() -> None:
    async def main() -> None:
        heard = Heard()
        async with proxied(policy(LATER), shop(), message_handler=heard) as client:
            assert client.server_capabilities.tools is not None
            assert client.server_capabilities.tools.list_changed is True
            await client.call_tool("think", {})
            assert heard.kinds == []  # it has not asked for the list yet
            await names(client)
            await client.call_tool("search", {"q": "x"})
            assert heard.kinds == []  # nothing changed
        async with proxied(policy(LATER), shop(), message_handler=heard) as client:
            await names(client)
            await client.call_tool("think", {})
            await asyncio.wait_for(heard.changed.wait(), 5)
            assert heard.kinds == ["ToolListChangedNotification"]

    run(main)


def test_a_client_that_subscribes_hears_it_on_its_stream() -> None:
    async def main() -> None:
        async with proxied(policy(LATER), shop(), mode=MODERN) as client, listen(client.session, tools_list_changed=True) as changes:
            assert changes.honored.tools_list_changed is True
            await names(client)
            await client.call_tool("think", {})
            event = await asyncio.wait_for(anext(changes), 5)
            assert type(event).__name__ == "ToolsListChanged"

    run(main)


def test_a_server_that_serves_no_streams_does_not_keep_the_client_from_hearing_it() -> None:
    async def main() -> None:
        server = MCPServer("plain", subscriptions=False)
        server.add_tool(lambda: "x", name="think")
        server.add_tool(lambda: "x", name="search")
        rules = policy(LATER, tools=["think", "search"])
        async with proxied(rules, server, mode=MODERN) as client, listen(client.session, tools_list_changed=True) as changes:
            await names(client)
            await client.call_tool("think", {})
            assert type(await asyncio.wait_for(anext(changes), 5)).__name__ == "ToolsListChanged"

    run(main)


def test_closed_tools_can_stay_in_the_list_with_the_reason() -> None:
    async def main() -> None:
        hide = requirement(name="veil", targets=["refund"], depends_on=[])(lambda history: Rule("refund", hidden=True))
        async with proxied(policy(LATER, hide), shop(), settings={"closed": True}) as client:
            listed = (await client.list_tools()).tools
            assert [tool.name for tool in listed] == ["think", "search"]
            assert listed[1].description == "Search.\n\nNot now: think has to succeed first"
            assert (await client.call_tool("search", {"q": "x"})).is_error

    run(main)


def test_a_hidden_tool_reads_like_an_unknown_one() -> None:
    async def main() -> None:
        hide = requirement(name="veil", targets=["refund"], depends_on=[])(lambda history: Rule("refund", hidden=True))
        ran: list[str] = []
        async with proxied(policy(hide), shop(ran)) as client:
            assert await names(client) == ["think", "search"]
            hidden = text(await client.call_tool("refund", {"amount": 1}))
            unknown = text(await client.call_tool("refunt", {"amount": 1}))
            assert hidden == "there is no tool called 'refund'; you may call: think, search"
            assert unknown == hidden.replace("refund", "refunt")
            assert text(await client.call_tool("final_answer", {})).startswith("there is no tool called 'final_answer'; you may call:")
        assert ran == []

    run(main)


def test_a_failed_call_does_not_count_as_a_success() -> None:
    async def main() -> None:
        after = ConditionalRequirement("refund", only_after=["search"])
        async with proxied(policy(after), shop()) as client:
            failed = await client.call_tool("search", {"q": "broken"})
            assert failed.is_error
            assert text(failed) == "Error executing tool search: the index is broken"
            assert "search has to succeed first" in text(await client.call_tool("refund", {"amount": 1}))
            await client.call_tool("search", {"q": "x"})
            assert text(await client.call_tool("refund", {"amount": 1})) == "refunded"

    run(main)


def test_limits_count_over_the_connection() -> None:
    async def main() -> None:
        twice = ConditionalRequirement("search", max_invocations=2)
        async with proxied(policy(twice), shop()) as client:
            assert [(await client.call_tool("search", {"q": "x"})).is_error for _ in range(4)] == [False, False, True, True]
            assert await names(client) == ["think", "refund"]
        async with proxied(policy(twice), shop()) as client:
            assert not (await client.call_tool("search", {"q": "x"})).is_error

    run(main)


def test_overlapping_calls_are_let_through_in_their_order() -> None:
    async def main() -> None:
        ran: list[str] = []
        async with proxied(policy(ConditionalRequirement("search", max_invocations=1), LATER), shop(ran)) as client:
            await client.call_tool("think", {})
            results = await asyncio.gather(*(client.call_tool("search", {"q": str(number)}) for number in range(3)))
            assert [result.is_error for result in results] == [False, True, True]
        assert ran == ["think", "search 0"]

    run(main)


def test_a_call_that_hangs_on_one_still_running_waits_for_it() -> None:
    async def main() -> None:
        server, go = shop(), asyncio.Event()

        @server.tool()
        async def slow() -> str:
            await go.wait()
            raise ToolError("no luck")

        once = ConditionalRequirement("slow", max_invocations=1)
        async with proxied(policy(once, tools=[*TOOLS, "slow"]), server) as client:
            first = asyncio.create_task(client.call_tool("slow", {}))
            second = asyncio.create_task(client.call_tool("slow", {}))
            assert text(await client.call_tool("think", {})) == "thought"
            assert not second.done()
            go.set()
            # The first one failed, which leaves room for the second.
            for result in await asyncio.gather(first, second):
                assert "no luck" in text(result)

    run(main)


def test_arguments_are_narrowed_in_the_schema_and_at_the_gate() -> None:
    async def main() -> None:
        bounds = requirement(name="bounds", targets=["refund"], depends_on=[])(
            lambda history: Rule("refund", arguments={"amount": {"type": "number", "maximum": 100}}, reason="small refunds only")
        )
        ran: list[str] = []
        async with proxied(policy(bounds), shop(ran)) as client:
            schema = (await client.list_tools()).tools[2].input_schema
            assert schema["properties"]["amount"]["maximum"] == 100
            refused = text(await client.call_tool("refund", {"amount": 500}))
            assert refused.startswith("not with these arguments: amount has to be a number, at most 100, got 500")
            assert (await client.call_tool("refund", {"amount": "500"})).is_error
            assert (await client.call_tool("refund", {})).is_error
            assert not (await client.call_tool("refund", {"amount": 50})).is_error
        assert ran == ["refund 50.0"]

    run(main)


def test_a_rule_may_want_a_value_that_an_earlier_call_returned() -> None:
    async def main() -> None:
        server = shop()

        @server.tool()
        def order(name: str) -> Order:
            return Order(number=7)

        @server.tool()
        def ship(number: int) -> str:
            return f"shipped {number}"

        read = ArgumentRequirement("ship", "number", from_output=("order", lambda output: [output["number"]]))
        async with proxied(policy(read, tools=[*TOOLS, "order", "ship"]), server) as client:
            assert (await client.call_tool("ship", {"number": 7})).is_error
            await client.call_tool("order", {"name": "lamp"})
            assert (await client.call_tool("ship", {"number": 8})).is_error
            assert text(await client.call_tool("ship", {"number": 7})) == "shipped 7"

    run(main)


# --- a person's yes ---

ASK = AskPermissionRequirement("refund")


@pytest.mark.parametrize("mode", ERAS)
def test_a_person_is_asked_by_elicitation(mode: str) -> None:
    async def main() -> None:
        ran: list[str] = []
        heard: list[str] = []
        says = person("accept", "decline", "cancel", heard=heard)
        async with proxied(policy(ASK), shop(ran), mode=mode, elicitation_callback=says) as client:
            assert await names(client) == TOOLS
            assert text(await client.call_tool("refund", {"amount": 5})) == "refunded"
            declined = await client.call_tool("refund", {"amount": 6})
            dismissed = await client.call_tool("refund", {"amount": 7})
        assert ran == ["refund 5.0"]
        assert declined.is_error
        assert dismissed.is_error
        assert "the question was not answered" in text(dismissed)
        assert len(heard) == 3
        assert heard[0].startswith("Allow this call of refund?")
        assert '"amount": 5' in heard[0]

    run(main)


@pytest.mark.parametrize("mode", ERAS)
def test_without_elicitation_the_call_is_refused_with_the_reason(mode: str) -> None:
    async def main() -> None:
        ran: list[str] = []
        async with proxied(policy(ASK), shop(ran), mode=mode) as client:
            refused = text(await client.call_tool("refund", {"amount": 5}))
        assert refused.startswith("not now: refund needs a person's yes")
        assert refused.endswith("this client cannot ask one (it has no elicitation)")
        assert ran == []

    run(main)


def test_a_handler_in_python_is_asked_first() -> None:
    async def main() -> None:
        asked: list[Any] = []

        def says(call: Any) -> Decision:
            asked.append(call.arguments)
            return Decision(call.arguments["amount"] < 10, "too much")

        async with proxied(policy(AskPermissionRequirement("refund", handler=says)), shop()) as client:
            assert text(await client.call_tool("refund", {"amount": 5})) == "refunded"
            assert "too much" in text(await client.call_tool("refund", {"amount": 50}))
        assert asked == [{"amount": 5}, {"amount": 50}]

    run(main)


def test_a_handler_that_raises_keeps_the_call_closed() -> None:
    async def main() -> None:
        def says(call: Any) -> bool:
            raise ValueError("swordfish")

        ran: list[str] = []
        async with proxied(policy(AskPermissionRequirement("refund", handler=says)), shop(ran)) as client:
            refused = await client.call_tool("refund", {"amount": 5})
            assert refused.is_error
            assert text(refused) == "not now: a rule or a handler raised ValueError"
            assert text(await client.call_tool("think", {})) == "thought"
        assert ran == ["think"]

    run(main)


def test_a_remembered_yes_is_not_asked_for_again() -> None:
    async def main() -> None:
        says = person("accept")
        rule = AskPermissionRequirement("refund", remember_choices=True)
        async with proxied(policy(rule), shop(), elicitation_callback=says) as client:
            for amount in (1, 2, 3):
                assert text(await client.call_tool("refund", {"amount": amount})) == "refunded"

    run(main)


def test_the_answer_to_a_question_is_for_that_very_call_and_counts_once() -> None:
    async def main() -> None:
        ran: list[str] = []
        async with proxied(policy(ASK), shop(ran), mode=MODERN, elicitation_callback=person()) as client:
            session: Any = client.session
            asked = await session.call_tool("refund", {"amount": 5}, allow_input_required=True)
            state, yes = asked.request_state, {"maymust": ElicitResult(action="accept")}
            other = await session.call_tool("refund", {"amount": 500}, input_responses=yes, request_state=state, allow_input_required=True)
            assert other.result_type == "input_required"  # asked anew
            spent = await session.call_tool("refund", {"amount": 5}, input_responses=yes, request_state=state, allow_input_required=True)
            assert spent.result_type == "input_required"
            made_up = await session.call_tool(
                "refund", {"amount": 5}, input_responses=yes, request_state="maymust:guess", allow_input_required=True
            )
            assert made_up.result_type == "input_required"
            good = await session.call_tool(
                "refund", {"amount": 5}, input_responses=yes, request_state=made_up.request_state, allow_input_required=True
            )
            assert text(good) == "refunded"
        assert ran == ["refund 5.0"]

    run(main)


# --- what passes as it is ---


class Sure(BaseModel):
    sure: bool


def busy() -> MCPServer:
    """A server that uses what the protocol has."""
    server = shop()

    @server.resource("note://one")
    def note() -> str:
        return "a note"

    @server.prompt()
    def greet(name: str) -> str:
        return f"Hello {name}"

    @server.tool()
    async def ask_the_client(ctx: Context) -> str:
        got = await ctx.elicit("Sure?", Sure)
        return f"{got.action}"

    @server.tool()
    async def steps(ctx: Context) -> str:
        for step in (1, 2):
            await ctx.report_progress(step, 2, f"step {step}")
        return "done"

    return server


@pytest.mark.parametrize("mode", ERAS)
def test_resources_prompts_and_progress_pass_as_they_are(mode: str) -> None:
    async def main() -> None:
        seen: list[tuple[float, str | None]] = []

        async def noted(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, message))

        async with proxied(policy(LATER), busy(), mode=mode) as client:
            assert [str(one.uri) for one in (await client.list_resources()).resources] == ["note://one"]
            assert (await client.read_resource("note://one")).contents[0].text == "a note"  # type: ignore[union-attr]
            prompt = await client.get_prompt("greet", {"name": "Ann"})
            assert prompt.messages[0].content.text == "Hello Ann"  # type: ignore[union-attr]
            assert text(await client.call_tool("steps", {}, progress_callback=noted)) == "done"
        assert seen == [(1.0, "step 1"), (2.0, "step 2")]

    run(main)


@pytest.mark.parametrize("asks", [False, True])
def test_the_servers_own_questions_reach_the_client(asks: bool) -> None:
    async def main() -> None:
        heard: list[str] = []

        async def answer(context: Any, params: Any) -> ElicitResult:
            heard.append(params.message)
            return ElicitResult(action="accept", content={"sure": True} if params.message == "Sure?" else {})

        rules = [AskPermissionRequirement("ask_the_client")] if asks else []
        async with proxied(policy(*rules, tools=["ask_the_client"]), busy(), elicitation_callback=answer) as client:
            assert text(await client.call_tool("ask_the_client", {})) == "accept"
        assert [one.partition("\n")[0] for one in heard] == (["Allow this call of ask_the_client?"] if asks else []) + ["Sure?"]

    run(main)


@pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")
def test_sampling_passes() -> None:
    async def main() -> None:
        server = MCPServer("sampler")

        @server.tool()
        async def think_aloud(ctx: Context) -> str:
            from mcp.types import SamplingMessage

            got: Any = await ctx.session.create_message(
                [SamplingMessage(role="user", content=TextContent(type="text", text="?"))], max_tokens=5
            )
            return str(got.content.text)

        async def model(context: Any, params: Any) -> CreateMessageResult:
            return CreateMessageResult(role="assistant", content=TextContent(type="text", text="aha"), model="m")

        async with proxied(policy(tools=["think_aloud"]), server, sampling_callback=model) as client:
            assert text(await client.call_tool("think_aloud", {})) == "aha"

    run(main)


def test_a_cancelled_call_is_cancelled_at_the_server_and_counts_as_failed() -> None:
    async def main() -> None:
        server, cut, begun = shop(), asyncio.Event(), asyncio.Event()

        @server.tool()
        async def wait() -> str:
            begun.set()
            try:
                await asyncio.sleep(60)
            finally:
                cut.set()
            return "x"

        after = ConditionalRequirement("search", only_after=["wait"])
        async with proxied(policy(after, tools=[*TOOLS, "wait"]), server) as client:
            call = asyncio.create_task(client.call_tool("wait", {}))
            await begun.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            await asyncio.wait_for(cut.wait(), 5)
            assert "wait has to succeed first" in text(await client.call_tool("search", {"q": "x"}))

    run(main)


def test_a_call_that_waits_for_another_one_can_be_taken_back() -> None:
    async def main() -> None:
        server, go, begun, ran = shop(), asyncio.Event(), asyncio.Event(), list[str]()

        @server.tool()
        async def slow(name: str) -> str:
            ran.append(name)
            begun.set()
            await go.wait()
            return name

        once = ConditionalRequirement("slow", max_invocations=2)
        async with proxied(policy(once, tools=[*TOOLS, "slow"]), server) as client:
            first, second, third = (asyncio.create_task(client.call_tool("slow", {"name": name})) for name in ("a", "b", "c"))
            await begun.wait()
            # The third one hangs on how the first two come back, and what comes after it waits in line.
            after = asyncio.create_task(client.call_tool("think", {}))
            await asyncio.sleep(0.05)
            assert not after.done()
            third.cancel()
            await asyncio.gather(third, return_exceptions=True)
            assert text(await after) == "thought"
            go.set()
            assert [text(result) for result in await asyncio.gather(first, second)] == ["a", "b"]
            assert (await client.call_tool("slow", {"name": "d"})).is_error
            assert text(await client.call_tool("search", {"q": "x"})) == "found x"
        assert ran == ["a", "b"]

    run(main)


def test_a_call_that_waits_for_a_person_can_be_taken_back() -> None:
    async def main() -> None:
        asked, ran = asyncio.Event(), list[str]()

        async def never(context: Any, params: Any) -> ElicitResult:
            asked.set()
            await asyncio.sleep(60)
            raise AssertionError

        async with proxied(policy(ASK), shop(ran), elicitation_callback=never) as client:
            call = asyncio.create_task(client.call_tool("refund", {"amount": 5}))
            await asked.wait()
            call.cancel()
            await asyncio.gather(call, return_exceptions=True)
            assert text(await client.call_tool("think", {})) == "thought"
        assert ran == ["think"]

    run(main)


def test_a_result_passes_with_all_its_blocks() -> None:
    async def main() -> None:
        server = MCPServer("blocks")

        @server.tool(structured_output=False)
        def both() -> list[Any]:
            from mcp.server.mcpserver import Image

            return ["here:", Image(data=b"hello", format="png")]

        async with proxied(policy(tools=["both"]), server) as client:
            result = await client.call_tool("both", {})
        assert [block.type for block in result.content] == ["text", "image"]
        assert result.content[1].data == "aGVsbG8="  # type: ignore[union-attr]

    run(main)


# --- the server's own list ---


def test_tools_that_come_and_go_at_the_server_come_and_go_at_the_client() -> None:
    async def main() -> None:
        server, heard = shop(), Heard()

        @server.tool()
        async def grow(ctx: Context) -> str:
            server.add_tool(lambda: "x", name="fresh")
            server.remove_tool("refund")
            await ctx.notify_tools_changed()
            await ctx.session.send_tool_list_changed()
            return "grown"

        async with proxied(policy(LATER, tools=[*TOOLS, "grow"]), server, message_handler=heard) as client:
            assert await names(client) == ["think", "refund", "grow"]
            await client.call_tool("grow", {})
            await asyncio.wait_for(heard.changed.wait(), 5)
            assert await names(client) == ["think", "grow", "fresh"]
            assert text(await client.call_tool("fresh", {})) == "x"
            assert "there is no tool called 'refund'" in text(await client.call_tool("refund", {"amount": 1}))

    run(main)


def test_unlisted_tools_can_be_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        rules = policy(tools=["think"])
        with caplog.at_level(logging.WARNING):
            async with proxied(rules, shop()) as client:
                assert await names(client) == TOOLS
        assert "let through, for no rule speaks of them (--unlisted hide leaves them out): search, refund" in caplog.text
        async with proxied(rules, shop(), settings={"unlisted": False}) as client:
            assert await names(client) == ["think"]
            assert "there is no tool called 'search'" in text(await client.call_tool("search", {"q": "x"}))

    run(main)


def test_a_tool_of_a_reserved_name_is_left_out(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        server = shop()
        server.add_tool(lambda: "x", name="final_answer")
        async with proxied(policy(), server) as client:
            assert await names(client) == TOOLS
            assert (await client.call_tool("final_answer", {})).is_error

    with caplog.at_level(logging.WARNING):
        run(main)
    assert "left out, for these names are reserved: final_answer" in caplog.text


def test_a_policy_that_names_tools_nobody_has_says_which(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        rules = policy(ConditionalRequirement("serach", only_after=["think"]), tools=["think", "serach"])
        ran: list[str] = []
        async with proxied(rules, shop(ran)) as client:
            with pytest.raises(MCPError, match=r"tools that the server does not have: serach \(did you mean search\?\)\. It has: think"):
                await client.list_tools()
            assert (await client.call_tool("think", {})).is_error
        assert ran == []
        async with proxied(rules, shop(ran), settings={"lenient": True}) as client:
            assert await names(client) == TOOLS

    run(main)
    assert "serach" in caplog.text


# --- what does not hold ---


@pytest.mark.parametrize(
    "rule",
    [
        ConditionalRequirement("search", min_invocations=1),
        ConditionalRequirement("final_answer", only_after=["search"]),
    ],
)
def test_what_a_proxy_cannot_hold_is_an_error_at_the_start(rule: Any, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(UnsupportedRuleError, match=r"an MCP proxy cannot enforce this policy: .*keeping the run from ending") as caught:
        check_policy(policy(rule))
    assert caught.value.features == ("stop",)
    check_policy(policy(rule), lenient=True)
    assert "keeping the run from ending" in caplog.text


def test_a_force_closes_everything_else_and_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    first = ConditionalRequirement("think", force_at_step=1, force_prevent_stop=False)
    check_policy(policy(first))
    assert "holds in part" in caplog.text

    async def main() -> None:
        async with proxied(policy(first), shop()) as client:
            assert await names(client) == ["think"]
            assert text(await client.call_tool("search", {"q": "x"})) == "not now: think has to be called first; you may call: think"
            await client.call_tool("think", {})
            assert await names(client) == TOOLS

    run(main)


def test_async_requirements_are_an_error_at_the_start() -> None:
    @requirement(name="slow", targets=["search"], depends_on=[])
    async def slow(history: History) -> Rule:
        return Rule("search")

    with pytest.raises(UnsupportedRuleError, match="plain function"):
        check_policy(policy(slow))


def test_a_rule_that_fails_closes_what_it_speaks_of(caplog: pytest.LogCaptureFixture) -> None:
    @requirement(name="odd", targets=["search"])
    def odd(history: History) -> Rule:
        if history.seen("think"):
            raise ValueError("odd")
        return Rule("search")

    async def main() -> None:
        ran: list[str] = []
        async with proxied(policy(odd), shop(ran)) as client:
            assert not (await client.call_tool("think", {})).is_error
            assert (await client.call_tool("search", {"q": "x"})).is_error
            assert await names(client) == []
        assert ran == ["think"]

    run(main)
    assert "odd" in caplog.text


# --- hostile peers ---


def test_nothing_that_was_sent_gets_into_the_log(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        bounds = requirement(name="bounds", targets=["search"], depends_on=[])(
            lambda history: Rule("search", arguments={"q": {"type": "string", "maxLength": 3}})
        )
        async with proxied(policy(bounds, ASK), shop()) as client:
            await client.call_tool("search", {"q": "swordfish"})
            await client.call_tool("refund", {"amount": 1, "password": "swordfish"})
            await client.call_tool("think", {"password": "swordfish"})

    with caplog.at_level(logging.DEBUG, logger="maymust"):
        run(main)
    assert "was refused" in caplog.text
    assert "swordfish" not in "".join(record.getMessage() for record in caplog.records if record.name.startswith("maymust"))


def test_an_empty_and_a_second_session_are_nothing_special() -> None:
    async def main() -> None:
        for _ in range(2):
            async with proxied(policy(LATER), shop()) as client:
                assert (await client.call_tool("search", {"q": "x"})).is_error
        async with proxied(policy(tools=["x"]), MCPServer("empty"), settings={"lenient": True}) as client:
            assert await names(client) == []

    run(main)


def test_two_clients_at_once_keep_apart() -> None:
    async def main() -> None:
        rules, server = policy(LATER), shop()
        async with proxied(rules, server) as one, proxied(rules, server, mode=MODERN) as other:
            await one.call_tool("think", {})
            assert await names(one) == TOOLS
            assert await names(other) == ["think", "refund"]

    run(main)

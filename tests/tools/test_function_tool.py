"""Tools made from functions and classes."""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from pydantic import BaseModel, Field

from maymust import FunctionInvocationContext, ThinkTool, Tool, tool
from maymust.errors import PolicyError
from maymust.tools.arguments import ArgumentsInvalid
from maymust.tools.function_tool import as_tool

if TYPE_CHECKING:
    from maymust.tools.context import FunctionInvocationContext as Ctx


class Silent:
    """A run that is not there."""


def context() -> FunctionInvocationContext:
    return FunctionInvocationContext(
        name="t",
        function=None,
        call_id="c1",
        arguments={},
        raw_arguments="{}",
        idempotency_key="r/1/c1",
        run=Silent(),  # type: ignore[arg-type]
    )


def call(made: Tool, **arguments: Any) -> Any:
    return made.invoke(made.parse(arguments).values, context())


def search(query: str, limit: int = 5) -> str:
    """Search the shop.

    Args:
        query: What to look for.
    """
    return f"{query}/{limit}"


class Shop:
    def __init__(self, name: str) -> None:
        self.name = name

    def find(self, article: str) -> str:
        """Find an article."""
        return f"{self.name}: {article}"

    @classmethod
    def open(cls, hour: int) -> str:
        return f"{cls.__name__} at {hour}"

    @staticmethod
    def close(hour: int) -> str:
        return f"at {hour}"

    def __call__(self, order: str) -> str:
        """Order something."""
        return f"{self.name} ordered {order}"


# --- what a function becomes ---


def test_the_schema_comes_from_types_defaults_and_the_docstring() -> None:
    made = tool(search)
    assert made.name == "search"
    assert made.description == "Search the shop."
    assert made.parameters == {
        "type": "object",
        "properties": {"query": {"type": "string", "description": "What to look for."}, "limit": {"type": "integer", "default": 5}},
        "required": ["query"],
        "additionalProperties": False,
    }


def test_settings_of_the_decorator_override_what_the_function_says() -> None:
    @tool(name="find", description="Find it.", approval_mode="always_require", timeout=2, repeatable=True, effect="read", untrusted=True)
    def made(q: str) -> str:
        """Not this."""
        return q

    assert (made.name, made.description, made.approval_mode, made.timeout) == ("find", "Find it.", "always_require", 2)
    assert (made.repeatable, made.effect, made.untrusted) == (True, "read", True)


def test_the_defaults_are_the_careful_ones() -> None:
    made = tool(search)
    assert (made.approval_mode, made.timeout, made.repeatable, made.effect, made.untrusted) == ("never_require", None, False, "once", False)


def test_a_decorated_function_can_still_be_called() -> None:
    made = tool(search)
    assert made("x", limit=2) == "x/2"
    assert made.function is search


def test_validated_values_reach_the_body() -> None:
    assert call(tool(search), query="tea", limit="7") == "tea/7"


def test_an_async_function_is_known_as_one_and_gives_an_awaitable() -> None:
    @tool
    async def wait(seconds: int) -> int:
        return seconds

    assert wait.is_async
    assert not tool(search).is_async
    pending = call(wait, seconds=1)
    with pytest.raises(StopIteration) as done:
        pending.send(None)
    assert done.value.value == 1


class Address(BaseModel):
    street: str
    number: int = 1


def test_descriptions_come_from_annotated_strings_and_fields() -> None:
    @tool
    def send(
        to: Annotated[Address, "Where to."],
        weight: Annotated[int, Field(ge=1, description="In grams.")],
        note: str = Field("", max_length=9),
    ) -> str:
        return f"{to.street} {to.number} {weight} {note!r}"

    properties = send.parameters["properties"]
    assert properties["to"]["description"] == "Where to."
    assert properties["weight"] == {"type": "integer", "minimum": 1, "description": "In grams."}
    assert properties["note"] == {"type": "string", "maxLength": 9, "default": ""}
    assert send.parameters["required"] == ["to", "weight"]
    assert call(send, to={"street": "Oude Delft"}, weight=3) == "Oude Delft 1 3 ''"


def test_two_models_of_one_name_keep_apart() -> None:
    def other() -> type[BaseModel]:
        class Address(BaseModel):
            mail: str

        return Address

    def send(one: list[Address], two: Any) -> None: ...

    send.__annotations__ = {"one": list[Address], "two": list[other()]}  # type: ignore[misc]
    schema = tool(send).parameters
    kinds = [schema["$defs"][schema["properties"][name]["items"]["$ref"].rpartition("/")[2]] for name in ("one", "two")]
    assert [set(kind["properties"]) for kind in kinds] == [{"street", "number"}, {"mail"}]


# --- the context ---


def test_the_context_is_passed_by_type_under_any_name_and_never_in_the_schema() -> None:
    def plain(q: str, anything: FunctionInvocationContext) -> Any:
        return anything

    def optional(q: str, ctx: Optional[FunctionInvocationContext] = None) -> Any:  # noqa: UP045
        return ctx

    def union(q: str, *, ctx: FunctionInvocationContext | None = None) -> Any:
        return ctx

    def annotated(q: str, ctx: Annotated[FunctionInvocationContext, "said"]) -> Any:
        return ctx

    def for_checkers_only(q: str, ctx: Ctx) -> Any:
        return ctx

    bodies: list[Callable[..., Any]] = [plain, optional, union, annotated]
    for body in bodies:
        made = tool(body)
        assert list(made.parameters["properties"]) == ["q"]
        given = context()
        assert made.invoke(made.parse({"q": "x"}).values, given) is given
    with pytest.raises(PolicyError, match="Ctx"):
        _ = tool(for_checkers_only).parameters


def test_a_context_that_is_imported_for_type_checkers_only_is_known_by_its_name() -> None:
    def body(q: str, ctx: FunctionInvocationContext | None = None) -> Any:
        return ctx

    names = {name: value for name, value in globals().items() if name != "FunctionInvocationContext"}
    lonely = types.FunctionType(body.__code__, names, "body", body.__defaults__)
    lonely.__annotations__ = body.__annotations__
    made = tool(lonely)
    assert list(made.parameters["properties"]) == ["q"]
    given = context()
    assert made.invoke(made.parse({"q": "x"}).values, given) is given


def test_the_model_cannot_fill_in_the_context_or_what_a_partial_holds() -> None:
    def body(key: str, ctx: FunctionInvocationContext, **further: Any) -> Any:
        return key, further

    made = tool(functools.partial(body, key="ours"))
    assert made.parameters["properties"] == {}
    for name in ("ctx", "key"):
        with pytest.raises(ArgumentsInvalid, match=f"no parameter '{name}'"):
            made.parse({name: "theirs"})
    assert call(made, other=1, further=2) == ("ours", {"other": 1, "further": 2})


# --- where functions come from ---


def test_bound_methods_partials_and_callable_objects_become_tools() -> None:
    shop = Shop("Delft")
    assert call(tool(shop.find), article="tea") == "Delft: tea"
    assert tool(shop.find).name == "find"
    assert call(tool(Shop.open), hour=9) == "Shop at 9"
    assert call(tool(Shop.close), hour=9) == "at 9"
    assert call(tool(name="order")(shop), order="tea") == "Delft ordered tea"
    assert tool(name="order")(shop).description == "Order something."
    assert call(tool(functools.partial(search, limit=3)), query="tea") == "tea/3"
    assert call(tool(functools.partial(search, "tea")), limit=3) == "tea/3"
    assert tool(functools.partial(search, limit=3)).description == "Search the shop."
    assert call(tool(name="twice")(lambda x: x * 2), x=2) == 4


def test_wrapped_functions_keep_the_signature_they_wrap() -> None:
    @functools.wraps(search)
    def wrapper(*args: Any, **kwargs: Any) -> str:
        return "wrapped " + search(*args, **kwargs)

    made = tool(wrapper)
    assert list(made.parameters["properties"]) == ["query", "limit"]
    assert call(made, query="tea") == "wrapped tea/5"


def test_types_that_are_local_to_the_place_of_the_decorator_are_found() -> None:
    class Local(BaseModel):
        size: int

    @tool
    def take(it: Local, rest: list[Local] | None = None) -> int:
        return it.size

    assert call(take, it={"size": 4}) == 4


def test_names_around_the_decorator_do_not_stand_for_those_of_the_functions_own_module() -> None:
    class Address(BaseModel):
        mail: str

    assert Address is not at_home.__globals__["Address"]
    assert set(tool(at_home).parameters["properties"]["to"]["properties"]) == {"street", "number"}


def at_home(to: Address) -> None: ...


def test_types_that_are_defined_after_the_decorator_are_found_at_first_use() -> None:
    @tool
    def take(it: DefinedLater) -> int:
        return it.size

    assert call(take, it={"size": 4}) == 4


class DefinedLater(BaseModel):
    size: int


# --- classes ---


class Lookup(Tool):
    """Look something up."""

    name = "lookup"
    effect = "read"

    def __init__(self, shelf: str = "A", **settings: Any) -> None:
        super().__init__(**settings)
        self.shelf = shelf

    def run(self, key: str, ctx: FunctionInvocationContext | None = None) -> str:
        """Not the description.

        Args:
            key: The key.
        """
        return f"{self.shelf}:{key}"


def test_a_subclass_has_its_settings_on_the_class_and_its_body_in_run() -> None:
    made = Lookup()
    assert (made.name, made.description, made.effect, made.function) == ("lookup", "Look something up.", "read", None)
    assert made.parameters["properties"] == {"key": {"type": "string", "description": "The key."}}
    assert call(made, key="x") == "A:x"
    assert made(key="y") == "A:y"


def test_settings_given_to_a_subclass_override_its_own() -> None:
    made = Lookup("B", name="fetch", timeout=3.5)
    assert (made.name, made.timeout, call(made, key="x")) == ("fetch", 3.5, "B:x")


def test_a_subclass_that_forgets_the_base_constructor_works_all_the_same() -> None:
    class Careless(Tool):
        """Takes no care."""

        name = "careless"

        def __init__(self) -> None:
            self.count = 0

        async def run(self, q: str) -> str:
            return q

    made = as_tool(Careless())
    assert (made.name, made.description, made.is_async) == ("careless", "Takes no care.", True)
    assert made.parse({"q": "x"}).json == {"q": "x"}


def test_a_tool_without_a_body_or_a_name_is_an_error_with_advice() -> None:
    with pytest.raises(PolicyError, match="run"):
        Tool(name="x")

    class Nameless(Tool):
        def run(self) -> None: ...

    with pytest.raises(PolicyError, match="name="):
        Nameless()


# --- what is refused ---


@pytest.mark.parametrize("name", ["", "has space", "ünicode", "a" * 65, "dot.ted", "line\n", "semi;"])
def test_names_that_a_provider_would_refuse_are_refused_here(name: str) -> None:
    with pytest.raises(PolicyError, match="letters, digits"):
        Tool.from_schema(name, "", {"type": "object"}, search)
    if name:
        with pytest.raises(PolicyError, match="name="):
            tool(name=name)(search)


@pytest.mark.parametrize("name", ["final_answer", "auto", "required", "none"])
def test_reserved_names_are_refused(name: str) -> None:
    with pytest.raises(PolicyError, match="reserved"):
        tool(name=name)(search)


def test_functions_whose_arguments_cannot_be_named_are_refused_with_advice() -> None:
    def rest(*items: str) -> None: ...
    def positional(a: int, /) -> None: ...
    def generator(a: int) -> Any:
        yield a

    async def async_generator(a: int) -> Any:
        yield a

    for body, word in (
        (rest, "items"),
        (positional, "'a'"),
        (generator, "list"),
        (async_generator, "list"),
        (Shop.find, "tool\\(thing.method\\)"),
    ):
        with pytest.raises(PolicyError, match=word):
            tool(body)
    with pytest.raises(PolicyError, match="name="):
        tool(lambda x: x)
    with pytest.raises(PolicyError, match="name="):
        tool(Shop("Delft"))


@pytest.mark.parametrize(
    "settings",
    [
        {"timeout": 0},
        {"timeout": -1},
        {"timeout": "5"},
        {"timeout": True},
        {"effect": "twice"},
        {"approval_mode": "sometimes"},
        {"description": 5},
    ],
)
def test_settings_out_of_range_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(PolicyError, match=next(iter(settings))):
        Tool.from_function(search, **settings)


def test_a_type_without_a_schema_is_refused_with_the_parameter_in_the_text() -> None:
    def body(lock: threading.Lock) -> None: ...

    body.__annotations__["lock"] = type(threading.Lock())
    with pytest.raises(PolicyError, match="'lock'"):
        _ = tool(body).parameters


def test_an_annotation_that_cannot_be_resolved_is_refused_with_the_parameter_in_the_text() -> None:
    def body(thing: NoSuchName) -> None: ...  # type: ignore[name-defined] # noqa: F821

    with pytest.raises(PolicyError, match=r"'thing'.*NoSuchName"):
        _ = tool(body).parameters


def test_a_tool_cannot_be_changed() -> None:
    made = tool(search)
    for name in ("name", "description", "timeout", "function", "parameters", "is_async"):
        with pytest.raises(AttributeError, match=name):
            setattr(made, name, None)
    with pytest.raises(AttributeError, match="name"):
        del made.name


# --- one tool or two ---


def test_tools_of_one_function_or_one_bound_method_are_the_same_tool() -> None:
    shop = Shop("Delft")
    assert as_tool(search).same_as(as_tool(search))
    assert as_tool(shop.find).same_as(as_tool(shop.find))
    assert not as_tool(shop.find).same_as(as_tool(Shop("Delft").find))
    assert not as_tool(shop.find).same_as(as_tool(search))
    renamed = tool(name="find")(search)
    assert renamed.same_as(as_tool(search))
    assert as_tool(search).same_as(renamed)
    assert not renamed.same_as(tool(name="look")(search))


def test_tools_of_one_schema_body_under_two_names_are_two_tools() -> None:
    def send(**arguments: Any) -> Any:
        return arguments

    one, two = (Tool.from_schema(name, "", {"type": "object"}, send) for name in ("one", "two"))
    assert not one.same_as(two)
    assert not Lookup().same_as(Lookup())


def test_whatever_stands_for_a_tool_becomes_one() -> None:
    made = tool(search)
    assert as_tool(made) is made
    assert as_tool(search).function is search
    assert as_tool(ThinkTool).name == "think"
    assert as_tool(Shop("Delft").find).name == "find"


@pytest.mark.parametrize("garbage", [42, None, "search", object(), {}, [search], Shop, int])
def test_what_is_no_tool_is_a_type_error(garbage: object) -> None:
    with pytest.raises(TypeError):
        as_tool(garbage)


# --- threads ---


def test_threads_that_build_the_schema_at_once_all_get_the_same_one() -> None:
    for _ in range(50):
        made = tool(search)
        barrier = threading.Barrier(8)
        found: list[Any] = []

        def build(made: Tool = made, barrier: threading.Barrier = barrier, found: list[Any] = found) -> None:
            barrier.wait()
            found.append((made.parameters, made.parse({"query": "x"}).json))

        threads = [threading.Thread(target=build) for _ in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 8
        assert all(schema is found[0][0] and form == {"query": "x", "limit": 5} for schema, form in found)

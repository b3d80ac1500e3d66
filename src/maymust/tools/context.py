"""The context of one call, as tools and middleware get it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from maymust.tools.output import own_json

if TYPE_CHECKING:
    from maymust.core.history import History

T = TypeVar("T")


class RunSeam(Protocol):
    """What a context needs of its run. The agent's driver provides it; it refuses everything once the run is over."""

    @property
    def tools(self) -> Sequence[Any]: ...
    @property
    def history(self) -> History: ...
    @property
    def state(self) -> Any: ...
    @property
    def metadata(self) -> Mapping[str, Any]: ...
    @property
    def deps(self) -> Any: ...
    def add_tools(self, call_id: str, tools: tuple[Any, ...]) -> None:
        """See `FunctionInvocationContext.add_tools`."""
        ...

    def remove_tools(self, call_id: str, tools: tuple[Any, ...]) -> None:
        """See `FunctionInvocationContext.remove_tools`."""
        ...

    def is_cancelled(self, call_id: str) -> bool:
        """Whether nobody waits for the call any more."""
        ...


class _Given(Generic[T]):
    """A field of a call that is given once."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, context: FunctionInvocationContext | None, owner: type | None = None) -> T:
        value: Any = self if context is None else context.__dict__[self._name]
        found: T = value
        return found

    def __set__(self, context: FunctionInvocationContext, value: T) -> None:
        raise AttributeError(
            f"{self._name} of the context of {context.name!r} cannot be set: which call this is was judged before. "
            "Set ctx.arguments to change what the call is given, or ctx.result to change what the model reads"
        )


class FunctionInvocationContext:
    """One call: what was asked, by which name, in which run.

    name             the name the model wrote
    function         the `Tool` of that name, or None when there is none on offer
    call_id          the id of the call
    arguments        the arguments as a dict, None when the model wrote no JSON object; middleware may replace it
    raw_arguments    the arguments as the model wrote them
    result           the outcome's text once there is one; setting it without `call_next()` refuses the call with that text
    idempotency_key  stable over retries and resumes: run/turn/call

    Setting any of these but `arguments` and `result` raises AttributeError.
    """

    name = _Given[str]()
    function = _Given[Any]()
    call_id = _Given[str]()
    raw_arguments = _Given[str]()
    idempotency_key = _Given[str]()

    def __init__(
        self,
        *,
        name: str,
        function: Any,
        call_id: str,
        arguments: dict[str, Any] | None,
        raw_arguments: str,
        idempotency_key: str,
        run: RunSeam,
    ) -> None:
        given = {"name": name, "function": function, "call_id": call_id, "raw_arguments": raw_arguments, "idempotency_key": idempotency_key}
        self.__dict__.update(given)
        self.arguments = arguments
        self._run = run
        self._result: Any = None
        self._verdict: str | None = None

    @property
    def result(self) -> Any:
        """What the model will read for this call: None before there is anything."""
        return self._result

    @result.setter
    def result(self, value: Any) -> None:
        self._result = value
        if self._verdict is None:
            self._verdict = "refused"

    def answer(self, value: Any) -> None:
        """Answer in the tool's place, as a cache does. The step is ok; a call that was not admitted stays refused."""
        self._result = value
        self._verdict = "answered"

    def refuse(self, text: str) -> None:
        """Refuse the call; `text` is what the model reads."""
        self._result = text
        self._verdict = "refused"

    @property
    def tools(self) -> tuple[Any, ...]:
        """The tools of the run, as the model was offered them this turn. Read only."""
        return tuple(self._run.tools)

    def add_tools(self, *tools: Any) -> None:
        """Add tools (or iterables of tools) to the run, from the next turn on, if this call succeeds.

        All or nothing. Raises ValueError for a taken name, TypeError for what is no tool, RuntimeError after the run.
        """
        self._run.add_tools(self.call_id, tools)

    def remove_tools(self, *tools: Any) -> None:
        """Take tools out of the run (by name, tool or function), from the next turn on, if this call succeeds.

        Unknown ones are ignored. Raises ValueError for `final_answer` and for a tool that still owes an obligation,
        RuntimeError after the run.
        """
        self._run.remove_tools(self.call_id, tools)

    @property
    def history(self) -> History:
        """The steps of the run so far. They are copies: the run and its rules keep their own."""
        return self._run.history

    @property
    def state(self) -> Any:
        """The run's state (`RunState`), to read. It is the run's own, so nothing in it may be changed."""
        return self._run.state

    @property
    def metadata(self) -> Mapping[str, Any]:
        """The metadata given to the run. A copy: it is stored with the run, and nothing but the run changes it."""
        copy: dict[str, Any] = own_json(dict(self._run.metadata))
        return copy

    @property
    def deps(self) -> Any:
        """What was given as `deps` to the run; never stored."""
        return self._run.deps

    @property
    def cancelled(self) -> bool:
        """True when nobody waits for this call any more (timeout, cancelled run). For tools that run in threads."""
        return self._run.is_cancelled(self.call_id)

"""The steps of a run, with the questions that rules ask of them."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from typing import Any, ClassVar, TypeVar, overload

from maymust.core.log import Buffer
from maymust.core.step import Outcome, Step
from maymust.core.tool_spec import ToolLike, tool_name

T = TypeVar("T")

_OK, _FAILED = Outcome.OK, Outcome.FAILED


class Tally:
    """The steps of one kind (ok, or ok and failed): where each tool occurs, the last one, and how many so far.

    `places` may hold places of newer versions: those below a version's length are its own. `last[n]` and `total[n]` speak of the
    first n steps, so that any version reads its own line.

    tools   per step its tool, None where it does not count
    """

    __slots__ = ("last", "places", "total")

    def __init__(self, tools: Sequence[str | None] = ()) -> None:
        self.places: dict[str, list[int]] = {}
        self.last: list[str | None] = [None, *tools]
        self.total: list[int] = list(range(len(tools) + 1))
        if None in tools:
            self.total = [0, *accumulate(tool is not None for tool in tools)]
        places, last = self.places, self.last
        for place, tool in enumerate(tools):
            if tool is None:
                last[place + 1] = last[place]
            elif tool in places:
                places[tool].append(place)
            else:
                places[tool] = [place]

    def copy(self) -> Tally:
        """The same, to grow by itself."""
        made = Tally.__new__(Tally)
        made.places = {tool: places[:] for tool, places in self.places.items()}
        made.last, made.total = self.last[:], self.total[:]
        return made

    def note(self, place: int, tool: str, counts: bool) -> None:
        if counts:
            places = self.places.get(tool)
            if places is None:
                # Whole from the start: another thread may look at it.
                self.places[tool] = [place]
            else:
                places.append(place)
            self.last.append(tool)
        else:
            self.last.append(self.last[-1])
        self.total.append(self.total[-1] + counts)


def last_below(places: Sequence[int] | None, length: int) -> int | None:
    """The greatest of ascending places below a length, None when there is none. O(1) when the last one is."""
    if places is None:
        return None
    known = len(places)
    if places[known - 1] >= length:
        known = bisect_left(places, length, 0, known)
    return places[known - 1] if known else None


class _Steps(Buffer[Step]):
    """The shared list of steps with its two tallies, and what others have derived from it. While no step failed, they are one."""

    __slots__ = ("derived", "invoked", "ok")

    def __init__(self, items: Iterable[Step] = ()) -> None:
        super().__init__()
        self.items = known = list(items)
        self.derived: dict[object, Any] = {}
        self.ok = Tally([step.tool if step.outcome is _OK else None for step in known])
        if _FAILED in [step.outcome for step in known]:
            self.invoked = Tally([step.tool if step.outcome is _OK or step.outcome is _FAILED else None for step in known])
        else:
            self.invoked = self.ok

    def append(self, item: Step) -> None:
        place, tool, outcome = len(self.items), item.tool, item.outcome
        if outcome is _FAILED and self.invoked is self.ok:
            self.invoked = self.ok.copy()
        self.ok.note(place, tool, outcome is _OK)
        if self.invoked is not self.ok:
            self.invoked.note(place, tool, outcome is _OK or outcome is _FAILED)
        # The step itself comes last: a version never sees a step whose tallies are missing.
        self.items.append(item)


class History(Sequence[Step]):
    """The steps of a run. An immutable value: `add` returns a new one in O(1) and leaves every older version as it is.

    `seen`, `count`, `total` and `last` count `ok` steps; with `failures=True` they count `ok` and `failed` ones.
    Denied and refused steps are kept, but never counted. All questions are O(1) at the newest version;
    `count` of an older version takes O(log n).
    """

    __slots__ = ("_length", "_steps")

    def __init__(self, steps: Iterable[Step] = ()) -> None:
        self._steps = _Steps(steps)
        self._length = len(self._steps.items)

    def add(
        self,
        tool: ToolLike | Step,
        *,
        outcome: Outcome | str = Outcome.OK,
        arguments: Mapping[str, Any] | None = None,
        output: Any = None,
        call_id: str | None = None,
        text: str | None = None,
        untrusted: bool = False,
    ) -> History:
        """Return a history with one more step: a `Step`, or a tool's name and how the call came back."""
        step = tool
        if not isinstance(step, Step):
            known = outcome if isinstance(outcome, Outcome) else Outcome(outcome)
            step = Step(tool_name(step), known, arguments, output, call_id, text, untrusted)
        grown = History.__new__(History)
        grown._steps = self._steps.grown(self._length, step)
        grown._length = self._length + 1
        return grown

    def at(self, length: int) -> History:
        """Return the version with the first `length` steps, in O(1). Raises IndexError when there are not so many."""
        if not 0 <= length <= self._length:
            raise IndexError(f"a version of {length} steps of a history of {self._length}")
        version = History.__new__(History)
        version._steps, version._length = self._steps, length
        return version

    def grew_from(self, older: History) -> bool:
        """Whether this is a newer version of `older`: the same steps, perhaps more at the end. False may also mean: not known. O(1)."""
        return self._steps is older._steps and self._length >= older._length

    def tally(self, failures: bool) -> Tally:
        """The shared tally behind the questions, for whoever asks many at once. To read, not to change."""
        return self._steps.invoked if failures else self._steps.ok

    def derived(self, key: object, make: Callable[[], T]) -> T:
        """Return what `make` made for this key, made once and kept beside the shared steps, for as long as they live.

        All versions share it, newer ones too: whoever reads it has to keep to the length of its own version. Of an empty history
        nothing is kept.
        """
        if not self._length:
            return make()
        kept: T | None = self._steps.derived.get(key)
        return kept if kept is not None else self._steps.derived.setdefault(key, make())

    def seen(self, name: str, failures: bool = False) -> bool:
        """True when the tool has occurred at least once."""
        places = (self._steps.invoked if failures else self._steps.ok).places.get(name)
        return places is not None and places[0] < self._length

    def count(self, name: str, failures: bool = False) -> int:
        """How often the tool has occurred."""
        places = (self._steps.invoked if failures else self._steps.ok).places.get(name)
        if places is None:
            return 0
        # The number is read once: a newer version may be growing the list in another thread.
        known = len(places)
        length = self._length
        return known if places[known - 1] < length else bisect_left(places, length, 0, known)

    def last_place(self, name: str, failures: bool = False) -> int | None:
        """Place of the tool's last occurrence, counted from 0; None when it has not occurred."""
        places = (self._steps.invoked if failures else self._steps.ok).places.get(name)
        return last_below(places, self._length)

    def since(self, name: str, failures: bool = False) -> int | None:
        """How many steps that count came after the tool's last occurrence; None when it has not occurred."""
        place = self.last_place(name, failures)
        return None if place is None else self.total(failures) - (self._steps.invoked if failures else self._steps.ok).total[place + 1]

    def total(self, failures: bool = False) -> int:
        """How many steps count, of all tools together."""
        return (self._steps.invoked if failures else self._steps.ok).total[self._length]

    @property
    def last(self) -> str | None:
        """Name of the last tool that came back ok, None when there is none."""
        return self._steps.ok.last[self._length]

    @property
    def last_invocation(self) -> str | None:
        """Name of the last tool that came back ok or failed, None when there is none."""
        return self._steps.invoked.last[self._length]

    def __len__(self) -> int:
        return self._length

    @overload
    def __getitem__(self, index: int) -> Step: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Step, ...]: ...
    def __getitem__(self, index: int | slice) -> Step | tuple[Step, ...]:
        if isinstance(index, slice):
            return tuple(self._steps.items[i] for i in range(*index.indices(self._length)))
        if not -self._length <= index < self._length:
            raise IndexError(f"step {index} of a history of {self._length}")
        return self._steps.items[index if index >= 0 else index + self._length]

    def __iter__(self) -> Iterator[Step]:
        items = self._steps.items
        return (items[i] for i in range(self._length))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, History):
            return NotImplemented
        if self._length != other._length:
            return False
        return self._steps is other._steps or all(a == b for a, b in zip(self, other, strict=True))

    __hash__: ClassVar[None] = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        words = (step.tool if step.outcome is Outcome.OK else f"{step.tool}!{step.outcome.value}" for step in self)
        return f"History({', '.join(words)})"

    def __reduce__(self) -> tuple[Any, ...]:
        return (History, (list(self),))

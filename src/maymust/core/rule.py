"""What one requirement says about one tool at this moment."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

from maymust.core.fragment import Fragment, check_fragments
from maymust.core.tool_spec import FINAL_ANSWER, target_text
from maymust.errors import PolicyError


@dataclass(frozen=True, slots=True)
class Rule:
    """Six switches and a reason. A rule with every switch at its default changes nothing.

    target        the tool: a name, or (until a policy has resolved it) a Tool class, a Tool object or the decorated function
    allowed       False: shown with the reason, and not callable
    reason        why, in words a model can act on
    prevent_stop  the run may not end this step
    forced        this tool must be called now
    hidden        not shown and not callable
    ask           True: callable after a person's yes; `{parameter: fragment}`: only calls whose arguments match are asked about
    arguments     `{parameter: fragment of JSON Schema}`: callable only within it

    Raises PolicyError for a rule that contradicts itself (forced, and denied or hidden) and for values of the wrong kind.
    """

    target: Any
    _: KW_ONLY
    allowed: bool = True
    reason: str | None = None
    prevent_stop: bool = False
    forced: bool = False
    hidden: bool = False
    ask: bool | Mapping[str, Fragment] = field(default=False, hash=False)
    arguments: Mapping[str, Fragment] | None = field(default=None, hash=False)

    def __post_init__(self) -> None:
        about = f"the rule on {target_text(self.target)}"
        if self.target is None or self.target == "":
            raise PolicyError(f"a rule needs a target, got {self.target!r}")
        for switch in ("allowed", "prevent_stop", "forced", "hidden"):
            if not isinstance(getattr(self, switch), bool):
                raise PolicyError(f"{about}: {switch} has to be True or False, got {getattr(self, switch)!r}")
        if self.reason is not None and not isinstance(self.reason, str):
            raise PolicyError(f"{about}: reason has to be a text, got {self.reason!r}")
        if self.forced and (self.hidden or not self.allowed):
            raise PolicyError(f"{about} is forced and {'hidden' if self.hidden else 'denied'} at once; drop one of the two")
        if not isinstance(self.ask, bool):
            # An empty condition holds for every call, so it asks about every call.
            object.__setattr__(self, "ask", check_fragments(self.ask, f"{about}: ask") or True)
        if self.ask and target_text(self.target) == FINAL_ANSWER:
            raise PolicyError(f"{about} asks a person, but {FINAL_ANSWER} is never asked for; leave ask out")
        if self.arguments is not None:
            object.__setattr__(self, "arguments", check_fragments(self.arguments, f"{about}: arguments"))

    def narrowed(self, arguments: Mapping[str, Fragment]) -> Rule:
        """The same rule with other fragments, unchecked: the caller vouches for them."""
        other, put = object.__new__(Rule), object.__setattr__
        put(other, "target", self.target)
        put(other, "allowed", self.allowed)
        put(other, "reason", self.reason)
        put(other, "prevent_stop", self.prevent_stop)
        put(other, "forced", self.forced)
        put(other, "hidden", self.hidden)
        put(other, "ask", self.ask)
        put(other, "arguments", arguments)
        return other

    def to_dict(self) -> dict[str, Any]:
        """JSON form of a resolved rule. Switches at their default are left out."""
        data: dict[str, Any] = {"target": target_text(self.target)}
        for switch, default in _DEFAULTS:
            value = getattr(self, switch)
            if value != default:
                data[switch] = {key: dict(part) for key, part in value.items()} if isinstance(value, Mapping) else value
        return data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Rule:
        """Read the JSON form."""
        return cls(data["target"], **{key: value for key, value in data.items() if key != "target"})


_DEFAULTS: tuple[tuple[str, Any], ...] = (
    ("allowed", True),
    ("reason", None),
    ("prevent_stop", False),
    ("forced", False),
    ("hidden", False),
    ("ask", False),
    ("arguments", None),
)

"""What verification has to say about a policy: one finding, and the closed set of their kinds."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Severity: TypeAlias = Literal["error", "warning", "note"]
"""`error`: some run goes wrong. `warning`: probably not what was meant. `note`: worth knowing."""


class Kind:
    """A kind of finding: its code, its name and how grave it is."""

    __slots__ = ("code", "name", "severity")

    def __init__(self, code: str, name: str, severity: Severity) -> None:
        self.code: str = code
        self.name: str = name
        self.severity: Severity = severity


FORCE_CLOSED = Kind("MM001", "force_closed", "error")
FORCE_UNMET = Kind("MM002", "force_unmet", "error")
EQUAL_FORCES = Kind("MM003", "equal_forces", "error")
OVERRIDDEN = Kind("MM004", "obligation_overridden", "error")
UNREACHABLE = Kind("MM005", "unreachable", "error")
OVER_BUDGET = Kind("MM006", "over_budget", "error")
DEAD_END = Kind("MM007", "dead_end", "error")
LIVELOCK = Kind("MM008", "livelock", "error")
FOREIGN_PRIORITY = Kind("MM009", "foreign_priority", "warning")
FORCE_LAPSES = Kind("MM010", "force_lapses", "warning")
DEAD_TOOL = Kind("MM011", "dead_tool", "warning")
SILENT_RULE = Kind("MM012", "silent_rule", "warning")
RESTS_ON_PERSON = Kind("MM013", "rests_on_a_person", "warning")
ABSENT_TOOL = Kind("MM014", "absent_tool", "warning")
CHECK_DEAD_END = Kind("MM015", "check_dead_end", "warning")
CHECK_CONFLICT = Kind("MM016", "check_conflict", "warning")
CHECK_STUCK = Kind("MM017", "check_stuck", "warning")
UNDECIDED = Kind("MM018", "undecided", "warning")

KINDS: tuple[Kind, ...] = (
    FORCE_CLOSED,
    FORCE_UNMET,
    EQUAL_FORCES,
    OVERRIDDEN,
    UNREACHABLE,
    OVER_BUDGET,
    DEAD_END,
    LIVELOCK,
    FOREIGN_PRIORITY,
    FORCE_LAPSES,
    DEAD_TOOL,
    SILENT_RULE,
    RESTS_ON_PERSON,
    ABSENT_TOOL,
    CHECK_DEAD_END,
    CHECK_CONFLICT,
    CHECK_STUCK,
    UNDECIDED,
)
"""Every kind, in the order of their codes."""

_NAMES = {kind.code: kind.name for kind in KINDS}


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing verification found.

    code      `MM001` and on; see the reference page of findings
    severity  `error`, `warning` or `note`
    rules     names of the requirements involved
    witness   a shortest sequence of steps after which it shows: "tool", "tool!failed" or "tool!denied"
    message   what is the matter, in a sentence
    help      what to change
    """

    code: str
    severity: Severity
    rules: tuple[str, ...]
    witness: tuple[str, ...]
    message: str
    help: str

    @property
    def name(self) -> str:
        """The code in words, e.g. `dead_end`."""
        return _NAMES[self.code]

    def to_dict(self) -> dict[str, object]:
        """JSON form."""
        return {
            "code": self.code,
            "name": self.name,
            "severity": self.severity,
            "rules": list(self.rules),
            "witness": list(self.witness),
            "message": self.message,
            "help": self.help,
        }

    def __str__(self) -> str:
        return f"{self.code} {self.severity}: {self.message}. {self.help}"


def found(kind: Kind, message: str, help: str, *, rules: tuple[str, ...] = (), witness: tuple[str, ...] = ()) -> Finding:
    """Return a finding of a kind."""
    return Finding(kind.code, kind.severity, rules, witness, message, help)

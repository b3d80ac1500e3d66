"""The policy that a recording describes, as far as it is no Python code."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from maymust.core.policy import Policy
from maymust.policyfile.write import policy_of
from maymust.trace.recording import Recording

_CODE = ("handler", "remember_in")
"""Parts of a question that are Python code: who is asked. That somebody is asked is known without them."""


@dataclass(frozen=True, slots=True)
class Known:
    """What is known of the policy of a run.

    policy    the policy, without the requirements in `left_out`; None when nothing is known of it
    left_out  names of the requirements that are Python code
    """

    policy: Policy | None = None
    left_out: tuple[str, ...] = ()


def known_policy(recording: Recording) -> Known:
    """The policy of a recording."""
    described = recording.policy
    if described is None:
        return Known()
    kept: list[Mapping[str, Any]] = []
    left_out: list[str] = []
    for one in described.get("requirements", ()):
        plain = {key: value for key, value in one.items() if key not in _CODE}
        if policy_of({**described, "requirements": [plain]}) is not None:
            kept.append(plain)
        elif one.get("enabled", True):
            left_out.append(str(one.get("name")))
    return Known(policy_of({**described, "requirements": kept}), tuple(left_out))

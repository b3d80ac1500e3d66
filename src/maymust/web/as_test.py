"""A situation of the playground as a policy test."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from maymust.core.permit import Permit
from maymust.errors import PermitError
from maymust.policyfile.judge import fault_name
from maymust.policyfile.write import flow


def case_text(policy: str, after: Sequence[str], permit: Permit | PermitError) -> str:
    """The text of a policy test with one case: after these calls, this is the permit. `policy` is the path of the policy file."""
    name = f"after {', '.join(after)}" if after else "at the start"
    case: dict[str, Any] = {"after": list(after)} if after else {}
    case |= {"raises": fault_name(permit)} if isinstance(permit, PermitError) else _said(permit)
    lines = ["version: 1", f"policy: {flow(policy)}", "cases:", f"  {flow(name)}:"]
    lines += [f"    {key}: {flow(value)}" for key, value in case.items()]
    return "\n".join(lines) + "\n"


def _said(permit: Permit) -> dict[str, Any]:
    said: dict[str, Any] = {"allows_only": list(permit.allowed)}
    if permit.asks:
        said["asks"] = list(permit.asks)
    if permit.denied:
        said["denies"] = {tool: list(permit.reasons.get(tool, ()))[:1] for tool in permit.denied}
    if permit.hidden:
        said["hides"] = list(permit.hidden)
    if permit.withheld:
        said["withholds"] = list(permit.withheld)
    return said | {"forces": permit.forced, "may_stop": permit.may_stop}

"""The parameters of tools that rules speak of."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from maymust.core.tool_spec import ToolLike, did_you_mean, tool_name
from maymust.errors import PolicyError


def parameter_schema(tool: str, parameter: str, tools: Sequence[ToolLike], label: str) -> Mapping[str, Any]:
    """The tool's own schema of a parameter; empty when it is not known.

    Raises PolicyError for a parameter that the tool does not take, and for one that takes a secret.
    """
    spec = next(one for one in tools if tool_name(one) == tool)
    schema = getattr(spec, "parameters", None)
    if not isinstance(schema, Mapping):
        return {}
    if parameter in getattr(spec, "secrets", ()):
        raise PolicyError(f"{label}: {parameter} of {tool} takes a secret, which no rule gets to see: to a rule all secrets are alike")
    properties = schema.get("properties", {})
    if parameter in properties:
        own = properties[parameter]
        target = str(own.get("$ref", "")).rpartition("/")[2] if isinstance(own, Mapping) else ""
        found = schema.get("$defs", {}).get(target, own)
        return found if isinstance(found, Mapping) else {}
    if schema.get("additionalProperties", True) is False:
        near = did_you_mean(parameter, properties) or f"; its parameters are {', '.join(properties) or 'none'}"
        raise PolicyError(f"{label}: {tool} has no parameter called {parameter}{near}")
    return {}

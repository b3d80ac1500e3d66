"""What a proxy cannot hold, told before anything runs."""

from __future__ import annotations

import logging

from maymust.adapters.limits import FEATURES, features_of
from maymust.core.policy import Policy
from maymust.errors import UnsupportedRuleError

log: logging.Logger = logging.getLogger(__name__)

PROXY = "an MCP proxy"
_MISSING = {
    "async": "the gate is asked at once, so make the requirement a plain function",
    "stop": "the answer of the client's model does not pass through it",
}
_PARTLY = {"force": "while the tool is due all others are closed, but nothing makes the client call it"}


def check_policy(policy: Policy, *, lenient: bool = False) -> None:
    """Raise UnsupportedRuleError for rules that a proxy of tools cannot hold, or warn of them; warn of those that hold in part."""
    found = [(one.name, feature) for one in policy.requirements if one.enabled for feature in sorted(features_of(one))]
    for name, feature in found:
        if feature in _PARTLY:
            log.warning("%s: %s holds in part: %s", name, FEATURES[feature], _PARTLY[feature])
    lines = [f"{name}: {FEATURES[feature]} ({_MISSING[feature]})" for name, feature in found if feature in _MISSING]
    if not lines:
        return
    text = f"{PROXY} cannot enforce this policy: {'; '.join(lines)}. Change the rules, or pass --lenient to go without them"
    if not lenient:
        raise UnsupportedRuleError(text, framework=PROXY, features=tuple(dict.fromkeys(one for _, one in found if one in _MISSING)))
    log.warning("%s", text)

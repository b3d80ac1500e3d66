"""The words of a policy file: every key, what its value has to be, and what it says.

The parser, the JSON Schema and the reference page are made from these tables. Parameters have the names they have in Python.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

Shape = Literal[
    "tool", "tools", "tools_or_all", "flag", "count", "positive", "number", "text", "fragments", "values", "places", "named", "parameter"
]
"""What a value has to be.

    tool          the name of one tool
    tools         the name of a tool, or a list of them
    tools_or_all  the same, or `true` for every tool
    flag          true or false
    count         a whole number of at least 0
    positive      a whole number of at least 1
    number        a number
    text          a text
    fragments     a mapping of parameters to fragments of JSON Schema
    values        a list of values
    named         a mapping of tools to parameters, or to `{parameter: part}`, see `AfterUntrustedRequirement`
    parameter     the name of a parameter, or `{parameter of the target: parameter of the other tools}`
    places        a pair of a tool and a place in what it took or returned, or a list of such pairs
"""


@dataclass(frozen=True, slots=True)
class Word:
    """One key: the shape of its value, and what it says in a sentence."""

    shape: Shape
    about: str


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of rule: `key` names it and holds its target, `words` are its further parameters."""

    key: str
    target: Word
    words: Mapping[str, Word]
    about: str
    needed: tuple[str, ...] = ()

    @property
    def keys(self) -> tuple[str, ...]:
        """Every key such a rule may have."""
        return (self.key, *self.words)


_SHARED = {
    "priority": Word("positive", "Decides between forced tools, the highest wins. Default 10."),
    "enabled": Word("flag", "false: checked, but without effect."),
}

CONDITIONAL = Kind(
    "conditional",
    Word("tool", "The tool this rule is about: one of tools, or final_answer."),
    {
        "force_at_step": Word("positive", "The tool must be called at this step, counted from 1."),
        "force_after": Word("tools", "The tool must be called right after any of these."),
        "force_prevent_stop": Word("flag", "While the tool is forced, the run may not end. Default true."),
        "only_after": Word("tools", "Closed until all of these have been called."),
        "only_after_any": Word("tools", "Closed until any of these has been called."),
        "only_before": Word("tools", "Closed as soon as any of these has been called."),
        "min_invocations": Word("count", "The run may not end before so many calls."),
        "max_invocations": Word("count", "Closed after so many calls."),
        "max_attempts": Word("count", "Closed after so many calls, failed ones included."),
        "cooldown": Word("positive", "Closed after a call of itself until so many other steps have come."),
        "followed_by": Word("tools", "After a call each of these is owed: the run may not end before it was called."),
        "consecutive_allowed": Word("flag", "false: closed right after a call of itself. Default true."),
        "only_success_invocations": Word("flag", "Only successful calls count; false: failed ones count as well. Default true."),
        "same": Word("parameter", "Each condition holds for each value of this parameter by itself: only a path that was read."),
        "reason": Word("text", "Shown instead of the rule's own words."),
        **_SHARED,
    },
    "Conditions on one tool over what has been called.",
)

ASK = Kind(
    "ask",
    Word("tools_or_all", "The tools a person has to agree to; true: every tool."),
    {
        "exclude": Word("tools", "Tools not to ask about."),
        "when": Word("fragments", "Ask only about calls whose arguments match: parameter to a fragment of JSON Schema."),
        "remember_choices": Word("flag", "One question per tool and run: a yes holds for later calls, a no closes the tool."),
        "hide_disallowed": Word("flag", "A tool that was said no to is hidden instead of denied."),
        "always_allow": Word("flag", "Nobody is asked."),
        **_SHARED,
    },
    "A person has to agree before these tools run.",
)

ARGUMENTS = Kind(
    "arguments",
    Word("tool", "The tool whose calls this rule is about."),
    {
        "param": Word("text", "The parameter of the tool. Always needed."),
        "one_of": Word("values", "The values it may have."),
        "minimum": Word("number", "The least value, for a number."),
        "maximum": Word("number", "The greatest value, for a number."),
        "pattern": Word("text", "A regular expression that the whole of a text has to match."),
        "from_output": Word("places", "Only values that calls of a tool returned: `[tool, JSONPath]`, or a list of such pairs."),
        "from_argument": Word("places", "Only values that calls of a tool took: `[tool, parameter]`, or a list of such pairs."),
        "last_only": Word("flag", "Only values of the last such call count."),
        "each": Word("flag", "The parameter is a list, and all of this is about each of its items."),
        "optional": Word("flag", "The parameter may be left out."),
        "reason": Word("text", "Shown instead of the rule's own words."),
        **_SHARED,
    },
    "Which values one parameter of a tool may have.",
    needed=("param",),
)

AFTER_UNTRUSTED = Kind(
    "after_untrusted",
    Word("tools", "The tools with side effects: a person is asked about them once output from outside is in the run."),
    {
        "untrusted": Word("tools", "Tools whose output counts as from outside, beside those that say so themselves."),
        "unless_named": Word(
            "named", "Per tool the parameters that decide where a call goes; nobody is asked when the user named them all."
        ),
        "reason": Word("text", "Shown to the person before the step with the output."),
        **_SHARED,
    },
    "Once output from outside is in the run, a person has to agree before these tools run.",
)

KINDS: Mapping[str, Kind] = {kind.key: kind for kind in (CONDITIONAL, ASK, ARGUMENTS, AFTER_UNTRUSTED)}
"""Every kind of rule by its key."""

ONLY_IN_PYTHON = {
    "custom_checks": "a check is Python code; write this rule in Python with ConditionalRequirement(custom_checks=...)",
    "handler": "a handler is Python code; leave it out, and the run pauses for a person",
    "remember_in": "an ApprovalMemory is a Python object; write remember_choices: true, or write this rule in Python",
    "name": "the key of a rule is its name",
    "target": "write the tool behind the kind of the rule: `conditional: tool`",
    "side_effects": "write the tools behind the kind of the rule: `after_untrusted: [tool]`",
    "include": "write the tools behind the kind of the rule: `ask: [tool]`",
}
"""Parameters of Python that a file does not have, and what to do instead."""

TOP = {
    "version": "The version of this format: 1.",
    "description": "What the policy is for, in words.",
    "tools": "The names of the agent's tools, in order; final_answer is implied.",
    "final_answer_as_tool": "false: the answer is given as text, not by the tool final_answer. Default true.",
    "rules": "The rules. Each key is the name of a rule.",
    "may_fail": "For verify: tools whose calls may fail. Default: none.",
    "may_be_denied": "For verify: tools a person may say no to. Default: none.",
    "max_turns": "For verify: the run has at most so many turns.",
    "gateway": "For `maymust gateway`: how it reads a run out of a client's requests.",
}
"""The keys of a policy file."""

NEEDED = ("version", "tools", "rules")
"""Keys that every policy file has."""

_OF_ANY = ("type", "enum", "const", "title", "description", "default", "examples")
_OF_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf")
_OF_TEXTS = ("minLength", "maxLength", "pattern", "format")
_OF_LISTS = ("items", "additionalItems", "minItems", "maxItems", "uniqueItems", "contains")
_OF_OBJECTS = ("properties", "required", "additionalProperties", "patternProperties", "minProperties", "maxProperties", "propertyNames")
_OF_SCHEMAS = ("dependencies", "allOf", "anyOf", "oneOf", "not", "if", "then", "else")

FRAGMENT_WORDS = frozenset({*_OF_ANY, *_OF_NUMBERS, *_OF_TEXTS, *_OF_LISTS, *_OF_OBJECTS, *_OF_SCHEMAS})
"""The words of JSON Schema draft-07 that a fragment may use. Without a check, a misspelt one would forbid nothing."""

"""The table of what models can be told about tools, with the source of each entry.

The first entry whose pattern fits the model's name counts. A name that fits none gets the safe guess of its API: what nearly every
server takes; what one refuses all the same is given up for the rest of the run, and the run says so.

Override it per model object: `OpenAIChatModel("my-model", capabilities=Capabilities(...))`.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from typing import Literal

from maymust.models.capabilities import Capabilities

Api = Literal["chat", "responses", "messages"]


@dataclass(frozen=True, slots=True)
class Entry:
    """What models of these names can do. `source` says where it is written; `note` what is not in the fields."""

    apis: tuple[Api, ...]
    patterns: tuple[str, ...]
    capabilities: Capabilities
    source: str
    note: str = ""


_OPENAI_TYPES = "openai SDK 3.57, types/chat/chat_completion_allowed_tools_param.py, types/responses/tool_choice_allowed_param.py"
_INLINE_TYPES = "openai SDK 3.57, types/responses/response_input_item_param.py (AdditionalTools)"
_SYSTEM_MESSAGES = "https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages"
_PRESERVED = "https://platform.claude.com/docs/en/build-with-claude/preserved-thinking/fix-bound-to-a-different-conversation"
_NEW_OPUS = "https://platform.claude.com/docs/en/models/opus-5-5/whats-new-opus-5-5"
_NEW_SONNET = "https://platform.claude.com/docs/en/models/sonnet-5-5/whats-new-sonnet-5-5"
_NEW_FABLE = "https://platform.claude.com/docs/en/models/fable-5-1/migration-guide"
_TOOL_USE = "https://platform.claude.com/docs/en/agents-and-tools/tool-use/define-tools"
_DEEPSEEK = "https://github.com/deepseek-ai/DeepSeek-V3/issues/1376"
_GPT_OSS = "https://github.com/vllm-project/vllm/issues/44216"
_OLLAMA = "https://github.com/ollama/ollama/issues/17921"

_GPT = Capabilities(
    subset="allowed_tools",
    parallel_switch=True,
    strict_schemas=True,
    json_schema=True,
    late_system=True,
    images=True,
    files=True,
)
_OLDER_GPT = replace(_GPT, subset="filter")
_REASONING = replace(_GPT, subset="filter", parallel_switch=False, thinks=True)
_CLAUDE = Capabilities(
    forced_choice="not_with_thinking",
    subset="choice",
    parallel_switch=True,
    images=True,
    files=True,
)
_CLAUDE_STRICT = replace(_CLAUDE, strict_schemas=True, json_schema=True)
_CLAUDE_CHANGES = replace(_CLAUDE_STRICT, subset="tool_changes", late_system=True, inline_tools=True, thinks=True)
_CLAUDE_BOUND = replace(_CLAUDE_CHANGES, forced_choice="no", prefix_bound=True)

GUESS: dict[Api, Capabilities] = {
    "chat": Capabilities(),
    "responses": Capabilities(late_system=True),
    "messages": Capabilities(forced_choice="no", subset="choice", prefix_bound=True),
}
"""What a model of an unknown name is taken to be able to do, by the API it is asked through."""

TABLE: tuple[Entry, ...] = (
    # --- Claude, newest first ---
    Entry(
        ("messages",),
        ("*claude-opus-5-5*", "*claude-sonnet-5-5*", "*claude-fable-5-[12]*", "*claude-mythos-5-[12]*"),
        _CLAUDE_BOUND,
        f"{_NEW_OPUS}, {_NEW_SONNET}, {_NEW_FABLE} (forced tool use is a 400); {_PRESERVED} (thinking is bound to the prefix); "
        f"{_SYSTEM_MESSAGES} (system messages and tool changes)",
    ),
    Entry(
        ("messages",),
        ("*claude-haiku-5-5*",),
        _CLAUDE_BOUND,
        f"{_PRESERVED}; {_SYSTEM_MESSAGES}",
        "forced choice: a guess after its siblings",
    ),
    Entry(
        ("messages",),
        ("*claude-opus-5*", "*claude-opus-4-8*", "*claude-fable-5*", "*claude-mythos-5*"),
        _CLAUDE_CHANGES,
        f"{_SYSTEM_MESSAGES}; {_TOOL_USE} (no forced tool use while thinking); {_NEW_OPUS} (thinking is on by default)",
    ),
    Entry(
        ("messages",),
        ("*claude-sonnet-5*",),
        replace(_CLAUDE_STRICT, thinks=True),
        f"{_SYSTEM_MESSAGES} (not available on this model); {_TOOL_USE}",
        "thinking by default: a guess",
    ),
    Entry(
        ("messages",),
        ("*claude-*-4-[5-9]*", "*claude-mythos-preview*"),
        _CLAUDE_STRICT,
        f"{_TOOL_USE} (no forced tool use while thinking); anthropic SDK 2.14, types/json_output_format_param.py",
    ),
    Entry(
        ("messages",),
        ("*claude-*-4*", "*claude-3*"),
        _CLAUDE,
        f"{_TOOL_USE} (no forced tool use while thinking)",
    ),
    Entry(
        ("messages",),
        ("*deepseek*",),
        Capabilities(forced_choice="not_with_thinking", subset="filter", thinks=True),
        f"{_DEEPSEEK} (the Anthropic-compatible endpoint)",
    ),
    # --- OpenAI and what speaks its protocols ---
    Entry(
        ("chat", "responses"),
        ("*gpt-oss*",),
        Capabilities(forced_choice="no", thinks=True),
        f"{_GPT_OSS} (`required` is ignored or refused, depending on the server)",
    ),
    Entry(
        ("chat", "responses"),
        ("*deepseek-reasoner*", "*deepseek-v4*", "*deepseek-r1*"),
        Capabilities(forced_choice="not_with_thinking", thinks=True),
        f"{_DEEPSEEK} (thinking mode does not support this tool_choice)",
    ),
    Entry(
        ("responses",),
        ("*gpt-5.[4-9]*", "*gpt-6*"),
        replace(_GPT, inline_tools=True, thinks=True),
        f"{_OPENAI_TYPES}; {_INLINE_TYPES}",
        "which models take inline tools: a guess after the models with tool search",
    ),
    Entry(
        ("chat", "responses"),
        ("*gpt-5-chat*", "*gpt-5.?-chat*"),
        _OLDER_GPT,
        _OPENAI_TYPES,
        "chat variants: a subset by the list, a safe guess",
    ),
    Entry(
        ("chat", "responses"),
        ("*gpt-5*", "*gpt-6*"),
        replace(_GPT, thinks=True),
        _OPENAI_TYPES,
    ),
    Entry(
        ("chat", "responses"),
        ("*o1-mini*", "*o1-preview*"),
        Capabilities(tools=False, thinks=True),
        "https://platform.openai.com/docs/guides/reasoning (no tools); not looked up again, the models are retired",
    ),
    Entry(
        ("chat", "responses"),
        ("o1*", "o3*", "o4-mini*", "*/o1*", "*/o3*", "*/o4-mini*"),
        _REASONING,
        "https://github.com/langchain-ai/langchain/issues/29704, https://github.com/tensorzero/tensorzero/issues/2805 "
        "(parallel_tool_calls is refused)",
    ),
    Entry(
        ("chat", "responses"),
        ("*gpt-4o*", "*gpt-4.1*", "*chatgpt-4o*"),
        _OLDER_GPT,
        "https://platform.openai.com/docs/guides/function-calling",
        "a subset by the list, a safe guess",
    ),
    Entry(
        ("chat",),
        ("*gpt-4*", "*gpt-3.5-turbo*"),
        replace(_OLDER_GPT, strict_schemas=False, json_schema=False, images=False, files=False),
        "https://platform.openai.com/docs/guides/structured-outputs (not on these models)",
    ),
    Entry(
        ("chat", "responses"),
        ("*qwen*", "*llama*", "*mistral*", "*gemma*", "*phi-*", "*smollm*"),
        Capabilities(json_schema=True),
        f"{_OLLAMA}, https://docs.vllm.ai/en/latest/features/structured_outputs.html",
        "open models: the server decides what holds; some ignore tool_choice",
    ),
)


def entry_for(name: str, api: Api) -> Entry | None:
    """The entry that counts for a model of this name asked through `api`; None when the table has none."""
    wanted = name.lower()
    for entry in TABLE:
        if api in entry.apis and any(fnmatchcase(wanted, pattern) for pattern in entry.patterns):
            return entry
    return None


def capabilities_of(name: str, api: Api) -> Capabilities:
    """What the table says of a model, or the safe guess for an unknown name."""
    entry = entry_for(name, api)
    return entry.capabilities if entry is not None else GUESS[api]

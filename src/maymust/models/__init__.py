"""Models: the seam (`ChatModel`), and a scripted one for tests. The others live in modules of their own, each with its extra."""

from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import (
    CallDelta,
    ChatModel,
    ModelDelta,
    ModelReply,
    ModelRequest,
    TextDelta,
    ToolDefinition,
    Usage,
)
from maymust.models.message import Message, Part, ToolCall
from maymust.models.scripted import ScriptedModel, call, reply

__all__ = [
    "CallDelta",
    "Capabilities",
    "ChatModel",
    "Message",
    "ModelDelta",
    "ModelReply",
    "ModelRequest",
    "Part",
    "ScriptedModel",
    "TextDelta",
    "ToolCall",
    "ToolDefinition",
    "Usage",
    "call",
    "reply",
]

"""Models: the seam (`ChatModel`), and a scripted one for tests. The others live in modules of their own, each with its extra."""

from maymust.models.capabilities import Capabilities
from maymust.models.chat_model import (
    CallDelta,
    ChatModel,
    Lost,
    ModelDelta,
    ModelReply,
    ModelRequest,
    Offer,
    Price,
    TextDelta,
    ToolDefinition,
    Usage,
)
from maymust.models.failures import ModelFailure, OutputError
from maymust.models.message import Message, Part, ToolCall
from maymust.models.scripted import ScriptedModel, call, reply

__all__ = [
    "CallDelta",
    "Capabilities",
    "ChatModel",
    "Lost",
    "Message",
    "ModelDelta",
    "ModelFailure",
    "ModelReply",
    "ModelRequest",
    "Offer",
    "OutputError",
    "Part",
    "Price",
    "ScriptedModel",
    "TextDelta",
    "ToolCall",
    "ToolDefinition",
    "Usage",
    "call",
    "reply",
]

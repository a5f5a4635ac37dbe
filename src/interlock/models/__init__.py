"""Models return proposals and texts. They never see the registry or the engine."""

from interlock.models.cassette import RecordingModel, ReplayModel
from interlock.models.factory import open_model
from interlock.models.guarded import guarded_reply
from interlock.models.messages import (
    Message,
    Model,
    ModelFailed,
    Proposal,
    Reply,
    Request,
    Task,
    ToolCard,
    Usage,
    WorkTask,
)
from interlock.models.tool_call_parser import MAX_PROPOSALS, parse_native, parse_text

__all__ = [
    "MAX_PROPOSALS",
    "Message",
    "Model",
    "ModelFailed",
    "Proposal",
    "RecordingModel",
    "ReplayModel",
    "Reply",
    "Request",
    "Task",
    "ToolCard",
    "Usage",
    "WorkTask",
    "guarded_reply",
    "open_model",
    "parse_native",
    "parse_text",
]

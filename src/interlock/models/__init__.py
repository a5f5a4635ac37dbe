"""Models return proposals and texts. They never see the registry or the engine."""

from interlock.models.choose import open_model
from interlock.models.formats import MOST, native, written
from interlock.models.recorded import Recording, Replayed
from interlock.models.values import Message, Model, ModelFailed, Proposal, Reply, Request, ToolCard, Usage

__all__ = [
    "MOST",
    "Message",
    "Model",
    "ModelFailed",
    "Proposal",
    "Recording",
    "Replayed",
    "Reply",
    "Request",
    "ToolCard",
    "Usage",
    "native",
    "open_model",
    "written",
]

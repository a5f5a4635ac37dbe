"""Intents: which tools the answer to a text needs."""

from interlock.answers.intents.classify import CHAT, Classified, Classifier, Intent

# The name that the weights had here, before others than intents stood on them.
from interlock.embedding import MiniLm as Embedder

__all__ = ["CHAT", "Classified", "Classifier", "Embedder", "Intent"]

"""Intents: which tools the answer to a text needs."""

from interlock.intents.classify import CHAT, Classified, Classifier, Intent
from interlock.intents.embedding import Embedder

__all__ = ["CHAT", "Classified", "Classifier", "Embedder", "Intent"]

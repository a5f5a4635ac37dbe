"""Intents: which tools the answer to a text needs."""

from interlock.answers.intents.classify import CHAT, Classified, Classifier, Intent
from interlock.answers.intents.embedding import Embedder

__all__ = ["CHAT", "Classified", "Classifier", "Embedder", "Intent"]

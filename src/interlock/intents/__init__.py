"""Intents: which tools the answer to a text needs."""

from interlock.intents.classify import CHAT, Classified, Classifier, Intent

__all__ = ["CHAT", "Classified", "Classifier", "Intent"]

"""Grounding: every figure, date, identifier and citation of an answer is traced to a result, or found to have none."""

from interlock.answers.grounding.evidence import Source
from interlock.answers.grounding.match import ground, ground_safely
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.answers.grounding.support import Grounded, Support
from interlock.answers.grounding.vocabulary import Vocabulary, default_vocabulary

__all__ = [
    "Grounded",
    "Source",
    "Support",
    "ToolMeaning",
    "Vocabulary",
    "default_vocabulary",
    "ground",
    "ground_safely",
]

"""Grounding: every figure, date, identifier and citation of an answer is traced to a result, or found to have none."""

from interlock.grounding.evidence import Source
from interlock.grounding.match import Grounded, Support, ground, traced

__all__ = ["Grounded", "Source", "Support", "ground", "traced"]

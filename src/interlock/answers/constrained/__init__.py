"""Models that cannot be told what to do, only be given a choice: `constrain(model)` makes one fit for a turn."""

from interlock.answers.constrained.model import ConstrainedModel, constrain

__all__ = ["ConstrainedModel", "constrain"]

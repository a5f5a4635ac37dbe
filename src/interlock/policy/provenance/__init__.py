"""Where the value of an argument came from: the user's words, a result, a text that somebody else wrote, nowhere."""

from interlock.policy.provenance.argument_origins import BY_APPLICATION, TAKEN_BACK, GivenValues, origin_of_edit
from interlock.policy.provenance.index import OriginIndex
from interlock.policy.provenance.origin import Occurrence, Origin
from interlock.policy.provenance.suspects import Suspect
from interlock.policy.provenance.trace import Trace
from interlock.policy.provenance.turn_history import TurnHistory

__all__ = [
    "BY_APPLICATION",
    "TAKEN_BACK",
    "GivenValues",
    "Occurrence",
    "Origin",
    "OriginIndex",
    "Suspect",
    "Trace",
    "TurnHistory",
    "origin_of_edit",
]

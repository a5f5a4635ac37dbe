"""Where the value of an argument came from: the user's words, a result, a text that somebody else wrote, nowhere."""

from interlock.policy.provenance.index import OriginIndex
from interlock.policy.provenance.origin import Occurrence, Origin
from interlock.policy.provenance.seen import Seen
from interlock.policy.provenance.trace import Suspect, Trace

__all__ = ["Occurrence", "Origin", "OriginIndex", "Seen", "Suspect", "Trace"]

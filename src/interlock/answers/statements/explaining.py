"""What the records say of calls, in a sentence."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.statements.effect_calls import EffectCall
from interlock.answers.statements.effects import EffectState

NEVER = "no call of this turn did this"


def explain(calls: Sequence[EffectCall], fitting: Sequence[EffectCall]) -> str:
    """What the records say, in a sentence."""
    if not calls:
        return ""
    said = [f"{call.effect.tool} {_SAID[call.effect.state]} (record {call.effect.record})" for call in calls[:4]]
    tail = "" if fitting or not any(call.is_done for call in calls) else ", for something else"
    return " and ".join(said) + tail


_SAID = {
    EffectState.DONE: "was done",
    EffectState.WAITING: "waits for a person's approval",
    EffectState.REFUSED: "was refused",
    EffectState.FAILED: "failed",
    EffectState.UNKNOWN: "may or may not have happened",
    EffectState.PLANNED: "was only previewed",
    EffectState.UNDONE: "was done and taken back since",
}

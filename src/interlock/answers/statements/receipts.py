"""What has come to somebody: "Ana has received the reminder" is true of what a tool of the turn sent."""

from __future__ import annotations

from collections.abc import Sequence

from interlock.answers.statements.deeds import Deed
from interlock.answers.statements.effect_calls import EffectCall, ToolWords
from interlock.answers.statements.explaining import NEVER, explain
from interlock.answers.statements.lexicon import Lexicon
from interlock.answers.statements.matching import Matcher
from interlock.answers.statements.reports import Reported


class Receipts:
    """Holds what is said to have come to somebody against what was sent."""

    def __init__(
        self,
        tools: Sequence[ToolWords],
        calls: Sequence[EffectCall],
        reported: Reported,
        matcher: Matcher,
        words: Lexicon,
    ) -> None:
        self._senders = {tool.tool for tool in tools if (tool.verbs | tool.nouns) & words.sending}
        self._sent = [call for call in calls if call.effect.tool in self._senders]
        self._reported, self._matcher = reported, matcher

    def judge(self, deed: Deed) -> str | None:
        """What the records say against it; None where they agree, or nothing of the turn could have sent it."""
        match = self._matcher.find(deed, by_noun=True)
        told = match.fitting or self._matcher.naming(deed)
        # "She has the confirmation" names neither what sends nor what was sent.
        mine = [call for call in self._sent if call in told] or (self._sent if deed.word in ("has", "got") else [])
        if any(call.is_done for call in mine) or (not {*match.tools} & self._senders and not mine):
            return None
        return None if self._reported.tells(deed.verb, strictly=False) else explain(mine, mine) or NEVER

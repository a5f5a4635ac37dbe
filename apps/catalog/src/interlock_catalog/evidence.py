"""Evidence: what a change rests on. The ledger and the calibration hold texts; only this file writes and reads them."""

from __future__ import annotations

from collections.abc import Iterable

import msgspec

LEFT = "left"
"""The source of what keeps a draft from being released: why something is not done is no rule that could be right."""


class Evidence(msgspec.Struct, frozen=True, order=True, omit_defaults=True):
    """One thing that a change rests on: whose word it is, what it says, and the model that had a hand in it."""

    source: str
    detail: str
    judge: str = ""
    """The name of the model; '' for what needed none."""

    @property
    def text(self) -> str:
        """As the ledger has it: `checks:missing`, or `content:missing@NAME`."""
        rule = f"{self.source}:{self.detail}" if self.source else self.detail
        return f"{rule}@{self.judge}" if self.judge else rule

    @classmethod
    def parse(cls, text: str) -> Evidence:
        """The evidence that a text stands for; whoever else writes into the ledger may leave out the source."""
        head, at, judge = text.rpartition("@")
        named, judge = (head, judge) if at and judge else (text, "")
        source, colon, detail = named.partition(":")
        return cls(source, detail, judge) if source and colon else cls("", named, judge)


def find_accountable(evidence: Iterable[Evidence]) -> list[Evidence]:
    """The rules that answer for a change: the model's alone, if it had a hand in it, for then it was its choice."""
    rules = [item for item in evidence if item.source != LEFT]
    return [item for item in rules if item.judge] or rules

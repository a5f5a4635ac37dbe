"""What a run works on, and the turn in which it does: elsewhere these are texts, which this file alone reads."""

from __future__ import annotations

from enum import StrEnum

import msgspec

_MARK = "~"
"""Sets what is no family apart from slugs, none of which begins with it."""


class WorkKind(StrEnum):
    """The kinds of work: a family, and what belongs to none."""

    FAMILY = "family"
    ORPHANS = "orphans"
    SEARCHES = "searches"
    REJECTED = "rejected"
    """What an earlier run rejected, and a person has corrected."""


class WorkItem(msgspec.Struct, frozen=True):
    """One piece of the work of a run."""

    kind: WorkKind
    family: str = ""

    @property
    def text(self) -> str:
        """The slug of a family, or `~KIND`."""
        return self.family if self.is_family else f"{_MARK}{self.kind.value}"

    @property
    def is_family(self) -> bool:
        return self.kind is WorkKind.FAMILY

    @classmethod
    def of_family(cls, slug: str) -> WorkItem:
        return cls(WorkKind.FAMILY, slug)

    @classmethod
    def parse(cls, text: str) -> WorkItem:
        """The work that a text stands for; what marks no other kind is a family."""
        other = {f"{_MARK}{kind.value}": kind for kind in WorkKind if kind is not WorkKind.FAMILY}
        return cls(other[text]) if text in other else cls.of_family(text)


ORPHANS = WorkItem(WorkKind.ORPHANS)
SEARCHES = WorkItem(WorkKind.SEARCHES)
REJECTED = WorkItem(WorkKind.REJECTED)


class RunTurn(msgspec.Struct, frozen=True):
    """The turn of the ledger in which a run does one piece of its work."""

    run: str
    work: WorkItem

    @property
    def text(self) -> str:
        return f"{self.run}/{self.work.text}"

    @classmethod
    def parse(cls, text: str) -> RunTurn | None:
        """The turn that a text stands for; None if it is not of a run."""
        # From the left: a run's id has no slash, while whoever asks for a family may write anything.
        run, slash, work = text.partition("/")
        return cls(run, WorkItem.parse(work)) if run and slash and work else None

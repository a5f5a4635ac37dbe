"""`Grounded`: the claims of an answer, each with what stands behind it."""

from __future__ import annotations

from interlock.values import Value


class Support(Value, frozen=True):
    """One claim, and what stands behind it."""

    text: str
    kind: str
    start: int
    end: int
    source: str = ""
    """`record 12`, `question`, or the id of a chunk; empty if nothing stands behind it."""
    path: str = ""
    how: str = "unsupported"
    """exact, rounded, echo, counted, derived, or unsupported."""
    why: str = ""
    """Why nothing stands behind it, where more can be said than that it was not found."""
    fact: str = ""
    """The number of the fact that it rests on, `f12`, where it is one value of a result."""
    sites: tuple[str, ...] = ()
    """Whose sources say it, where the turn's way of working counts those; two or more bear each other out."""
    confidence: float | None = None
    """Reckoned from those sources, never written by a model."""


class Grounded(Value, frozen=True):
    """An answer's claims, each with its support."""

    claims: tuple[Support, ...] = ()
    unchecked: str = ""
    """Why the answer, or what it rests on, was not read as a whole: a limit, in a sentence; empty if it was."""

    @property
    def unsupported(self) -> tuple[Support, ...]:
        """Those that nothing stands behind."""
        return tuple(claim for claim in self.claims if claim.how == "unsupported")

    @property
    def is_supported(self) -> bool:
        """Whether everything is supported."""
        return not self.unsupported and not self.unchecked

    @property
    def cites(self) -> bool:
        """Whether at least one claim rests on a result, not only on the question."""
        return any(claim.how not in ("unsupported", "echo") for claim in self.claims)

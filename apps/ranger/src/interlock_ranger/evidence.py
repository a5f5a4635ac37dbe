"""What a finding rests on: sources with date and digest, steps of reasoning with their rules, a computed confidence."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, date, datetime
from enum import StrEnum
from typing import TypeVar

from pydantic import BaseModel, ConfigDict

from interlock import Result

Today = Callable[[], date]
"""The clock: what day it is."""


def today_utc() -> date:
    return datetime.now(UTC).date()


FRESH_DAYS = 365
"""Data up to this old counts in full."""
STALE_DAYS = 5 * 365
"""Data this old or older counts the least."""
STALE_SHARE = 0.5


class Part(BaseModel):
    """A value of a result: nothing beside what is declared, nothing changes later."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class DatedBy(StrEnum):
    """Where the date of a source comes from: from what it holds, or only from the file system."""

    DATA = "data"
    FILE = "file"


class DataSource(Part):
    """A file that was read, with its own date, whatever day it is."""

    file: str
    dated: date
    dated_by: DatedBy = DatedBy.DATA
    sha256: str
    synthetic: bool

    def describe(self) -> str:
        """In one line, for people."""
        label = "SYNTHETIC " if self.synthetic else ""
        dated = self.dated.isoformat() + (" by the file system" if self.dated_by is DatedBy.FILE else "")
        return f"{label}{self.file} of {dated} (sha256 {self.sha256[:12]})"


class Step(Part):
    """One step of reasoning, and the rule that it applies."""

    rule: str
    text: str


class Recommendation(Part):
    """What to do, and the rule that says so."""

    rule: str
    text: str


class Confidence(Part):
    """How far a finding can be trusted, computed: completeness of its inputs, times freshness, times precision."""

    score: float
    completeness: float
    freshness: float
    precision: float = 1.0
    """What its sampling error leaves of it; 1 where nothing was sampled."""
    oldest_data_days: int
    rule: str = "evidence.confidence"


class Evidence(Part):
    """How a finding was come to: it is about the result, and no part of an answer by itself."""

    reasoning: tuple[Step, ...]
    recommendations: tuple[Recommendation, ...]
    confidence: Confidence
    data_sources: tuple[DataSource, ...]

    @property
    def is_synthetic(self) -> bool:
        # One is enough: a figure made of real and of invented data is invented.
        return any(source.synthetic for source in self.data_sources)


class Finding(Part):
    """What every result of RANGER has beside its own values."""

    synthetic: bool
    evidence: Evidence


F = TypeVar("F", bound=Finding)


def freshness(today: date, dated: date) -> float:
    """What data of a day still counts: all up to a year, half from five years on, a straight line between."""
    over = min(1.0, max(0.0, ((today - dated).days - FRESH_DAYS) / (STALE_DAYS - FRESH_DAYS)))
    return round(1 - (1 - STALE_SHARE) * over, 3)


def compute_confidence(
    today: date, sources: Sequence[DataSource], present: float, wanted: int, precision: float = 1.0
) -> Confidence:
    """Completeness is the share of wanted inputs that are present; freshness is that of the oldest source.

    `precision` is that of a figure extrapolated from a sample (`timber.sampling`).
    """
    # Without a source, as for plots that the caller brings, nothing is old.
    oldest = min((source.dated for source in sources), default=today)
    fresh = freshness(today, oldest)
    completeness = present / wanted if wanted else 0.0
    return Confidence(
        score=round(completeness * fresh * precision, 2),
        completeness=round(completeness, 3),
        freshness=fresh,
        precision=round(precision, 3),
        oldest_data_days=max(0, (today - oldest).days),
    )


def build_result(value: F, summary: str) -> Result[F]:
    """A finding as a tool returns it: labelled where it is synthetic, with its confidence and sources."""
    label = "SYNTHETIC DATA. " if value.synthetic else ""
    return Result(
        value=value,
        summary=f"{label}{summary}",
        confidence=value.evidence.confidence.score,
        sources=tuple(source.describe() for source in value.evidence.data_sources),
    )

"""Confidence is computed: from how much of the input is there, and how old it is."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.evidence import DataSource, DatedBy, compute_confidence
from interlock_ranger.nepa.citations import pack_source
from interlock_ranger.rules import load_rules
from interlock_ranger.timber.sampling import precision

TODAY = date(2026, 11, 15)


def source(days: int) -> DataSource:
    return DataSource(file="f", dated=TODAY - timedelta(days=days), sha256="0" * 64, synthetic=True)


@pytest.mark.parametrize(
    ("days", "present", "wanted", "score"),
    [
        (0, 4, 4, 1.0),
        (365, 4, 4, 1.0),  # up to a year old counts in full
        (1095, 4, 4, 0.75),  # half way between one and five years
        (1825, 4, 4, 0.5),
        (9999, 4, 4, 0.5),
        (0, 1, 4, 0.25),
        (1825, 2, 4, 0.25),
        (0, 0, 0, 0.0),  # nothing is wanted, so nothing is known
    ],
)
def test_confidence_by_hand(days: int, present: int, wanted: int, score: float) -> None:
    assert compute_confidence(TODAY, [source(days)], present, wanted).score == score


@given(st.integers(0, 4000), st.integers(0, 4000), st.integers(0, 9), st.integers(1, 9))
def test_older_or_less_is_never_surer(a: int, b: int, present: int, more: int) -> None:
    wanted = present + more
    younger, older = sorted((a, b))
    assert (
        compute_confidence(TODAY, [source(older)], present, wanted).score
        <= compute_confidence(TODAY, [source(younger)], present, wanted).score
    )
    assert (
        compute_confidence(TODAY, [source(a)], present, wanted).score
        <= compute_confidence(TODAY, [source(a)], wanted, wanted).score
    )


def test_the_oldest_source_decides() -> None:
    assert compute_confidence(TODAY, [source(10), source(900)], 1, 1).oldest_data_days == 900


def test_every_rule_says_where_it_comes_from_and_what_it_was_checked_against() -> None:
    from pathlib import Path

    root = Path(__file__).parents[3]
    for rule in load_rules().values():
        assert rule.citation, rule.id
        assert rule.source, rule.id
        if rule.is_verified:
            assert (root / rule.verified_against).is_file(), (rule.id, rule.verified_against)


def test_no_legal_rule_claims_to_be_verified() -> None:
    for rule in load_rules().values():
        if rule.id.startswith(("ce.", "land.", "esa.", "nhpa.", "cwa.")):
            assert rule.verified_against == "unverified"


@given(st.floats(0, 1000), st.floats(0, 1000))
def test_a_larger_sampling_error_is_never_surer(a: float, b: float) -> None:
    low, high = sorted((a, b))
    sure, unsure = (compute_confidence(TODAY, [source(0)], 1, 1, precision(error)) for error in (low, high))
    assert unsure.score <= sure.score <= 1
    assert sure.precision == pytest.approx(1 / (1 + low / 100), abs=0.001)


def test_a_source_keeps_its_own_date_even_after_today() -> None:
    """A rule pack that was reviewed after the day on which the clock stands, and a document without a date."""
    early = date(2025, 1, 1)
    pack = pack_source()
    assert pack.dated == date(2026, 11, 15)
    assert compute_confidence(early, [pack], 1, 1).score == 1.0
    undated = DataSource(file="f", dated=early, dated_by=DatedBy.FILE, sha256="0" * 64, synthetic=False)
    assert undated.describe().startswith("f of 2025-01-01 by the file system")

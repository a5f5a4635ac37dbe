"""Confidence is computed: from how much of the input is there, and how old it is."""

from __future__ import annotations

from datetime import date, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock_ranger.evidence import DataSource, compute_confidence
from interlock_ranger.rules import load_rules

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

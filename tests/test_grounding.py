"""Grounding: figures, dates, identifiers and citations, with units and rounding; 1,070 labelled answers."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.answers.grounding import Source, default_vocabulary, ground

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import grounding as measured

RESULT = {
    "trail_id": "waldo-lake-3536",
    "damage_class": 3,
    "downed_trees_per_mile": 41.5,
    "cost_usd": 298000,
    "miles": [4, 8],
    "severity": {"high": 0.42, "acres": 127831},
    "note": "assessed 2022-10-14 at 09:30 under 7 CFR 1b.4(d), see https://fs.example/a1",
}
SOURCES = [Source("record 1", RESULT), Source("question", "Is it safe for 12 scouts in 2026?", echo=True)]

SUPPORTED = [
    "waldo-lake-3536 is class 3 with 41.5 trees per mile.",
    "42% burned badly, 127,831 acres.",
    "about 128,000 acres",
    "$298,000, or $298 thousand, or about $0.3 million",
    "4 + 8 = 12 miles",
    "12 miles in all (4 + 8)",
    "you asked about 12 scouts in 2026",
    "on October 14, 2022 at 9:30 am",
    "under 7 CFR 1b.4(d)",
    "see https://fs.example/a1",
    "42 trees per mile",
    "12 miles in all",
    "as record 1 says",
]
UNSUPPORTED = [
    ("127,832 acres", "127,832 acres"),
    ("127,831 hectares", "127,831 hectares"),
    ("128,000 acres", "128,000 acres"),
    ("41.5 miles", "41.5 miles"),
    ("waldo-lake-3537", "waldo-lake-3537"),
    ("4 + 8 = 13 miles", "13 miles"),
    ("two stretches", "two"),
    ("on October 15, 2022", "October 15, 2022"),
    ("under 36 CFR 220.6", "36 CFR 220.6"),
    ("see https://fs.example/b2", "https://fs.example/b2"),
    ("three stretches of seven", "seven"),
    ("€298,000", "€298,000"),
    ("as record 7 says", "record 7"),
    ("write to a@b.example", "a@b.example"),
]


@pytest.mark.parametrize("answer", SUPPORTED)
def test_what_stands_in_the_results(answer: str) -> None:
    assert ground(answer, SOURCES).unsupported == ()


@pytest.mark.parametrize(("answer", "text"), UNSUPPORTED)
def test_what_does_not(answer: str, text: str) -> None:
    assert text in [claim.text for claim in ground(answer, SOURCES).unsupported]


def test_each_claim_says_where_it_comes_from() -> None:
    (one,) = ground("41.5 trees", SOURCES).claims
    assert (one.source, one.path, one.how) == ("record 1", "$.downed_trees_per_mile", "exact")
    echo = ground("You said 12 scouts.", SOURCES)
    assert echo.claims[0].how == "echo"
    assert not echo.cites
    assert ground("There are 12 scouts.", SOURCES).unsupported, "what the user said is no finding"


@pytest.mark.slow
def test_labelled_answers() -> None:
    """Precision and recall of holding an answer back, over every set."""
    total: Counter[str] = Counter()
    for counts in measured.measure().values():
        total += counts
    rates = measured.rates(total)
    assert total["answers"] >= 200
    assert rates["precision"] >= 0.92
    assert rates["recall"] >= 0.98


@given(st.text(max_size=200))
def test_any_text_is_read_without_a_fault(text: str) -> None:
    for claim in default_vocabulary().claims(text):
        assert 0 <= claim.start < claim.end <= len(text)
    assert ground(text, [Source("record 1", text)]) is not None


@given(st.integers(-(10**12), 10**12), st.sampled_from(["acres", "miles", "%", "kg", ""]))
def test_a_number_in_a_result_is_found_and_its_neighbour_is_not(number: int, unit: str) -> None:
    field = {"acres": "acres", "miles": "miles", "%": "share_pct", "kg": "weight_kg", "": "count"}[unit]
    sources = [Source("record 1", {field: number})]
    assert ground(f"It is {number:,} {unit}.", sources).is_supported
    if number not in (0, 1, -1):
        assert not ground(f"It is {number + 1:,} {unit}.", sources).is_supported or number + 1 in (0, 1)


def test_numbers_in_words() -> None:
    assert [default_vocabulary().number_words.value(text) for text in ("twenty-five", "one hundred and twenty thousand", "two million")] == [
        25, 120_000, 2_000_000,
    ]  # fmt: skip

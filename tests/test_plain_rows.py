"""Rows of a table are read field by field, and what all drafts ask is found out once: the same comes out as one by one."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.answers.grounding.claims import Claim
from interlock.answers.grounding.evidence import Fact, KnownFacts
from interlock.answers.grounding.kept_evidence import KeptEvidence
from interlock.answers.grounding.known_terms import KnownTerms, TermList
from interlock.answers.grounding.plain_rows import PlainRows
from interlock.answers.grounding.reading import SourceReading, read_source
from interlock.answers.grounding.terms import Term

WORDS = default_vocabulary()
DRAFTS = Path(__file__).parent.parent / "benchmarks" / "drafts"
LIMIT = 100_000


@contextmanager
def one_by_one() -> Iterator[None]:
    """Every row is read as any other object."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(PlainRows, "read", lambda *_all: None)
        yield


def shown(reading: SourceReading) -> list[object]:
    """What was read as values: a place is another object each time."""
    rows = [[dict(row.names) for row in fact.place.row.chain()] for fact in reading.facts]
    facts = [(fact.place.path, fact.place.column, str(replace(fact, place=None))) for fact in reading.facts]
    return [reading.keys, reading.taken, reading.cut, facts, rows]


def read_both(value: Any, limit: int = LIMIT) -> tuple[list[object], list[object]]:
    source = Source("record 1", value)
    with one_by_one():
        expected = read_source(source, WORDS, limit)
    return shown(read_source(source, WORDS, limit)), shown(expected)


TEXTS = st.sampled_from(
    [
        "",
        "open",
        "Ward 7",
        "B-204",
        "5 and 5 kg",
        "8/9/2024",
        "noon",
        "3 pm",
        "2024-05-06T10:30",
        "Änne Öst",
        "A. B. is it.",
    ]
)
VALUES = st.one_of(
    TEXTS, st.text(max_size=6), st.integers(-9, 2000), st.floats(width=16), st.booleans(), st.none(), st.just([1, "x"])
)
KEYS = st.sampled_from(
    ["id", "name", "ward.name", "status", "weight_kg", "unit", "currency", "beds", "share", "2022", "note"]
)


@st.composite
def tables(draw: st.DrawFn) -> Any:
    keys = draw(st.lists(KEYS, min_size=1, max_size=5, unique=True))
    plain = {key: draw(st.sampled_from([TEXTS, st.integers(0, 99), VALUES])) for key in keys}
    rows: list[Any] = draw(st.lists(st.fixed_dictionaries(plain), min_size=1, max_size=6))
    rows.insert(draw(st.integers(0, len(rows))), draw(st.one_of(st.fixed_dictionaries(plain), VALUES)))
    return {"wards": rows, "currency": draw(st.sampled_from(["EUR", "", "kg"]))}


@given(tables(), st.integers(0, 400))
@settings(max_examples=150, deadline=None)
def test_rows_of_a_table_are_read_as_they_are_one_by_one(table: Any, limit: int) -> None:
    assert_same(*read_both(table))
    assert_same(*read_both(table, limit))


def assert_same(found: list[object], expected: list[object]) -> None:
    assert found == expected


def test_a_long_table_is_read_by_its_fields_and_one_odd_row_changes_nothing() -> None:
    rows: list[dict[str, Any]] = [
        {"bed": f"B-{number:04}", "patient": f"Patient {number}", "weight_kg": number / 4, "free": number % 2 == 0}
        for number in range(1200)
    ]
    found, expected = read_both({"beds": rows})
    assert found == expected
    rows[700] = {**rows[700], "patient": ["Patient 700", "Patient 12"]}
    found, expected = read_both({"beds": rows})
    assert found == expected


def test_a_text_that_is_longer_than_may_be_read_is_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    rows = [{"name": "one", "note": "short"}, {"name": "two", "note": "5 kg " * 40_000}]
    seen: list[int] = []
    claims = WORDS.claims_in_evidence

    def note(text: str) -> tuple[Claim, ...]:
        seen.append(len(text))
        return claims(text)

    monkeypatch.setattr(WORDS, "claims_in_evidence", note)
    assert read_source(Source("record 1", rows), WORDS, 100).cut
    assert max(seen) < 100


@pytest.mark.parametrize("number", [0, 1])
def test_drafts_find_the_same_support_in_tables_that_are_read_field_by_field(number: int) -> None:
    folder = sorted(DRAFTS.iterdir())[number]
    scenarios = msgspec.json.decode((folder / "domain.json").read_bytes())["scenarios"]
    labelled = [
        msgspec.json.decode(line) for line in (folder / "drafts.jsonl").read_text().splitlines() if line.strip()
    ]
    for scenario, kept in ((one, KeptEvidence()) for one in scenarios):
        sources = [Source(f"record {n}", call.get("result")) for n, call in enumerate(scenario["calls"])]
        sources.append(Source("question", scenario["question"], echo=True))
        drafts = [one["text"] for one in labelled if one["scenario"] == scenario["id"]]
        # What is kept between drafts changes nothing either.
        found = [ground(draft, sources, kept=kept) for draft in drafts]
        with one_by_one():
            assert found == [ground(draft, sources) for draft in drafts]


@given(st.lists(st.tuples(st.integers(0, 3), st.sampled_from(["kg", "hour", ""])), max_size=30), st.integers(1, 8))
@settings(deadline=None)
def test_the_last_figures_in_a_unit_are_those_of_all_figures(figures: list[tuple[int, str]], most: int) -> None:
    place = read_source(Source("record 1", {"a": 1}), WORDS, LIMIT).facts[0].place
    facts = [Fact("r", place, Decimal(n), frozenset({unit} if unit else ())) for n, unit in figures]
    known = KnownTerms(KnownFacts(facts), WORDS.words)
    terms, made = TermList(known), Term.from_others(Decimal(2), frozenset({"kg"}), "r", "made")
    terms.append(made)
    every = [*known.terms, made]
    assert terms.last(most) == every[-most:]
    for empty in (True, False):
        wanted = [term for term in every if "kg" in term.units and (empty or term.number)][-most:]
        assert terms.last_in(lambda units: "kg" in units, most, empty=empty) == wanted

"""Units: what spellings mean in a text and in the name of a field; a vocabulary with tables of an application's own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.answers.grounding import Source, Vocabulary, default_vocabulary, ground
from interlock.errors import ConfigError
from tests.growth import LINEAR, growth

UNITS = default_vocabulary().units


@pytest.mark.parametrize(
    ("spelling", "units"),
    [
        ("acres", {"acre"}), ("Acres", {"acre"}), ("°C", {"celsius"}), ("$", {"usd"}), ("per cent", {"percent"}),
        ("square-feet", {"square_foot"}), ("km/h", {"kmh"}), ("kilometres", {"kilometre"}),
        ("MW", {"megawatt"}), ("mW", {"milliwatt"}),  # the case of a symbol matters
        ("mw", set()), ("M", set()), ("K", set()), ("trees", set()), ("", set()),
    ],
)  # fmt: skip
def test_what_follows_a_figure_in_a_text(spelling: str, units: set[str]) -> None:
    assert UNITS.of(spelling) == units


@pytest.mark.parametrize(
    ("spelling", "units"),
    [
        ("mw", {"megawatt", "milliwatt"}), ("MW", {"megawatt"}), ("ACRES", {"acre"}), ("F", {"fahrenheit"}),
        ("usd/acre", {"usd"}), ("kg per ha", {"kilogram"}), ("trees", set()),
    ],
)  # fmt: skip
def test_what_a_field_says_whatever_its_case(spelling: str, units: set[str]) -> None:
    assert UNITS.of_field(spelling) == units


@pytest.mark.parametrize(
    ("name", "units"),
    [
        ("total_acres", {"acre"}), ("costUsd", {"usd"}), ("growth_pct", {"percent"}), ("length_ft", {"foot"}),
        ("height_m", {"metre"}), ("tmax_f", {"fahrenheit"}), ("temp_c_min", {"celsius"}), ("wait_min", {"minute"}),
        ("acres_max", {"acre"}), ("trees_per_mile", {"per_mile"}), ("price_per_ton_usd", {"per_tonne", "usd"}),
        ("speed_km_h", {"kmh"}), ("read_mb_s", {"megabyte"}), ("level_ug_l", {"microgram"}),
        ("kWh_total", {"kilowatt_hour"}), ("power_kW_max", {"kilowatt"}), ("usedKWh", {"kilowatt_hour"}), ("areaM2", {"square_metre"}),
        ("in_stock", set()), ("a_second_chance", set()), ("m", set()), ("min", set()), ("count", set()), ("", set()),
    ],
)  # fmt: skip
def test_what_the_name_of_a_field_speaks_of(name: str, units: set[str]) -> None:
    assert UNITS.in_name(name) == units


@pytest.mark.parametrize(
    ("name", "printed"),
    [("dose_mg", "mg"), ("volume_ml", "mL"), ("size_mb", "MB"), ("temp_c", "°C"), ("power_mw", ""), ("wait_min", "minutes")],
)  # fmt: skip
def test_the_unit_of_a_field_is_printed_where_its_name_says_one(name: str, printed: str) -> None:
    """In lower case `mg` are milligrams and `mb` megabytes; `mw` may be either."""
    assert UNITS.label(UNITS.in_name(name)) == printed


def test_names_of_shares() -> None:
    assert [UNITS.is_share(name) for name in ("confidence", "burn_rate", "shareCount")] == [True, True, True]
    assert not UNITS.is_share("acres")


def test_longer_spellings_are_tried_first_and_words_with_another_meaning_never() -> None:
    lengths = [len(spelling) for spelling in UNITS.spoken]
    assert lengths == sorted(lengths, reverse=True)
    assert {"in", "point", "second"}.isdisjoint(UNITS.spoken)
    assert {"inches", "acres", "%"} <= set(UNITS.spoken)


@given(st.text(max_size=60))
def test_any_text_has_units_or_none(text: str) -> None:
    for found in (UNITS.of(text), UNITS.of_field(text), UNITS.in_name(text)):
        assert isinstance(found, frozenset)
    UNITS.is_share(text)


@pytest.mark.parametrize("part", ["a_", "per_", "m_s_", "aB", "min_", "$", "%_"])
def test_a_long_name_takes_no_longer_than_it_is_long(part: str) -> None:
    assert growth(lambda size: UNITS.in_name(part * (size // len(part))), 2000) < LINEAR


# A vocabulary of an application's own

TABLES = """
[units.spellings]
board_foot = ["bf", "board-feet"]
acre = ["acreage"]
[numbers.large]
score = 20
[numbers.magnitudes]
mbf = 3
[dates]
periods = ["CYCLE"]
[citations]
series = ['FSH']
"""


@pytest.fixture
def extended(tmp_path: Path) -> Vocabulary:
    file = tmp_path / "vocabulary.toml"
    file.write_text(TABLES, encoding="utf-8")
    return default_vocabulary().extend(file)


def found(vocabulary: Vocabulary, text: str) -> list[tuple[str, str, str | None]]:
    return [(claim.kind, claim.text, ",".join(sorted(claim.units)) or None) for claim in vocabulary.claims(text)]


def test_a_vocabulary_that_is_nested_without_end_is_refused_in_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "deep.toml").write_text("a = " + "[" * 5_000 + "]" * 5_000)
    with pytest.raises(ConfigError, match="is no vocabulary: it is nested more than 64 levels deep"):
        default_vocabulary().extend(tmp_path / "deep.toml")


def test_entries_are_added_to_every_table(extended: Vocabulary) -> None:
    assert found(extended, "1,200 board feet") == [("number", "1,200 board feet", "board_foot")]
    assert found(extended, "two score") == [("number", "two score", None)]
    assert found(extended, "CYCLE 12") == [("number", "CYCLE 12", None)]
    assert found(extended, "FSH 2409.12") == [("citation", "FSH 2409.12", None)]
    assert [claim.number for claim in extended.claims("3 mbf")] == [3000]
    assert extended.units.in_name("total_bf") == {"board_foot"}


def test_what_was_there_stays_and_a_unit_keeps_its_spellings(extended: Vocabulary) -> None:
    text = "12 acres, acreage 7, $3.5 million on August 14, 2022, Q3, RFC 9110, a dozen"
    assert found(extended, text) == found(default_vocabulary(), text)
    assert extended.units.of("acreage") == extended.units.of("acres") == {"acre"}


def test_the_vocabulary_that_was_extended_does_not_change(extended: Vocabulary) -> None:
    assert default_vocabulary().units.of("bf") == frozenset()
    assert found(default_vocabulary(), "FSH 2409.12") == [("number", "2409.12", None)]


def test_an_answer_is_traced_in_the_words_of_the_application(extended: Vocabulary) -> None:
    sources = [Source("record 1", {"volume_bf": 1200})]
    assert ground("1,200 board feet", sources, extended).is_supported
    assert not ground("1,200 acres", sources, extended).is_supported


def test_extending_twice_keeps_both(extended: Vocabulary, tmp_path: Path) -> None:
    more = tmp_path / "more.toml"
    more.write_text('[units.spellings]\nchain = ["chains"]\n', encoding="utf-8")
    both = extended.extend(more)
    assert both.units.of("chains") == {"chain"}
    assert both.units.of("bf") == {"board_foot"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[unit]\n", "there is no table 'unit'"),
        ("not toml", "is no vocabulary"),
        (None, "is no vocabulary"),
        ("[citations]\npatterns = ['(a+)+$']\n", "which can take for ever; give one of them a bound"),
        ("[citations]\nparts = ['(Title)*\\s*', '(?:(?:Sub)+part)+']\n", "repeats something without a bound"),
        ("[citations]\npatterns = ['Title (']\n", "is no regular expression"),
        ("[numbers.context]\nloss = ['(?:sank|s+)+']\n", "numbers.context.loss"),
    ],
)
def test_what_is_no_vocabulary_is_said(tmp_path: Path, text: str | None, said: str) -> None:
    file = tmp_path / "vocabulary.toml"
    if text is not None:
        file.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said) as error:
        default_vocabulary().extend(file)
    assert str(file) in str(error.value)


@pytest.mark.parametrize(
    ("row", "said", "held"),
    [
        ({"name": "Waldo", "count": 12}, "Waldo has a count of 12 km.", True),
        ({"name": "Waldo", "hikers": 12}, "Waldo has 12% of the hikers.", True),
        ({"name": "Waldo", "visitors": 340}, "Waldo: visitors 340 °C.", True),
        ({"name": "Waldo", "distance": 12}, "The distance to Waldo is 12 km.", False),
        ({"name": "Waldo", "vacancy": 0.062}, "The vacancy at Waldo is 6.2 %.", False),
        ({"name": "Waldo", "tb_stored": 791}, "Waldo has 791 TB stored.", False),
        ({"name": "Waldo", "storage_af": 88410}, "Waldo has 88,410 acre-feet in storage.", False),
        ({"name": "Waldo", "field": "rest_s", "to": 90}, "For Waldo it went to 90 seconds.", False),
    ],
)
def test_a_value_that_names_no_unit_is_said_in_one_only_if_its_field_measures_that(
    row: dict[str, Any], said: str, held: bool
) -> None:
    found = ground(said, [Source("record 1", row)])
    assert bool(found.unsupported) == held, found

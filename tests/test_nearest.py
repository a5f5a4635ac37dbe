"""`nearest`: which known name was meant, whatever its case and separators, and nothing where none is near."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from interlock.canonical import did_you_mean, nearest
from tests.growth import LINEAR, growth

KNOWN = ["trail_id", "train", "damage_class", "prioritize_trails"]


def test_case_and_separators_do_not_count() -> None:
    assert nearest("Trail-ID", ["trail_id", "train"])[0] == "trail_id"
    assert nearest("DAMAGE CLASS", KNOWN)[0] == "damage_class"


def test_slips_are_found_the_most_alike_first() -> None:
    assert nearest("trial_id", KNOWN)[0] == "trail_id"
    assert nearest("prioritise_trials", KNOWN) == ("prioritize_trails",)
    assert nearest("trai", ["trail_id", "train"], 1) == ("train",)


def test_what_is_like_nothing_is_near_to_nothing() -> None:
    assert nearest("zzz", ["abc"]) == ()
    assert nearest("", KNOWN) == ()
    assert nearest("abc", []) == ()


def test_no_more_are_named_than_are_asked_for() -> None:
    assert len(nearest("abc", [f"abc{n}" for n in range(9)])) == 3
    assert len(nearest("abc", [f"abc{n}" for n in range(9)], 5)) == 5


def test_the_question_names_one_or_nothing() -> None:
    assert did_you_mean("Trail-ID", KNOWN) == "; did you mean 'trail_id'?"
    assert did_you_mean("zzz", KNOWN) == ""


@given(st.text(max_size=30), st.lists(st.text(max_size=12), max_size=6))
def test_whatever_is_asked_only_known_names_are_given(name: str, known: list[str]) -> None:
    assert set(nearest(name, known)) <= set(known)


def test_a_name_of_a_million_characters_is_near_to_nothing_and_no_more_work_than_it_is_long() -> None:
    """Held against every known name character by character it would take the square."""
    assert nearest("trail_id" * 125_000, KNOWN) == ()
    assert growth(lambda size: nearest("x" * size, KNOWN), 250_000) < LINEAR
    assert growth(lambda size: nearest("trail_id" * (size // 8), KNOWN), 250_000) < LINEAR


def test_four_times_as_many_known_names_take_about_four_times_as_long() -> None:
    assert growth(lambda size: nearest("trail_id", [f"trail_{n}" for n in range(size)]), 2_000) < LINEAR

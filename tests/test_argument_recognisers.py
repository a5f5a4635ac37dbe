"""Recognisers of arguments: closed values, figures of a unit, known values by their names; what each must not take."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock.answers.constrained.argument_extraction import extract_arguments
from interlock.answers.constrained.recognisers.choices import find_choices, is_negated
from interlock.answers.constrained.recognisers.figures import figures_for, in_figures
from interlock.answers.constrained.recognisers.names import find_names, named_as, names_in
from interlock.answers.constrained.unused_values import unused_values
from interlock.answers.grounding import default_vocabulary
from interlock.models import ToolCard
from tests.growth import LINEAR, growth

WORDS = default_vocabulary()
KNOWN = {
    "waldo-3536": ("Waldo Lake", "waldo-3536"),
    "waldo-mtn": ("Waldo Mountain",),
    "bobby-3526": ("Bobby Lake",),
    "fuji": ("Fuji Mountain",),
}


# Closed values


@pytest.mark.parametrize(
    ("values", "text", "found"),
    [
        (["low", "high", "very_high"], "a HIGH risk", ("high",)),
        (["low", "high", "very_high"], "a very-high risk", ("high", "very_high")),
        (["low", "high"], "low or high?", ("low", "high")),
        (["low", "high"], "higher, below", ()),  # a word inside a word
        (["doyle", "scribner"], "by doyle, not scribner", ("doyle",)),
        (["north"], "not the north. How is the weather in the north?", ("north",)),  # one mention that is not denied
        (["north"], "outside of the north", ()),
        ([1, None, "one"], "one of 1", ("one",)),
        ([], "anything", ()),
    ],
)
def test_choices_that_a_text_says_and_does_not_deny(values: list[Any], text: str, found: tuple[str, ...]) -> None:
    assert find_choices(values, text) == found


def test_what_is_not_there_is_not_denied_either() -> None:
    assert is_negated(" not the north ", "north")
    assert not is_negated(" the north ", "north")
    assert not is_negated(" not here ", "north")


# Figures


def figures(
    name: str, text: str, *, kind: str = "number", alone: bool = True, required: bool = True
) -> tuple[Any, ...]:
    return figures_for(name, kind, text, WORDS, alone=alone, required=required)


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("length_miles", "5 miles and 240 acres", (5.0,)),
        ("length_miles", "240 acres", ()),  # of another unit
        ("length_miles", "240 of them", (240.0,)),  # of none
        ("length_miles", "5 miles, and 240 of them", (5.0,)),
        ("acres", "half an acre", (0.5,)),
        ("cost_usd", "$3.5 million", (3_500_000.0,)),
        ("acres", "a hundred acres", (100.0,)),
        ("acres", "B-04 on August 14, 2022", ()),  # no figures of their own
        ("acres", "", ()),
    ],
)
def test_figures_of_the_unit_of_an_argument(name: str, text: str, found: tuple[float, ...]) -> None:
    assert figures(name, text) == found


def test_a_whole_number_is_whole() -> None:
    assert figures("count", "3", kind="integer") == (3,)
    assert figures("count", "2.5", kind="integer") == ()


def test_an_argument_that_may_be_left_out_is_filled_only_by_its_unit_or_its_own_words() -> None:
    assert figures("road_miles", "12 of them", required=False) == ()
    assert figures("road_miles", "12 miles", required=False) == (12.0,)
    assert figures("road_miles", "12 miles", alone=False, required=False) == ()  # another argument has miles too
    assert figures("road_miles", "12 miles of road", alone=False, required=False) == (12.0,)


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("half a mile", "0.5 mile"),
        ("a quarter of an acre", "0.25 acre"),
        ("one third of a percent", "0.33 percent"),
        ("half of them", "half of them"),  # no unit
        ("the first half", "the first half"),
    ],
)
def test_parts_of_a_unit_are_figures(text: str, written: str) -> None:
    assert in_figures(text, WORDS) == written


# Known values by their names


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("how is Waldo Lake?", ("waldo-3536",)),
        ("how is the waldo lake trail", ("waldo-3536",)),
        ("how is waldo-3536", ("waldo-3536",)),
        ("Waldo Lake and Bobby Lake", ("waldo-3536", "bobby-3526")),
        ("what of Bobby?", ("bobby-3526",)),
        ("Fuji is closed", ("fuji",)),
        ("is fuij mountain open", ("fuji",)),  # misspelled
        ("Is Waldo open?", ("Waldo",)),  # fits two: somebody is asked
        ("is the Crater Lake trail open", ("Crater Lake",)),  # fits none: said as it is
        ("thanks a lot", ()),
        ("", ()),
    ],
)
def test_known_values_that_a_text_speaks_of(text: str, found: tuple[str, ...]) -> None:
    assert find_names(text, KNOWN) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Should the Waldo Lake trail stay closed?", ("Waldo Lake",)),  # not the only trail that there is
        ("Is the Snake River trail open?", ("Snake River",)),
        ("Is the Snake River Trail open?", ("Snake River Trail",)),
        ("Is the River Trail North open?", ("River Trail North",)),
        ("Is the River Trail open?", ("river-1",)),
        ("Assess River Trail", ("river-1",)),
        ("SHOULD THE RIVER TRAIL STAY CLOSED?", ("river-1",)),
        ("is the trail open", ()),
    ],
)
def test_the_only_value_is_not_meant_by_another_name(text: str, found: tuple[str, ...]) -> None:
    assert find_names(text, {"river-1": ("River Trail", "trail 1")}, frozenset({"trail", "trails"})) == found


def test_one_name_for_two_things_is_asked_about() -> None:
    assert find_names("at Mill Creek", {"mill-1": ("Mill Creek",), "mill-2": ("Mill Creek",)}) == ("mill creek",)


def test_a_name_inside_a_longer_one_is_not_meant() -> None:
    assert find_names("at Upper Mill Creek", {"a": ("Mill Creek",), "b": ("Upper Mill Creek",)}) == ("b",)


def test_names_that_stand_in_a_text_as_they_are() -> None:
    assert names_in("Waldo Lake, BOBBY LAKE and Fuji", KNOWN) == {"waldo lake", "bobby lake"}
    assert names_in("nothing", KNOWN) == frozenset()


@pytest.mark.parametrize(
    ("name", "text", "found"),
    [
        ("sector", "what of sector NW-9?", ("NW-9",)),
        ("fire", "in the Holiday Farm fire", ("Holiday Farm",)),
        ("sector", "see SE-12 first", ("SE-12",)),  # of the shape of NW-1
        ("sector", "see SE-99999, and B12", ()),
        ("sector", "the sector is quiet", ()),
    ],
)
def test_what_is_named_by_the_argument_s_own_word_or_shape(name: str, text: str, found: tuple[str, ...]) -> None:
    assert named_as(name, text, {"NW-1": ("Northwest ridge",)}) == found


# Whatever a text holds

PIECES = (
    "Waldo", "waldo", "Lake", "Bobby", "lake", "not", "the", "north", "5", "half", "a", "miles", "mıle", "acres", "$", "-",
    "NW-9", "sector", ".", "?", " ", "\n", "ſ", "½", "\x00", "…", "(", "'",
)  # fmt: skip
ANY_TEXT = st.text(max_size=60) | st.lists(st.sampled_from(PIECES), max_size=12).map(" ".join)


@given(ANY_TEXT)
def test_no_text_makes_them_fail(text: str) -> None:
    assert set(find_choices(["north", "south"], text)) <= {"north", "south"}
    assert all(isinstance(value, float) for value in figures("length_miles", text))
    assert all(isinstance(value, int) for value in figures("count", text, kind="integer"))
    assert all(name in KNOWN or name for name in find_names(text, KNOWN))
    assert len(named_as("sector", text, {"NW-1": ()})) <= 1


@given(ANY_TEXT, st.sampled_from(["north", "Waldo Lake"]))
def test_whatever_stands_around_a_name_it_is_found_or_denied(text: str, name: str) -> None:
    whole = f"{text} | {name} | {text}"
    if name == "north":
        assert find_choices(["north"], whole) in [("north",), ()]
    else:
        assert "waldo lake" in names_in(whole, KNOWN)


@pytest.mark.parametrize(
    "part", ["not ", "half a ", "5 miles ", "Waldo ", "A b ", "NW-9 ", "AAAA", "   ", "sector ", "north "]
)
def test_four_times_the_text_takes_about_four_times_as_long(part: str) -> None:
    def read(size: int) -> None:
        text = part * (size // len(part))
        find_choices(["south"], text)
        figures("length_miles", text)
        named_as("sector", text, {"NW-1": ()})
        names_in(text, KNOWN)
        find_names(text, KNOWN)

    assert growth(read, 1000) < LINEAR


@pytest.mark.parametrize(
    "part", ["9", "9.", "5 miles ", "at least 9 ", "9 miles or more ", "2022-08-14 ", "Trail Number 5 ", "Ab ", "zqxw ", "not ", "{a", "half a mile "]
)  # fmt: skip
def test_a_question_against_a_tool_with_many_known_values_takes_no_more_than_it_is_long(part: str) -> None:
    """2,000 nines took half a minute."""
    known = {f"trail-{n}": f"Trail Number {n} lake" for n in range(200)}
    properties = {
        "trail_id": {"type": "string"},
        "length_miles": {"type": "number"},
        "day": {"type": "string", "format": "date"},
    }
    card = ToolCard("look", "Look.", {"properties": properties, "required": ["trail_id"]}, {"trail_id": known})

    def read(size: int) -> None:
        text = part * (size // len(part))
        given = extract_arguments(card, text, WORDS)
        unused_values(card, [card], text, given, WORDS)

    assert growth(read, 3000) < LINEAR


def test_a_pattern_of_a_contract_that_could_take_for_ever_is_not_tried() -> None:
    def look(pattern: str) -> Any:
        card = ToolCard("look", "Look.", {"properties": {"code": {"type": "string", "pattern": pattern}}})
        return extract_arguments(card, f"is {'a' * 150}! AB-12 open", WORDS)["code"]

    assert look("^[A-Z]+-[0-9]+$") == ("AB-12",)
    assert look("^(a+)+$") == ()
    assert look("[A-Z") == ()

"""Right answers in free wording leave, and the same wording with another figure is held: each case has both."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock.answers.grounding import Source, ground
from interlock.answers.grounding.meaning import ToolMeaning
from interlock.tools import ResultField

ROOMS = Source(
    "record 1",
    {
        "hotel": "Seaview",
        "rows": [
            {"room_no": "R-11", "kind": "garden suite", "state": "free", "rate_usd": 140, "beds": 3, "nights": 2},
            {"room_no": "R-12", "kind": "attic", "state": "free", "rate_usd": 95.5, "beds": 2, "nights": 4},
            {"room_no": "R-14", "kind": "family room", "state": "taken", "rate_usd": 210, "beds": 5, "nights": 3},
            {"room_no": "R-19", "kind": "single", "state": "cleaning", "rate_usd": 70, "beds": 1, "nights": 3},
        ],
    },
)
TOOLBOX = Source(
    "record 2",
    {"part_id": "TX-9", "name": "Torx bit set", "on_hand": 64, "reserved": 20, "reorder_point": 30, "bin": "K-2-1"},
)
TOOL_MEANING = ToolMeaning(fields={"reserved": ResultField(description="pieces set aside for jobs")})
TOUR = Source(
    "record 3",
    {
        "tours": [
            {"name": "Harbour Walk", "day": "2025-08-04", "start": "09:15", "duration_min": 75, "guests": 18},
            {"name": "Castle Round", "day": "2025-08-21", "start": "14:00", "duration_min": 150, "guests": 31},
        ]
    },
)
FEED = Source(
    "record 4",
    {"animal": "Bella", "feed": "Oats", "scoops_a_day": 3, "scoops_left": 63, "every_hours": 8, "course_days": 6},
)
LENDING = Source(
    "record 5",
    {
        "rows": [
            {"month": "2025-01", "lent": 1210, "returned": 980},
            {"month": "2025-02", "lent": 1105, "returned": 1145},
            {"month": "2025-03", "lent": 990, "returned": 1010},
        ]
    },
)
SLIP = Source(
    "record 6",
    {"invoice_id": "V-8", "total_usd": 84.6, "insurance_paid_usd": 60.6, "own_share_usd": 24, "max_instalments": 3},
)
ASKED = Source("question", "How many books did readers have lent in spring?", echo=True)


def held(answer: str, *sources: Source, meanings: dict[str, Any] | None = None) -> list[str]:
    return [claim.text for claim in ground(answer, sources, meanings=meanings).unsupported]


def check_both(right: str, wrong: str, *sources: Source) -> None:
    assert held(right, *sources) == []
    assert held(wrong, *sources) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "Three rooms can be seen: R-11 (garden suite), R-12 (attic) and R-19 (single).",
            "Five rooms can be seen: R-11 (garden suite), R-12 (attic) and R-19 (single).",
        ),
        ("We have two that are free.", "We have six that are free."),
        ("Half of the rooms are free.", "A quarter of the rooms are free."),
        ("There are four kinds.", "There are six kinds."),
    ],
)
def test_what_is_counted_is_listed_or_has_something_in_common(right: str, wrong: str) -> None:
    check_both(right, wrong, ROOMS)


def test_the_words_of_a_thing_s_own_name_speak_for_no_field() -> None:
    stock = replace(TOOLBOX, tool="get_stock")
    meanings = {"get_stock": TOOL_MEANING}
    assert held("We have 64 Torx bit sets on hand.", stock, meanings=meanings) == []
    assert held("We have 64 Torx bit sets reserved.", stock, meanings=meanings) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("20 of 64 are reserved.", "64 of 20 are reserved."),
        ("TX-9: 64 against 30 for the reorder point.", "TX-9: 61 against 30 for the reorder point."),
    ],
)
def test_a_part_and_its_whole_are_two_fields(right: str, wrong: str) -> None:
    check_both(right, wrong, TOOLBOX)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Harbour Walk: 09:15–10:30.", "Harbour Walk: 09:15–11:45."),
        ("The Harbour Walk begins at 9:15 and is over around 10:30.", "The Harbour Walk begins at 10:30."),
        ("The Castle Round runs from 14:00 until 16:30.", "The Castle Round runs from 14:00 until 16:15."),
        ("The Castle Round is on 8/21 at 14:00.", "The Castle Round is on 8/22 at 14:00."),
        (
            "| Tour | Day in August |\n|---|---|\n| Harbour Walk | 4 |\n| Castle Round | 21 |",
            "| Tour | Day in August |\n|---|---|\n| Harbour Walk | 21 |\n| Castle Round | 4 |",
        ),
        ("The Castle Round is on from 2 pm.", "The Castle Round is on from 3 pm."),
    ],
)
def test_days_and_times_as_bare_figures(right: str, wrong: str) -> None:
    check_both(right, wrong, TOUR)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("There are 63 scoops left, enough for 21 days.", "There are 63 scoops left, enough for 31 days."),
        ("At three scoops a day that lasts three weeks.", "At three scoops a day that lasts five weeks."),
        ("Give it every 8 hours, that is three times a day.", "Give it every 8 hours, that is four times a day."),
    ],
)
def test_how_long_something_lasts_at_so_much_a_day(right: str, wrong: str) -> None:
    check_both(right, wrong, FEED)


def test_a_stock_and_its_use_are_of_one_unit() -> None:
    silo = Source("record 1", {"silo": "North", "stock_kg": 5400, "use_kg_per_day": 225})
    check_both("5,400 kg at 225 kg a day are enough for 24 days.", "5,400 kg at 225 kg a day last 42 days.", silo)


def test_so_much_for_each() -> None:
    train = Source("record 1", {"train": "NJ 471", "takings_eur": 17936, "passengers": 236})
    right = "NJ 471 took €17,936 from 236 passengers, on average €76 each."
    check_both(right, right.replace("76", "86"), train)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Over the three months 170 more were lent than returned.", "Over the four months 170 more were lent."),
        ("They had 3,305 lent.", "They had 3,415 lent."),
        (
            "In all 3,305 were lent. About a third of that fell to February.",
            "In all 3,305 were lent. Half of that fell to February.",
        ),
    ],
)
def test_totals_of_what_was_asked_for(right: str, wrong: str) -> None:
    check_both(right, wrong, LENDING, ASKED)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("After insurance $24 are left for you.", "The insurance paid $24."),
        (
            "Your own share is $24; in three instalments $8 each.",
            "Your own share is $24; in three instalments $9 each.",
        ),
        ("You pay no more than $24.", "You pay no more than $14."),
        ("It is a good $80 in total.", "It is a good $50 in total."),
    ],
)
def test_shares_of_a_bill(right: str, wrong: str) -> None:
    check_both(right, wrong, SLIP)


MOVED = (
    Source(
        "record 7",
        {"copy_id": "B-1", "title": "Emma", "shelf": "K-3", "fee_usd": 9.5, "due": "2025-05-02"},
        stale=("shelf", "fee_usd", "due"),
    ),
    Source("record 8", {"copy_id": "B-1", "shelf": "L-8", "fee_usd": 4.5, "due": "2025-06-13"}),
)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("The fee: $9.50 → $4.50. Shelf: K-3 → L-8.", "The fee: $4.50. Shelf: K-3."),
        ("B-1 is on shelf L-8, and its fee drops from $9.50 to $4.50.", "B-1 is on shelf L-8, and its fee is $9.50."),
        ("That is all there was since 2 May.", "It is due on 2 May."),
        ("On L-8 it costs $4.50 rather than the planned $9.50.", "It was moved; $9.50 is the fee now."),
    ],
)
def test_what_was_before_a_change_is_said_as_such(right: str, wrong: str) -> None:
    check_both(right, wrong, *MOVED)


SITES = (
    Source("record 1", {"site": "Bakery", "visitors": 812, "next_check": "2026-02-10"}),
    Source("record 2", {"site": "Boat house", "visitors": 344, "next_check": "2025-11-05"}),
)


def test_a_thing_that_a_sentence_names_takes_the_place_of_one_before() -> None:
    first = "Bakery: 812 visitors."
    assert held(f"{first} The next check is for the boat house, on 5 November 2025.", *SITES) == []
    assert held(f"{first} The next check is for the boat house, on 10 February 2026.", *SITES) != []


def test_a_comparison_is_with_what_the_sentence_before_named() -> None:
    two = "The Bakery had 812 visitors; the Boat house had"
    assert held(f"{two} 468 fewer, 344.", *SITES) == []
    assert held(f"{two} 368 fewer, 344.", *SITES) != []


def test_figures_of_a_field_in_a_unit_of_its_own_are_in_no_other() -> None:
    source = Source("record 1", {"reels": 56}, tool="get_film")
    meanings = {"get_film": ToolMeaning(fields={"reels": ResultField(unit="reels")})}
    assert held("There are 56 reels.", source, meanings=meanings) == []
    assert held("It runs for 56 days.", source, meanings=meanings) == ["56 days"]


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        (
            "The twin costs sixty and the single thirty-five dollars.",
            "The twin costs sixty and the single forty dollars.",
        ),
        ("They cost sixty and thirty-five dollars.", "They cost sixty and forty-five dollars."),
        ("It is a two-berth cabin.", "It is a three-berth cabin."),
        ("It weighs about two and a half kilos.", "It weighs about three and a half kilos."),
    ],
)
def test_number_words(right: str, wrong: str) -> None:
    source = Source(
        "record 1",
        {"cabins": [{"name": "twin", "type": "two-berth", "usd": 60, "weight_kg": 2.6}, {"name": "single", "usd": 35}]},
    )
    check_both(right, wrong, source)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("The error is less than one percent.", "The error is less than half a percent."),
        ("The error is under 1.5 %.", "The error is more than 1.5 %."),
        ("The error is at least 0.6 %.", "The error is at least 0.9 %."),
        ("A second opinion is needed.", "It needs a third opinion."),
    ],
)
def test_what_is_compared_lies_on_the_side_that_is_said(right: str, wrong: str) -> None:
    scale = Source(
        "record 1", {"scale_id": "S-4", "error_pct": 0.8, "note": "Above two percent a second opinion is due."}
    )
    check_both(right, wrong, scale)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Two are unpaid.", "Three are unpaid."),
        ("Three are paid.", "Two are paid."),
        ("Two are not paid.", "Three are not paid."),
    ],
)
def test_rows_are_counted_by_a_flag_as_it_stands(right: str, wrong: str) -> None:
    fines = [{"fine_id": f"F-{n}", "reader": f"Reader {n}", "usd": 10.5 + n, "paid": n > 1} for n in range(5)]
    check_both(right, wrong, Source("record 1", {"fines": fines}))


TENNIS = Source("record 7", {"court": "Court 3", "day": "2025-06-14", "fee_eur": 18})
LETTER = Source("record 8", {"text": "The trainer has twisted an ankle, so Court 3 stays closed."}, trusted=False)


def test_what_is_not_denied_in_a_sentence_is_still_said() -> None:
    hearsay = "Court 3 is not open, the trainer has twisted an ankle."
    assert held(hearsay, TENNIS, LETTER) != []
    assert held(f"The letter says: {hearsay}", TENNIS, LETTER) == []
    assert held("The fee of Court 3 is not in the letter, it is 18 euros.", TENNIS, LETTER) == []


def test_things_are_counted_in_what_their_field_says() -> None:
    cellar = Source("record 9", {"cellar": "West", "cider_bottles": 36, "mead_cases": 12})
    check_both("The West cellar has 36 bottles of cider.", "The West cellar has 36 cases of cider.", cellar)


def test_a_share_is_of_the_whole_that_is_named() -> None:
    use = Source("record 10", {"site": "Mill", "night_kwh": 50, "day_kwh": 100})
    assert held("Half of the power of the Mill is used at night.", use) != []


def test_all_of_some_are_no_more_than_those() -> None:
    rows = [{"title": name, "overdue": late} for name, late in (("Emma", True), ("Ulysses", True), ("Ada", False))]
    shelf = Source("record 11", {"books": rows})
    assert held("All three overdue books are listed.", shelf) != []
    assert held("All three books are listed.", shelf) == []


def test_what_each_costs_is_no_product() -> None:
    tickets = Source("record 12", {"free_rides": 40, "price_per_extra_ride_eur": 0.5})
    check_both("Each further ride costs 0.50 euros.", "Each further ride costs 20 euros.", tickets)


LESSONS = Source(
    "record 13",
    {
        "lessons": [
            {"pupil": "Ada Brook", "teacher": "Ms Fell", "day": "2025-03-03", "minutes": 45},
            {"pupil": "Ada Brook", "teacher": "Mr Roe", "day": "2025-03-04", "minutes": 30},
            {"pupil": "Ben Sorrel", "teacher": "Ms Fell", "day": "2025-03-05", "minutes": 60},
            {"pupil": "Cy Alder", "teacher": "Mr Roe", "day": "2025-03-06", "minutes": 45},
            {"pupil": "Cy Alder", "teacher": "Mr Roe", "day": "2025-03-07", "minutes": 45},
        ]
    },
)
GREENHOUSE = Source(
    "record 14",
    {
        "greenhouses": [
            {"name": "Fern House 24", "beds": 6, "pots_in_stock": 30, "watered": 2, "area_sqm": 55},
            {"name": "Orchid House 7", "beds": 9, "pots_in_stock": 12, "watered": 4, "area_sqm": 80},
        ]
    },
)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Ada Brook has two lessons.", "Ada Brook has five lessons."),
        ("Cy Alder has two lessons with Mr Roe.", "Ada Brook has two lessons with Mr Roe."),
        ("Ms Fell gives two lessons.", "Ben Sorrel has two lessons, one with Ms Fell and one with Mr Roe."),
    ],
)
def test_a_count_is_of_those_who_are_said_to_have_it(right: str, wrong: str) -> None:
    check_both(right, wrong, LESSONS)


@pytest.mark.parametrize("wrong", ["There are two dozen more beds.", "Fern House 24 costs $24.", "24 gardeners work."])
def test_a_figure_of_a_name_is_no_amount(wrong: str) -> None:
    assert held(wrong, GREENHOUSE) != []
    assert held("Fern House 24 has six beds.", GREENHOUSE) == []


def test_those_in_a_state_are_only_some() -> None:
    check_both("In Orchid House 7 four are watered.", "Orchid House 7 has four pots.", GREENHOUSE)


def test_an_ordinal_is_no_number_of_something_else() -> None:
    kiln = Source("record 15", {"kiln": "East", "attempt": 3, "shelves": 2, "fired": False})
    check_both("The East kiln failed on the third attempt.", "The East kiln failed for the second time.", kiln)


@pytest.mark.parametrize(
    ("right", "wrong"),
    [("⅖ of the lamps are lit.", "⅗ of the lamps are lit."), ("2½ hours are left.", "2⅝ hours are left.")],
)
def test_every_written_fraction_is_read(right: str, wrong: str) -> None:
    lamps = [{"lamp": f"L-{n}", "state": "lit" if n < 2 else "dark"} for n in range(5)]
    check_both(right, wrong, Source("record 16", {"lamps": lamps, "hours_left": 2.5}))


def test_what_is_moved_is_moved_from_where_it_was() -> None:
    trip = Source(
        "record 17",
        {"ferry": "Skua", "checked_on": "2025-05-01", "old_sailing": "2025-05-07", "new_sailing": "2025-05-04"},
    )
    check_both(
        "The ferry Skua was brought forward by three days.", "The ferry Skua was brought forward by a whole week.", trip
    )


def test_growth_is_of_one_thing() -> None:
    stall = Source("record 18", {"stall": "B4", "old_fee": 200, "new_fee": 210, "bond": 231})
    check_both("The fee of stall B4 rose by 5 percent.", "The fee of stall B4 rose by 10 percent.", stall)

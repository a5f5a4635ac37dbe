"""What a field's name says does not hang on how it is written: `due_at`, `dueAt` and `DueAt` are one."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from interlock.answers.grounding import Source, ground
from interlock.answers.grounding.field_names import snake_keys, snake_name
from tests.test_said_of_things import Call, wrong_in


def pascal(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_"))


def camel(name: str) -> str:
    return re.sub(r"_(.)", lambda match: match[1].upper(), name)


WAYS = [str, camel, pascal]
Way = Callable[[str], str]


def renamed(value: Any, way: Way) -> Any:
    if isinstance(value, dict):
        return {way(key): renamed(item, way) for key, item in value.items()}
    return [renamed(item, way) for item in value] if isinstance(value, list) else value


def in_way(way: Way, *calls: Call) -> tuple[Call, ...]:
    return tuple((name, renamed(arguments, way), renamed(result, way)) for name, arguments, result in calls)


STALL: tuple[Call, ...] = (
    (
        "get_booking",
        {"booking_id": "PX-71"},
        {"booking_id": "PX-71", "horse": "Juniper", "stall": "Oak 4", "leaves_on": "2026-05-12", "balance_due": 318.4},
    ),
    (
        "add_nights",
        {"booking_id": "PX-71", "new_leaves_on": "2026-05-15"},
        {
            "booking_id": "PX-71",
            "old_leaves_on": "2026-05-12",
            "new_leaves_on": "2026-05-15",
            "balance_before": 318.4,
            "balance_after": 402.4,
        },
    ),
)
BOX: tuple[Call, ...] = (
    (
        "get_booking",
        {"booking_id": "PX-71"},
        {"booking_id": "PX-71", "horse": "Juniper", "box_no": "115", "size": "small"},
    ),
    (
        "change_room",
        {"booking_id": "PX-71", "new_box": "327"},
        {
            "booking_id": "PX-71",
            "from": {"box_no": "115", "size": "small"},
            "to": {"box_no": "327", "size": "large"},
        },
    ),
)


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Juniper now leaves on 15 May.", "Juniper leaves on 12 May."),
        ("The balance was 318.40 and is 402.40 now.", "The balance stands at 318.40."),
    ],
)
def test_what_was_before_a_change(way: Way, right: str, wrong: str) -> None:
    calls = in_way(way, *STALL)
    assert wrong_in(right, *calls) == []
    assert wrong_in(wrong, *calls)


@pytest.mark.parametrize("way", WAYS)
def test_an_object_may_say_how_it_was(way: Way) -> None:
    calls = in_way(way, *BOX)
    assert wrong_in("I moved Juniper from box 115 to box 327.", *calls) == []
    assert wrong_in("You will find Juniper in box 115.", *calls)


def test_of_two_things_that_a_call_was_given_both_are_there_since() -> None:
    result = {"from": {"silo": "S-1", "tonnes": 41}, "to": {"silo": "S-2", "tonnes": 59}}
    moved: Call = ("move_stock", {"source_id": "S-1", "target_id": "S-2", "tonnes": 9}, result)
    assert wrong_in("Silo S-1 now holds 41 tonnes.", moved) == []
    assert wrong_in("Silo S-1 now holds 50 tonnes.", moved)


@pytest.mark.parametrize("way", WAYS)
def test_what_a_field_is_of(way: Way) -> None:
    value = {"horse": "Juniper", "currency": "EUR", "feed_left_kg": 84, "feed_per_day_kg": 6, "invoice_paid": False}
    source = Source("record 1", renamed(value, way))
    assert not ground("Juniper has 84 kg of feed left, enough for 14 days.", [source]).unsupported
    assert ground("Juniper has 84 kg of feed left, enough for 12 days.", [source]).unsupported
    assert ground("Juniper's invoice is paid.", [source]).unsupported


STAY = {
    "stall": "Oak 4",
    "horse": "Juniper",
    "price_per_week": {"value": 145.0, "cur": "EUR"},
    "surcharge": {"value": 12.0, "cur": "EUR", "per": "WEEK"},
    "total": {"value": 471.0, "cur": "EUR"},
}


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("Juniper's stall costs €145 a week.", "Juniper's stall costs €145 for the whole stay."),
        ("The surcharge is €12 a week.", "The surcharge is €12 in total."),
        ("The surcharge is €12 per week.", "The surcharge is €12 for the three weeks."),
        ("All in all that makes €471 in total.", "The stall costs €471 a week."),
    ],
)
def test_the_price_of_a_week_is_not_that_of_the_stay(right: str, wrong: str) -> None:
    source = Source("record 1", {"value": STAY})
    assert not ground(right, [source]).unsupported
    assert ground(wrong, [source]).unsupported


def test_a_difference_is_of_the_figures_before_it() -> None:
    lines = [{"name": "Oak", "total_eur": 576, "fee_eur": 215}, {"name": "Elm", "total_eur": 947, "fee_eur": 40}]
    source = Source("record 1", {"stalls": lines})
    said = "Oak comes to €576 and Elm to €947, a difference of €{}."
    assert not ground(said.format(371), [source]).unsupported
    assert ground(said.format(361), [source]).unsupported


def test_so_much_a_day_is_not_multiplied_with_things() -> None:
    value = {"days": 3, "daily_rate_eur": 15, "carts": [{"name": "Pony cart"}, {"name": "Hay cart"}]}
    source = Source("record 1", value)
    assert not ground("At €15 a day for 3 days that's €45.", [source]).unsupported
    assert ground("At €15 a day that's €30.", [source]).unsupported


def test_one_way_of_writing() -> None:
    assert [snake_name(one) for one in ("DueAt", "dueAt", "due_at", "ETAMinutes")] == [
        *["due_at"] * 3,
        "eta_minutes",
    ]
    assert snake_keys({"DueAt": [{"RoomNo": 1}]}) == {"due_at": [{"room_no": 1}]}

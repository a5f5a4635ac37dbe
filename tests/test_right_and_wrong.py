"""Rules of reading, each with a draft that is right and its twin that is wrong in one thing alone."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Status, Tool
from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.answers.grounding.past_words import is_past
from interlock.answers.requirements import CallSeen
from interlock.answers.statements import TurnRecords, check_statements, effects_of

GYM = {
    "city": "Leeds",
    "sessions": 3,
    "coaches": [
        {"coach": "Mira Stone", "fee_usd": 90, "indoor": True},
        {"coach": "Ben Okoro", "fee_usd": 75, "indoor": True},
        {"coach": "Ida Falk", "fee_usd": 60, "indoor": True},
        {"coach": "Tom Reyes", "fee_usd": 84, "indoor": False},
    ],
}
STORAGE = {"units": [{"bay": "Bay North", "price_day_usd": 30, "total_usd": 210},
                     {"bay": "Bay South", "price_day_usd": 22, "total_usd": 154}]}  # fmt: skip
SHIFT = {"shift": "Night Watch", "starts": "22:00", "ends": "06:30", "duration_min": 450}
TOOL_HIRE = {"item": "Chain Saw", "pickup_from": "09:00", "dropoff_until": "17:30"}
PARCEL = {"parcel": "P-77", "postage_usd": 12, "insurance_usd": 7, "total_usd": 48}
FLEET = [{"van": "Kestrel 2", "rate_usd": 60, "load_kg": 800}, {"truck": "Bison 9", "rate_usd": 95, "load_kg": 3200}]
LINES = {
    "lines": [
        {"line": "Red Arrow", "changes": 0, "minutes": 30},
        {"line": "Blue Arrow", "changes": 2, "minutes": 55},
        {"line": "Green Arrow", "changes": 0, "minutes": 25},
    ]
}
MILKING = {"parlour": "Studio Nine", "herds": [{"herd": "Alder", "cows": 9, "milking_min": 135, "wash_min": 43},
                                               {"herd": "Birch", "cows": 41, "milking_min": 190, "wash_min": 20}]}  # fmt: skip
TICKETS = {"count": 4, "tickets": [{"ticket": f"T-{n}", "late": n < 3} for n in (1, 2, 3, 4)]}


def held(draft: str, *values: Any) -> list[str]:
    sources = [Source(f"record {number}", {"value": value}) for number, value in enumerate(values, 1)]
    return [claim.text for claim in ground(draft, sources).unsupported]


@pytest.mark.parametrize(
    ("right", "wrong", "values"),
    [
        # What a list counts besides hides no field of the same figure.
        ("For three sessions I'd take Mira Stone: $90.", "For four sessions I'd take Mira Stone: $90.", [GYM]),
        # So much a day is not what it comes to in total.
        ("Bay North costs $30 a day, $210 in total.", "Bay North costs $210 a day, $30 in total.", [STORAGE]),
        # A row that says how long it lasts is believed, whatever lies between its ends.
        ("Night Watch lasts seven and a half hours.", "Night Watch lasts eight and a half hours.", [SHIFT]),
        # A field is named by its words, however they are joined.
        ("Pick-up is from 9:00, drop-off until 17:30.", "Pick-up is from 17:30, drop-off until 9:00.", [TOOL_HIRE]),
        # Cents of a currency that the field names are hundredths of it, and days may be written without spaces.
        ("It cost $618.70 on 21 December.", "It cost $61,870 on 21 December.", [{"total_usd_cents": 61870, "date": "21DEC26"}]),
        ("It cost $618.70 on 21 December.", "It cost $618.70 on 22 December.", [{"total_usd_cents": 61870, "date": "21DEC26"}]),
        # A part is not added to the total that it is in.
        ("P-77 costs $48 in total.", "P-77 costs $60 in total.", [PARCEL]),
        ("Postage and insurance come to $19 together.", "Postage and insurance come to $21 together.", [PARCEL]),
        # Things of two kinds side by side: by their names, and by what they are.
        ("Bison 9 costs $95.", "Bison 9 costs $60.", FLEET),
        ("The truck costs $95 and the van $60.", "The truck costs $60 and the van $95.", FLEET),
        ("The van takes 800 kg, the Bison 3,200 kg.", "The van takes 3,200 kg, the Bison 800 kg.", FLEET),
        # None of something, without a figure.
        ("Red Arrow runs direct.", "Blue Arrow runs direct.", [LINES]),
        ("Blue Arrow is slow. Two of the three are direct.", "Blue Arrow is slow. It is non-stop, too.", [LINES]),
        ("Two of them have no changes.", "Three of them have no changes.", [LINES]),
        ("Two thirds of the lines are direct.", "One third of the lines are direct.", [LINES]),
        # Whole and parts of a unit; after "about" to the part.
        ("Alder takes two and a quarter hours.", "Alder takes two and three quarter hours.", [MILKING]),
        ("Washing takes about three quarters of an hour for Alder.",
         "Washing takes about a quarter of an hour for Alder.", [MILKING]),
        # A number in words is no part of a name.
        ("Alder has nine cows, Birch forty-one.", "Alder has forty-one cows, Birch nine.", [MILKING]),
        # The count of a list is that of all its rows.
        ("There are four tickets.", "All four late tickets are ready.", [TICKETS]),
    ],
)  # fmt: skip
def test_the_right_one_leaves_and_its_twin_is_held(right: str, wrong: str, values: list[Any]) -> None:
    assert held(right, *values) == []
    assert held(wrong, *values)


def test_what_was_before_is_said_on_its_own_side_of_a_semicolon() -> None:
    text = "That leaves 30 out of 80; before that it was 34."
    said = [claim for claim in default_vocabulary().claims(text) if claim.number is not None]
    assert [is_past(text, claim) for claim in said] == [False, False, True]


def told(draft: str, status: Status | None = None, message: str = "", data: Any = None) -> list[str]:
    """What is held of what a draft says was done; a status is that of the one call that changes anything."""
    schema = {"type": "object", "properties": {"crate_id": {"type": "string"}}}
    tools = tuple(
        Tool.from_schema(name, lambda _given: None, schema=schema, effect=effect, says=says)
        for name, effect, says in (("find_crate", "read", ()), ("move_crate", "send", ("moved",)))
    )
    calls = [CallSeen(1, "find_crate", Status.OK, arguments={"crate_id": "C-4"})]
    if status is not None:
        calls.append(CallSeen(2, "move_crate", status, arguments={"crate_id": "C-4"}, changes=True, message=message))
    source = Source("record 1", {"value": data or {"crate_id": "C-4", "hall": "East"}}, tool="find_crate")
    turn = TurnRecords(tools, tuple(calls), effects_of(calls), (source,))
    return [one.why for one in check_statements(draft, turn) if not one.agrees]


@pytest.mark.parametrize(
    "invented",
    [
        "The crate is in East. I have checked Ana in already.",
        "I checked the two of them out for Friday.",
        "It is free, and I'm holding it for you until Friday evening.",
        "The shift was long, so I shortened it.",
    ],
)
def test_what_nobody_did_is_held(invented: str) -> None:
    assert told(invented)


@pytest.mark.parametrize(
    "said",
    [
        "I have checked the crate in the list.",
        "I have checked it out of interest.",
        "I have shortened the list for you.",
        "If you like, I can hold it for you until Friday.",
    ],
)
def test_what_only_sounds_like_it_is_not(said: str) -> None:
    assert told(said) == []


def test_why_a_call_came_to_nothing_is_told_in_its_own_words() -> None:
    message = "the crane's server refused the connection; nothing was moved"
    assert told("It failed: the crane's server refused the connection.", Status.FAILED, message) == []
    assert told("It failed at first, then the crate was moved.", Status.FAILED, message)


def test_a_system_that_stopped_answering_has_done_nothing() -> None:
    said = "The crane's system stopped answering, so I don't know whether it was moved."
    assert told(said, Status.UNKNOWN) == []
    assert told("The crane's system stopped answering, but the crate was moved.", Status.UNKNOWN)


def test_minutes_at_the_end_of_a_name_are_no_minimum() -> None:
    late = {"crate_id": "C-4", "delay_min": 20}
    assert told("It is delayed by 20 minutes.", data=late) == []
    assert told("It has been moved.", data=late)


def test_what_is_to_be_paid_is_not_paid() -> None:
    bill = {"crate_id": "C-4", "storage_usd": 40, "paid": False}
    assert held("$40, to be paid on collection.", bill) == told("$40, to be paid on collection.", data=bill) == []
    assert held("$40, paid on collection.", bill)

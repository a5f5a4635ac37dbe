"""What no call has done, or what came to nothing, is not told: neither as a deed nor as how things are now."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Status, Tool
from interlock.answers.grounding import Source, default_vocabulary, ground
from interlock.answers.requirements import CallSeen
from interlock.answers.staleness import asked_for, mark_stale
from interlock.answers.statements import TurnRecords, check_statements, effects_of

Call = tuple[str, Status, dict[str, Any], Any]
"""A tool, how the call ended, its arguments and its result."""


def made(name: str, effect: str, description: str, *arguments: str) -> Tool:
    schema = {"type": "object", "properties": {key: {} for key in arguments}}
    return Tool.from_schema(name, lambda _given: None, schema=schema, effect=effect, description=description)


TOOLS = (
    made("get_booking", "read", "Looks a booking of a guest up.", "booking_id"),
    made("list_rooms", "read", "Lists the rooms of the hotel.", "hotel"),
    made("reserve_room", "send", "Reserves a room for a booking.", "booking_id", "room", "arrival"),
    made("send_reminder", "send", "Sends a reminder to a guest.", "guest", "text"),
    made("assign_driver", "send", "Assigns a driver to a transfer.", "transfer_id", "driver"),
    made("order_linen", "send", "Orders linen from the laundry.", "item", "quantity"),
)
READS = {"get_booking", "list_rooms"}
BOOKING: Call = (
    "get_booking",
    Status.OK,
    {"booking_id": "BK-7"},
    {
        "booking_id": "BK-7",
        "guest": "Ines Brandt",
        "nights": 3,
        "room": None,
        "total_eur": 420,
        "transfer_id": "TR-2",
        "paid": False,
    },
)
ROOMS: Call = (
    "list_rooms",
    Status.OK,
    {"hotel": "Alte Post"},
    {
        "hotel": "Alte Post",
        "rooms": [{"room": "Lark", "beds": 2, "state": "free"}, {"room": "Heron", "beds": 1, "state": "free"}],
        "drivers": [
            {"driver": "Milo Kern", "van": "Green Van", "shift": "08:00"},
            {"driver": "Ute Sand", "van": "White Van", "shift": "14:00"},
        ],
    },
)
RESERVED: Call = (
    "reserve_room",
    Status.OK,
    {"booking_id": "BK-7", "room": "Lark", "arrival": "2025-06-12"},
    {"booking_id": "BK-7", "room": "Lark", "status": "reserved"},
)
REMINDED: Call = (
    "send_reminder",
    Status.OK,
    {"guest": "Ines Brandt", "text": "Your stay begins on 12 June."},
    {"guest": "Ines Brandt", "message_id": "M-31"},
)
DRIVER: Call = (
    "assign_driver",
    Status.OK,
    {"transfer_id": "TR-2", "driver": "Milo Kern"},
    {"transfer_id": "TR-2", "driver": "Milo Kern"},
)
ORDERED: Call = (
    "order_linen",
    Status.OK,
    {"item": "bath towel", "quantity": 40},
    {"order_id": "L-9", "item": "bath towel", "quantity": 40},
)
SECOND: Call = ("reserve_room", Status.FAILED, {"booking_id": "BK-8", "room": "Heron", "arrival": "2025-06-13"}, None)


def ended(call: Call, status: Status) -> Call:
    return (call[0], status, call[2], call[3] if status is Status.OK else None)


def wrong_in(draft: str, *calls: Call) -> list[str]:
    """What is held of a draft, by its figures and words or by what it says of deeds."""
    seen, sources = [], []
    for number, (name, status, arguments, result) in enumerate((BOOKING, ROOMS, *calls), 1):
        changes = name not in READS
        seen.append(CallSeen(number, name, status, arguments=arguments, changes=changes))
        if status is Status.OK:
            value = {"value": result, "made": arguments} if changes else {"value": result}
            sources.append(Source(f"record {number}", value, tool=name, about=arguments, trusted=True))
    turn = TurnRecords(TOOLS, tuple(seen), effects_of(seen), tuple(sources))
    said = [one.why for one in check_statements(draft, turn) if not one.agrees]
    known = [*mark_stale(sources, seen, default_vocabulary().words), *asked_for(seen)]
    return [*said, *(f"{claim.text}: {claim.why}" for claim in ground(draft, known).unsupported)]


INVENTED = [
    "The reminder is in the post.",
    "Consider it done.",
    "All set for Ines Brandt.",
    "Room Lark is yours.",
    "The Lark is hers now.",
    "I let Ines Brandt know.",
    "I let her know about the room.",
    "Ines Brandt has been told.",
    "Ines Brandt is aware of it now.",
    "A driver is on TR-2 now.",
    "Your seat is reserved now.",
    "The Lark is reserved.",
    "The Lark is blocked for BK-7.",
    "BK-7: room Lark, sorted.",
    "The towels are on order.",
    "The towels are ordered.",
    "Towels: ordered.",
    "The laundry has been told.",
    "40 towels are coming.",
    "The €420 has been taken.",
    "The €420 has been taken from her card.",
    "The deposit has been taken.",
    "Ines Brandt has received the reminder.",
    "Signed, sealed, delivered.",
    "It's a done deal.",
    "Sorted!",
    "Booked her in.",
    "Put her in the Lark.",
]
DENIED = [
    ("BK-7 has the Lark.", RESERVED),
    ("Ines Brandt has the Lark from 12 June.", RESERVED),
    ("The Lark is hers from 12 June.", RESERVED),
    ("The Lark goes to BK-7.", RESERVED),
    ("BK-7 is in the Lark.", RESERVED),
    ("BK-7 stays in the Lark on 12 June.", RESERVED),
    ("You have the Lark for 12 June.", RESERVED),
    ("The Lark on 12 June is taken care of.", RESERVED),
    ("12 June in the Lark it is, for BK-7.", RESERVED),
    ("The Lark is booked.", RESERVED),
    ("The Lark is occupied by BK-7.", RESERVED),
    ("Lark, 12 June, BK-7: all good.", RESERVED),
    ("TR-2 goes with Milo Kern.", DRIVER),
    ("Milo Kern drives TR-2.", DRIVER),
    ("TR-2 is with Milo Kern.", DRIVER),
    ("Milo Kern is on TR-2.", DRIVER),
    ("Milo Kern will drive TR-2.", DRIVER),
    ("Milo Kern picks up TR-2.", DRIVER),
    ("All good, TR-2 goes with Milo Kern.", DRIVER),
    ("The driver of TR-2 is Milo Kern.", DRIVER),
    ("Ines Brandt has received the reminder.", REMINDED),
    ("Ines Brandt knows that her stay begins on 12 June.", REMINDED),
    ("The reminder is in the post.", REMINDED),
    ("Ines Brandt has been reminded.", REMINDED),
    ("40 bath towels are on their way.", ORDERED),
    ("The laundry brings 40 bath towels.", ORDERED),
    ("40 bath towels are coming.", ORDERED),
    ("The laundry has the order for 40 bath towels.", ORDERED),
    ("40 bath towels are ordered.", ORDERED),
]
PARTLY: list[tuple[str, tuple[Call, ...]]] = [
    (
        "Both rooms are reserved.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "The Lark and the Heron are reserved.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "Rooms are reserved on both the 12th and the 13th.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "Neither of the rooms could be reserved.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "None of the rooms could be reserved.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "Neither room was reserved.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    ("I reserved the Lark, and told Ines Brandt.", (ended(RESERVED, Status.OK),)),
    ("The Lark is reserved, and I let Ines Brandt know.", (ended(RESERVED, Status.OK),)),
    ("The Lark is reserved and €420 has been taken from her card.", (ended(RESERVED, Status.OK),)),
    (
        "The Lark is reserved and Milo Kern drives TR-2.",
        (
            ended(RESERVED, Status.OK),
            ended(DRIVER, Status.DENIED),
        ),
    ),
    (
        "The Lark is reserved and Ines Brandt has received the reminder.",
        (
            ended(RESERVED, Status.OK),
            ended(REMINDED, Status.UNKNOWN),
        ),
    ),
    (
        "The Lark couldn't be reserved, but Ines Brandt has received the reminder.",
        (
            ended(RESERVED, Status.FAILED),
            ended(REMINDED, Status.UNKNOWN),
        ),
    ),
]
RIGHT: list[tuple[str, tuple[Call, ...]]] = [
    ("The Lark is free.", ()),
    ("Ines Brandt stays three nights.", ()),
    ("BK-7 has no room yet.", ()),
    ("The Lark has two beds.", ()),
    ("Milo Kern starts at 08:00 with the Green Van.", ()),
    ("I can reserve the Lark for BK-7.", ()),
    ("Shall I let Ines Brandt know?", ()),
    ("I have not let Ines Brandt know.", ()),
    ("BK-7 has 3 nights and is not paid.", ()),
    ("The total of BK-7 is €420.", ()),
    ("Ute Sand drives the White Van.", ()),
    ("Milo Kern has the Green Van.", ()),
    ("The Lark is reserved for BK-7.", (ended(RESERVED, Status.OK),)),
    ("BK-7 has the Lark.", (ended(RESERVED, Status.OK),)),
    ("BK-7 is in the Lark now.", (ended(RESERVED, Status.OK),)),
    ("Ines Brandt has the Lark from 12 June.", (ended(RESERVED, Status.OK),)),
    ("The Lark goes to BK-7.", (ended(RESERVED, Status.OK),)),
    ("TR-2 goes with Milo Kern.", (ended(DRIVER, Status.OK),)),
    ("Milo Kern drives TR-2.", (ended(DRIVER, Status.OK),)),
    ("TR-2 is with Milo Kern.", (ended(DRIVER, Status.OK),)),
    ("Milo Kern is on TR-2.", (ended(DRIVER, Status.OK),)),
    ("TR-2 does not go with Milo Kern: the call was denied.", (ended(DRIVER, Status.DENIED),)),
    ("Milo Kern could not be assigned to TR-2.", (ended(DRIVER, Status.FAILED),)),
    ("I was not allowed to give TR-2 to Milo Kern.", (ended(DRIVER, Status.DENIED),)),
    ("TR-2 has no driver; assigning Milo Kern was refused.", (ended(DRIVER, Status.DENIED),)),
    ("The reminder is out.", (ended(REMINDED, Status.OK),)),
    ("The reminder has been sent to Ines Brandt.", (ended(REMINDED, Status.OK),)),
    ("I don't know whether Ines Brandt has received the reminder.", (ended(REMINDED, Status.UNKNOWN),)),
    ("It is unclear whether the reminder was sent.", (ended(REMINDED, Status.UNKNOWN),)),
    ("40 bath towels are on order.", (ended(ORDERED, Status.OK),)),
    ("The towels are ordered.", (ended(ORDERED, Status.OK),)),
    (
        "The Lark is reserved; the Heron could not be.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "Only the Lark is reserved, not the Heron.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "The room for the 12th is reserved, the one for the 13th failed.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    (
        "The Heron for BK-8 failed.",
        (
            ended(RESERVED, Status.OK),
            SECOND,
        ),
    ),
    ("The Lark is reserved. Ines Brandt has not been told.", (ended(RESERVED, Status.OK),)),
    ("The Lark is free, but it could not be reserved for BK-7.", (ended(RESERVED, Status.FAILED),)),
    ("BK-7 is still without a room: the Lark could not be reserved.", (ended(RESERVED, Status.FAILED),)),
    ("The Lark is still free.", (ended(RESERVED, Status.FAILED),)),
    ("BK-7 is for 3 nights; reserving the Lark was refused.", (ended(RESERVED, Status.DENIED),)),
]


@pytest.mark.parametrize("draft", INVENTED)
def test_what_no_call_did_is_held(draft: str) -> None:
    assert wrong_in(draft)


@pytest.mark.parametrize("status", [Status.FAILED, Status.DENIED, Status.UNKNOWN])
@pytest.mark.parametrize(("draft", "call"), DENIED)
def test_what_came_to_nothing_is_held(draft: str, call: Call, status: Status) -> None:
    assert wrong_in(draft, ended(call, status))


@pytest.mark.parametrize(("draft", "calls"), PARTLY)
def test_what_was_done_in_part_is_not_told_as_done_in_whole(draft: str, calls: tuple[Call, ...]) -> None:
    assert wrong_in(draft, *calls)


@pytest.mark.parametrize(("draft", "calls"), RIGHT)
def test_what_was_done_may_be_told(draft: str, calls: tuple[Call, ...]) -> None:
    assert wrong_in(draft, *calls) == []

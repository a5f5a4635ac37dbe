"""What an answer tells of how things are, of what follows from a call, and of what others say, in words of deeds."""

from __future__ import annotations

from typing import Any

import pytest

from interlock import Status, Tool
from interlock.answers.grounding import Grounded, Source, default_vocabulary, ground
from interlock.answers.history import History
from interlock.answers.relevance import is_irrelevant
from interlock.answers.requirements import CallSeen
from interlock.answers.staleness import asked_for, mark_stale
from interlock.answers.statements import TurnRecords, check_statements, effects_of

Call = tuple[str, dict[str, Any], Any]
"""A tool, its arguments and its result; None where it found nothing."""
SAYS = {
    "book_pool": ("booked",),
    "send_letter": ("sent",),
    "pay_bill": ("paid",),
    "move_boat": ("moved",),
    "clean_room": ("cleaned", "done"),
    "log_weight": ("logged",),
    "assign_cabin": ("assigned",),
    "add_guest": ("added",),
    "reschedule_tour": ("rescheduled",),
}
KNOWN = {"course": {"C-4": "Pottery"}, "guest": {"G-2": "Ida Holm", "G-3": "Tom Berg"}}


def made_tool(name: str, arguments: dict[str, Any]) -> Tool:
    schema = {"type": "object", "properties": {key: {"type": "string"} for key in arguments}}
    effect, trust = "send" if name in SAYS else "read", "untrusted" if name == "read_letter" else "trusted"
    known = {key: values for key, values in KNOWN.items() if key in arguments}
    more: dict[str, Any] = {"says": SAYS.get(name, ()), "known_values": known, "trust": trust}
    return Tool.from_schema(name, lambda _given: None, schema=schema, effect=effect, **more)


def records_of(calls: tuple[Call, ...]) -> TurnRecords:
    seen, sources = [], []
    for number, (name, arguments, result) in enumerate(calls, 1):
        status = Status.NO_DATA if result is None else Status.OK
        seen.append(CallSeen(number, name, status, arguments=arguments, changes=name in SAYS))
        if result is not None:
            value = {"value": result, "made": arguments} if name in SAYS else {"value": result}
            trusted = name != "read_letter"
            sources.append(Source(f"record {number}", value, tool=name, about=arguments, trusted=trusted))
    called = {name: arguments for name, arguments, _result in calls}
    tools = tuple(made_tool(name, called.get(name, {})) for name in dict.fromkeys((*called, *SAYS)))
    return TurnRecords(tools, tuple(seen), effects_of(seen), tuple(sources))


def objections(draft: str, *calls: Call) -> list[str]:
    """What the records object to in what a draft says of deeds."""
    return [one.why for one in check_statements(draft, records_of(calls)) if not one.agrees]


def unsupported(draft: str, *calls: Call) -> list[str]:
    turn = records_of(calls)
    known = [*mark_stale(turn.sources, turn.calls, default_vocabulary().words), *asked_for(turn.calls)]
    return [f"{claim.text}: {claim.why}" for claim in ground(draft, known).unsupported]


POOLS: Call = (
    "list_pools",
    {"day": "2026-07-04"},
    {"pools": [{"pool": "Lagoon", "placesLeft": 0}, {"pool": "Terrace", "placesLeft": 4}]},
)
ROOMS: Call = (
    "list_rooms",
    {},
    {"rooms": [{"room": "Juniper suite", "state": "done"}, {"room": "Cedar suite", "state": "inProgress"}]},
)
LEVY: Call = ("get_stay", {"stay_id": "S-5"}, {"stay_id": "S-5", "levy_eur": 12.5, "confirmed": True})
RENTS: Call = ("list_rents", {}, {"rents": [{"date": "2026-03-02", "tenant": "Orla Finch", "amount": 640}]})
LETTER: Call = ("read_letter", {}, {"from": "Orla Finch", "text": "My boat was moved and my deposit sent back."})
CABIN: Call = (
    "assign_cabin",
    {"cabin_id": "CB-2", "guest_id": "G-2"},
    {"cabin_id": "CB-2", "cabin": "Heron cabin", "guest": "Ida Holm"},
)


def plan(kg: int) -> Call:
    return ("get_feed_plan", {"plan_id": "FP-7"}, {"plan_id": "FP-7", "horse": "Bramble", "kg": kg})


WEIGHED: Call = ("log_weight", {"horse_id": "H-9", "kg": 512}, {"horse_id": "H-9", "kg": 512})


@pytest.mark.parametrize(
    ("right", "wrong", "call"),
    [
        ("The Lagoon is booked out.", "The Terrace is booked out.", POOLS),
        ("The Lagoon, for one, is fully booked.", "The Terrace is fully booked.", POOLS),
        ("- Juniper suite, done\n- Cedar suite, in progress", "- Juniper suite, done\n- Cedar suite, done", ROOMS),
        ("Only the Juniper suite is finished so far.", "Only the Cedar suite is finished so far.", ROOMS),
        ("It's marked as confirmed.", "It's marked as cancelled.", LEVY),
        ("It's marked as confirmed.", "It has been marked as confirmed.", LEVY),
        ("A levy of €12.50 is on the books.", "A voucher of €12.50 is on the books.", LEVY),
        ("The last payment went out on 2 March.", "The payment just went out.", RENTS),
        ("You were paid once, on 2 March.", "You have been paid.", RENTS),
    ],
)
def test_how_a_thing_is_may_be_told_by_a_word_of_a_deed(right: str, wrong: str, call: Call) -> None:
    assert objections(right, call) == []
    assert objections(wrong, call) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("She writes that the boat was moved.", "The boat was moved, as you asked."),
        ("She says the boat was moved and the deposit returned.", "The boat was moved and the deposit returned."),
        ("She claims her deposit was paid back.", "She wrote to us, and I have paid the deposit back."),
        ("Orla Finch wants the boat moved.", "Orla Finch wants that, so the boat was moved."),
        ("The woman who wrote in (Orla Finch) hopes the boat was moved.", "It was me who moved the boat."),
    ],
)
def test_what_somebody_writes_is_no_claim_of_ours(right: str, wrong: str) -> None:
    assert objections(right, LETTER) == []
    assert objections(wrong, LETTER) != []


def test_nobody_has_written_anything_where_there_is_no_letter() -> None:
    assert objections("She writes that the pool has been booked.", POOLS) != []


@pytest.mark.parametrize(
    ("right", "wrong"),
    [
        ("No berth by that name turned up.", "I turned up the heating."),
        ("It's done about 40 thousand miles.", "It's done."),
        ("That is dearer than she was told.", "She was told by letter that it has been moved."),
        ("Two of them are in the harbour right now.", "Your boat is in the harbour now."),
    ],
)
def test_words_that_tell_of_no_deed(right: str, wrong: str) -> None:
    assert objections(right, LEVY) == []
    assert objections(wrong, LEVY) != []


def test_what_reads_otherwise_after_a_call_was_corrected() -> None:
    assert objections("FP-7 has been adjusted.", plan(40), WEIGHED, plan(44)) == []
    assert objections("FP-7 has been adjusted.", plan(40), WEIGHED, plan(40)) != []
    assert objections("FP-7 has been adjusted.", plan(40), plan(44)) != []
    assert objections("I have adjusted FP-7.", plan(40), WEIGHED, plan(44)) != [], "no call of ours did that"


def test_that_is_registered_is_said_of_what_was_done() -> None:
    assert objections("That's registered – the Heron cabin.", CABIN) == []
    assert objections("That's registered – the Otter lodge.", CABIN) != []
    assert objections("That's registered – the Heron cabin.", LEVY) != []


def test_when_something_was_moved_says_nothing_of_what() -> None:
    tour: Call = ("reschedule_tour", {"tour_id": "TR-1", "day": "2026-05-09"}, {"tour_id": "TR-1"})
    assert objections("Moved from Thursday the 7th to Saturday the 9th.", tour) == []
    assert objections("Paid on Saturday the 9th.", tour) != []


def test_a_thing_that_a_call_was_given_by_its_id_is_read_by_its_name() -> None:
    course: Call = ("get_course", {"course": "C-4"}, {"course": "Pottery", "date": "2026-05-09"})
    added: Call = ("add_guest", {"course": "C-4", "guest": "G-2"}, {"course": "Pottery", "guest": "Ida Holm"})
    assert objections("I've added Ida Holm to the course on 9 May.", course, added) == []
    assert objections("I've added Tom Berg to the course on 9 May.", course, added) != []


def test_what_was_held_back_was_not_done() -> None:
    seen = CallSeen(1, "send_letter", Status.PLANNED, arguments={"to": "Orla"}, changes=True)
    turn = TurnRecords((made_tool("send_letter", {"to": ""}),), (seen,), effects_of([seen]))
    assert all(one.agrees for one in check_statements("I've drafted it, but held it back.", turn))
    sent = CallSeen(1, "send_letter", Status.OK, arguments={"to": "Orla"}, changes=True)
    turn = TurnRecords((made_tool("send_letter", {"to": ""}),), (sent,), effects_of([sent]))
    assert not all(one.agrees for one in check_statements("I've drafted it, but held it back.", turn))


BILL: Call = ("get_bill", {"bill_id": "B-12"}, {"bill_id": "B-12", "guest": "Ida Holm", "paid": False})
SETTLED: Call = ("get_bill", {"bill_id": "B-12"}, {"bill_id": "B-12", "guest": "Ida Holm", "paid": True})
FIRES: Call = (
    "list_fires",
    {},
    {
        "region": "North Fells",
        "rows": [{"fire": "Ash Gill", "status": "resolved"}, {"fire": "Low Moor", "status": "spreading"}],
    },
)
OUT: Call = ("list_fires", {}, {"region": "North Fells", "rows": [{"fire": "Ash Gill", "status": "resolved"}]})


def fees(status: str) -> Call:
    return ("get_fees", {"berth": "B4"}, {"berth": "B4", "status": status})


def test_what_is_still_to_be_so_is_not() -> None:
    assert unsupported("B-12 is still to be paid.", BILL) == []
    assert unsupported("B-12 is still to be paid.", SETTLED) != []


def test_what_is_so_in_part_is_on_neither_side() -> None:
    assert unsupported("The rest of B4 is outstanding.", fees("partly_paid")) == []
    assert unsupported("The rest of B4 is outstanding.", fees("paid")) != []


def test_of_things_in_several_states_one_may_be_as_it_is_said() -> None:
    assert unsupported("A fire is still going on in North Fells.", FIRES) == []
    assert unsupported("A fire is still going on in North Fells.", OUT) != []
    assert unsupported("Ash Gill is still going on.", FIRES) != []


def test_she_is_not_the_one_that_she_was_compared_with() -> None:
    mares: Call = (
        "list_mares",
        {},
        {"mares": [{"name": "Bramble", "kg": 520, "insured": True}, {"name": "Clover", "kg": 480, "insured": False}]},
    )
    assert unsupported("Bramble is heavier, at 520 kg against Clover's 480 kg. She is insured.", mares) == []
    assert unsupported("Clover is lighter, at 480 kg against Bramble's 520 kg. She is insured.", mares) != []


def test_that_nothing_was_found_rests_on_a_search_that_found_nothing() -> None:
    calls: tuple[Call, ...] = (LETTER, ("find_berth", {"name": "Kittiwake"}, None))
    turn = records_of(calls)
    history = History("t", calls=turn.calls, sources=turn.sources)
    question = "Is there a berth called Kittiwake in our harbour?"

    def irrelevant(draft: str, known: TurnRecords = turn) -> bool:
        return is_irrelevant(draft, question, Grounded(), history, (), check_statements(draft, known))

    assert not irrelevant("I couldn't find Kittiwake in our harbour.")
    assert irrelevant("Kittiwake is in our harbour, but I couldn't find how long.")
    assert irrelevant("Kittiwake is in our harbour.")


BOOKING: Call = ("get_booking", {"booking": "B-7"}, {"booking": "B-7", "guest": "Ida Holm", "status": "confirmed"})
OPEN: Call = ("get_booking", {"booking": "B-8"}, {"booking": "B-8", "guest": "Tom Berg", "status": "requested"})
POSTED: Call = (
    "send_letter",
    {"letter_id": "L-5", "to": "Ida Holm"},
    {"letter_id": "L-5", "sent_on": "2026-07-15", "expected": "2026-07-18"},
)
CLUB: Call = ("get_letter", {"letter_id": "L-5"}, {"letter_id": "L-5", "guest": "Ida Holm", "written": "2026-06-30"})
VISIT: Call = ("get_visit", {"visit": "V-1"}, {"visit": "V-1", "day": "2026-07-20"})


def test_a_booking_that_its_row_calls_confirmed_is_confirmed() -> None:
    assert objections("The booking is confirmed.", BOOKING) == []
    assert objections("The booking is confirmed.", OPEN)


def test_the_day_that_a_call_returned_is_of_the_call() -> None:
    assert objections("I sent Ida the letter on 15 July.", CLUB, VISIT, POSTED) == []
    assert objections("I sent Ida the letter of 20 July.", CLUB, VISIT, POSTED)

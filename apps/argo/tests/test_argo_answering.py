"""How Argo answers without writing: statements, what is asked for, what surely answers, and what goes on from before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from argo_testing import LocalWeb, OpenArgo
from interlock import Status
from interlock.answers import Answers, TurnResult, TurnStatus, run_turn
from interlock.models import Reply, Request
from interlock_argo.answering.asked import read_question
from interlock_argo.answering.days import latest_day
from interlock_argo.answering.follow_ups import resolve
from interlock_argo.answering.planning import compose_plan, split_question
from interlock_argo.answering.quotes import Quotes, split_sides
from interlock_argo.answering.ranking import Candidate
from interlock_argo.answering.reader import Reader
from interlock_argo.answering.said_of_you import forgotten_words, is_told, told_fact
from interlock_argo.answering.statements import split_statements
from interlock_argo.reading.readable import read_rows

NOTES = """# House

The boiler was serviced on 12 March 2024 by Petra Lindqvist. It needs a service every two years.

## Costs

| What | Price |
|------|-------|
| Boiler service | 180 EUR |
| Chimney sweep | 65 EUR |

Things that are broken:
- the hinge of the cellar door
- the lamp in the attic,
  which flickers

The tariff begins in
15. The meter is read in May.
"""


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (NOTES.partition("##")[0], ["The boiler was serviced on 12 March 2024 by Petra Lindqvist.", "It needs a"]),
        (
            NOTES.partition("## Costs")[2],
            ["What: Boiler service; Price: 180 EUR", "What: Chimney sweep; Price: 65 EUR"],
        ),
        ("Rent: 720 EUR\nDeposit: two months", ["Rent: 720 EUR", "Deposit: two months"]),
        ("> Dear all,\n> the hall opens\n> at nine.", ["Dear all, the hall opens at nine."]),
        ("See par. 4. Ask Dr. Amin first.", ["See par. 4.", "Ask Dr. Amin first."]),
        ("begins in the year\n15. The meter is read.", ["begins in the year 15.", "The meter is read."]),
        ("1. Chop it\n2. Fry it", ["Chop it", "Fry it"]),
        ("**2024-03-16** Peas sown.", ["2024-03-16 Peas sown."]),
    ],
)
def test_a_text_is_made_of_statements_as_they_stand_there(text: str, said: list[str]) -> None:
    found = [one.text for one in split_statements(text)]
    assert [one[: len(wanted)] for one, wanted in zip(found, said, strict=False)] == said


def test_a_statement_knows_what_it_stands_under() -> None:
    found = {one.text: one.under for one in split_statements(NOTES, "Home")}
    assert found["the hinge of the cellar door"] == "Home > Costs > Things that are broken"
    assert found["What: Boiler service; Price: 180 EUR"] == "Home > Costs"


def test_a_table_in_a_file_is_read_row_by_row() -> None:
    found = read_rows(b"day;reading_kwh;note\n2024-01-01;120;\n2024-02-01;180;cold\n")
    assert found.text == "day: 2024-01-01; reading kwh: 120\n\nday: 2024-02-01; reading kwh: 180; note: cold"


@pytest.mark.parametrize(
    ("question", "kind"),
    [
        ("When was the boiler serviced?", "date"),
        ("how much does the chimney sweep cost", "money"),
        ("what time does the hall open?", "time"),
        ("how old is Petra", "age"),
        ("how many jars are left?", "number"),
        ("who serviced the boiler", "person"),
        ("what did it cost altogether?", "total"),
        ("phone number of the plumber", "phone"),
    ],
)
def test_what_kind_of_value_a_question_asks_for(question: str, kind: str) -> None:
    assert [one.name for one in read_question(question).kinds] == [kind]


def test_the_words_of_a_question_are_those_that_say_what_it_is_about() -> None:
    terms = {term.word: term.is_name for term in read_question("wich invoice of Lindqvist was paid?").terms}
    assert terms == {"Lindqvist": True, "invoice": False, "paid": False}
    dated = read_question("the meter on 1 February 2024?").terms
    assert [term.word for term in dated] == ["2024-02-01", "meter"]


def test_the_latest_day_of_a_text() -> None:
    assert latest_day("from 3 May 2023 until 2024-02-01, then 7.1.2024") == (2024, 2, 1)
    assert latest_day("in the spring of 2024") is None


def choose(question: str, *texts: str, earlier: tuple[str, ...] = ()) -> tuple[bool, list[str]]:
    candidates = [
        Candidate(text=text, under="", said_by=f"note {place}", source=f"{place}.md", chunk=str(place), trust="trusted")
        for place, text in enumerate(texts)
    ]
    found = Quotes().choose(resolve(question, earlier), candidates)
    return found.is_sure, [one.text for one in found.picks]


ALPS, FJORD = "The hut in the Alps costs 40 EUR a night.", "The cabin at the fjord costs 95 EUR a night."
PAID = "We paid the deposit for the hut on 3 May."


def test_what_fits_is_quoted_and_what_only_resembles_is_the_nearest() -> None:
    assert choose("what does the cabin at the fjord cost a night?", ALPS, FJORD, PAID) == (True, [FJORD])
    sure, nearest = choose("what does the chalet in Zermatt cost a night?", ALPS, FJORD, PAID)
    assert not sure
    assert len(nearest) == 1
    assert choose("who was the first person on the moon?", ALPS, FJORD, PAID) == (False, [])


def test_a_kind_that_a_statement_does_not_have_is_not_answered_by_it() -> None:
    assert choose("when did we pay the deposit for the hut?", ALPS, PAID) == (True, [PAID])
    assert not choose("who paid for the hut?", "the hut was paid for in may")[0]


def test_that_a_code_was_changed_does_not_say_it() -> None:
    changed, said = "The boathouse code was changed on 1 September 2025; ask Pip.", "The boathouse code is 4711."
    assert not choose("What is the boathouse code?", changed)[0]
    assert choose("What is the boathouse code?", changed, said) == (True, [said])


def test_what_goes_on_with_another_thing_is_not_answered_by_the_one_before() -> None:
    pear, plum = "The pear tree is a Concorde, planted in 2019.", "The plum tree is a Victoria, planted in 2021."
    earlier = ("When was the pear tree planted?",)
    assert not choose("and the plum tree?", pear, earlier=earlier)[0]
    assert choose("and the plum tree?", pear, plum, earlier=earlier) == (True, [plum])


def test_two_things_are_compared_by_a_statement_for_each() -> None:
    sure, picks = choose("what costs more a night, the hut in the Alps or the cabin at the fjord?", ALPS, FJORD, PAID)
    assert sure
    assert set(picks) == {ALPS, FJORD}
    assert [len(split_sides(read_question(text))) for text in ("is it red or blue", "is it red")] == [2, 1]


def test_what_is_asked_for_now_is_what_was_said_last() -> None:
    old, new = "On 2 March 2024 the rate was 30 EUR.", "On 5 June 2024 the rate was 36 EUR."
    assert choose("what is the rate now?", old, new) == (True, [new])


@pytest.mark.parametrize(
    ("said", "earlier", "question", "about"),
    [
        ("and the cabin?", ("what does the hut cost?",), "and the cabin?", "what does the hut cost?"),
        ("are you sure?", ("what does the hut cost?",), "what does the hut cost?", ""),
        ("who says so?", ("what does the hut cost?",), "what does the hut cost?", ""),
        ("Which tyre does the red bicycle need?", ("what does the hut cost?",), None, ""),
        ("what am i allergic to?", ("remember that I am allergic to nuts",), None, ""),
        ("and in 2023?", ("plum harvest in 2024?", "are you sure?"), "and in 2023?", "plum harvest in 2024?"),
    ],
)
def test_what_goes_on_from_an_earlier_question(
    said: str, earlier: tuple[str, ...], question: str | None, about: str
) -> None:
    meant = resolve(said, earlier)
    assert (meant.question, meant.about) == (question or said, about)


def test_the_other_one_is_not_the_one_that_was_quoted() -> None:
    first = choose("what does a night cost?", ALPS, FJORD)[1][0]
    assert choose("and the other one?", ALPS, FJORD, earlier=("what does a night cost?",))[1][0] != first


@pytest.mark.parametrize(
    ("said", "fact"),
    [
        ("Remember that I am allergic to nuts.", "I am allergic to nuts."),
        ("hey, could you please keep in mind that my sister is Ines", "my sister is Ines"),
        ("pls remember: my locker is 23", "my locker is 23"),
        ("FYI I moved to Bergen", "I moved to Bergen"),
    ],
)
def test_what_is_remembered_is_said_in_the_users_words(said: str, fact: str) -> None:
    assert told_fact(said) == fact
    assert is_told(said)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("forget it", ""),
        ("please forget what I just told you", ""),
        ("Forget that I am allergic to nuts", "I am allergic to nuts"),
        ("ok, delete the note about my locker", "my locker"),
    ],
)
def test_what_is_forgotten_is_found_by_its_words(said: str, words: str) -> None:
    assert forgotten_words(said) == words


def test_a_plan_is_made_of_the_questions_parts() -> None:
    question = "How long is the River Oskelda, where does it rise, and into which water does it empty?"
    assert split_question(question) == [
        "How long is the River Oskelda",
        "where does River Oskelda rise",
        "into which water does River Oskelda empty",
    ]
    assert compose_plan("Who owns it?") == "<plan>\n1. Who owns it?\n</plan>"


class Silent:
    """A model that has nothing to say: what is answered here is quoted."""

    name = "silent"
    instructable = False

    async def reply(self, request: Request) -> Reply:
        return Reply(final=True)

    async def close(self) -> None: ...


class Talk:
    """A conversation with Argo and the model that reads for it."""

    def __init__(self, argo: OpenArgo, *, searches: bool = False) -> None:
        self._argo, self._session = argo, Answers(argo.runtime).session("talk")
        self._model = Reader(Silent(), searches=searches)

    async def say(self, text: str, **details: Any) -> TurnResult:
        async with self._session.turn(text, agent=self._argo.app.agents[0], **details) as turn:
            return await run_turn(turn, self._model)


@pytest.fixture
async def talk(argo: OpenArgo, tmp_path: Path) -> Talk:
    (tmp_path / "house.md").write_text(NOTES)
    taken = await argo.call("ingest_file", {"path": str(tmp_path / "house.md"), "trusted": True}, actor="you")
    assert taken.ok, taken.summary
    return Talk(argo)


async def test_notes_are_quoted_with_their_source_and_what_is_not_there_is_said(talk: Talk) -> None:
    found = await talk.say("when was the boiler serviced?")
    assert found.status is TurnStatus.VERIFIED
    assert "According to House: The boiler was serviced on 12 March 2024" in found.answer
    again = await talk.say("are you sure?")
    assert "12 March 2024" in again.answer
    price = await talk.say("and how much was that?")
    assert "180 EUR" in price.answer
    missing = await talk.say("what does the gardener Oduya cost?")
    assert missing.status is TurnStatus.TOOL_FAILED
    assert missing.answer.startswith("There is nothing on file for this.")


async def test_what_the_user_says_of_themselves_is_remembered_found_and_forgotten(talk: Talk) -> None:
    told = await talk.say("Remember that I am allergic to nuts")
    assert (told.status, "Done: remember" in told.answer) == (TurnStatus.VERIFIED, True)
    assert "You told me: I am allergic to nuts" in (await talk.say("what am I allergic to?")).answer
    gone = await talk.say("forget that I am allergic to nuts")
    assert (gone.status, "Done: forget" in gone.answer) == (TurnStatus.VERIFIED, True), gone.answer
    assert "nuts" not in (await talk.say("what am I allergic to?")).answer
    nothing = await talk.say("forget it")
    assert nothing.status is TurnStatus.TOOL_FAILED
    assert "You have not told me anything" in nothing.answer


async def test_nobody_forgets_what_the_user_did_not_say(argo: OpenArgo) -> None:
    await argo.call("remember", {"text": "my locker is 23"}, question="Remember that my locker is 23")
    refused = await argo.call("forget", {"text": "my locker"}, question="Which locker is mine?")
    assert refused.status is Status.DENIED
    done = await argo.call("forget", {"text": "my locker is 23"}, question="Forget that my locker is 23")
    assert done.ok, done.summary


async def test_the_web_is_read_where_it_is_asked_for_or_the_notes_say_nothing(argo: OpenArgo, web: LocalWeb) -> None:
    talk = Talk(argo, searches=True)
    found = await talk.say("How long is the Tamar Bridge?")
    assert (found.status, "642 metres" in found.answer) == (TurnStatus.VERIFIED, True), found.answer
    assert any(path.startswith("/search") for path in web.asked)
    page = await talk.say(f"When was the old tunnel closed, according to {web.address}/tunnel?")
    assert "1998" in page.answer
    nothing = await talk.say("Search the web for the salary of the harbour master of Quell")
    assert nothing.status is not TurnStatus.VERIFIED
    asked = len(web.asked)
    offline = await talk.say("Without the internet: who designed the Brandt lighthouse?")
    assert (offline.status, len(web.asked)) == (TurnStatus.TOOL_FAILED, asked)

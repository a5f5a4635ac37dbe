"""What the standard weights find on a small labelled set, and what is said where they are not installed."""

from __future__ import annotations

import logging
import sys
from pathlib import Path

import pytest

from interlock.embedding import minilm
from interlock.memory import Memory
from tests.memory_parts import note, texts

LABELLED = {
    "The boiler was serviced in March; the next check is due in a year.": ["when does the heating need maintenance"],
    "Aunt Rosa is allergic to peanuts and cashews.": ["which relative cannot eat nuts", "Rosa allergy"],
    "The spare key hangs behind the meter box in the cellar.": ["how do I get in if I lock myself out", "spare key"],
    "Our flight to Lisbon leaves on 12 May at 06:40 from gate B.": ["what time do we depart for Portugal"],
    "Leo's school starts at 8:15 and ends at 13:00.": ["when are the child's lessons over", "Leo school"],
    "The car passed its inspection; the winter tyres are worn.": ["condition of the vehicle", "winter tyres"],
    "Dr. Meier said to take the tablets with food, twice a day.": ["how often should I take my medicine"],
    "Wifi password is on the sticker under the router.": ["how to connect to the internet at home"],
    "The lease ends in September unless we renew by June.": ["until when do we have to extend the rental contract"],
    "Sourdough: 500 g flour, 350 g water, 100 g starter, 10 g salt.": ["bread recipe", "how much starter"],
    "The cat needs her vaccination booster every three years.": ["pet immunisation schedule"],
    "Invoice 2024-118 from the plumber is still unpaid.": ["which bill is open", "invoice 2024-118"],
    "Grandfather's watch is at the repair shop in Main Street.": ["where is the timepiece being fixed"],
    "The garden hose leaks at the coupling; buy a new seal.": ["what should I purchase for the yard"],
    "Team meeting moved from Monday to Wednesday, 10 o'clock.": ["new day of the weekly call"],
    "Our bank changed the fee for foreign payments to 1.5 percent.": ["cost of a transfer abroad"],
    "The hike around the lake takes five hours with breaks.": ["how long is the walk"],
    "Nina prefers tea without milk.": ["what does Nina like to drink"],
    "Passport of Tom expires on 3 August 2027.": ["travel document validity", "Tom passport"],
    "The solar panels made 4.2 MWh last year.": ["how much electricity did the roof generate"],
}
DISTRACTORS = [
    f"Chapter {n}: notes on topic {n}, with some remarks about item {n * 7} and place {n * 3}." for n in range(80)
]


async def test_notes_are_found_by_questions_in_other_words(tmp_path: Path) -> None:
    """Recall at five of both together is at least that of words alone, and nearly whole."""
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}") as memory:
        await memory.ingest_many([note(text) for text in (*LABELLED, *DISTRACTORS)])
        pairs = [(query, text) for text, queries in LABELLED.items() for query in queries]
        first = five = 0
        for query, text in pairs:
            found = await texts(memory, query, top_k=5)
            first += found[:1] == [text]
            five += text in found
        assert five / len(pairs) >= 0.95, five
        assert first / len(pairs) >= 0.8, first
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}", embedder=None) as words:
        alone = sum([text in await texts(words, query, top_k=5) for query, text in pairs])
    assert alone < five


async def test_what_has_nothing_to_do_with_anything_finds_little(tmp_path: Path) -> None:
    async with Memory.open(f"sqlite:///{tmp_path / 'm.db'}") as memory:
        await memory.ingest_many([note(text) for text in LABELLED])
        assert len((await memory.search("quantum chromodynamics lattice gauge", top_k=50)).hits) <= 3


async def test_without_the_extra_it_goes_by_words_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(minilm, "_PACKAGE", "no_such_package")
    with caplog.at_level(logging.WARNING, logger="interlock"):
        memory = Memory.open(f"sqlite:///{tmp_path / 'm.db'}")
    assert "found by words alone: sentence vectors need the extra 'memory'" in caplog.text
    async with memory:
        landed = await memory.ingest(note("Aunt Rosa is allergic to peanuts."))
        assert not landed.embedded
        result = await memory.search("allergic aunt")
        assert [hit.by for hit in result.hits] == [("words",)]
        assert "need the extra 'memory'" in result.note
        assert (await memory.state()).vectors == "none"


def test_words_alone_load_no_numpy(tmp_path: Path) -> None:
    import subprocess

    code = (
        "import asyncio, sys\nfrom interlock.memory import Document, Memory\n"
        "async def main():\n"
        f"    async with Memory.open('sqlite:///{tmp_path}/m.db', embedder=None) as memory:\n"
        "        await memory.ingest(Document(text='one two', source='s'))\n"
        "        assert len((await memory.search('two')).hits) == 1\n"
        "asyncio.run(main())\n"
        "assert not {'numpy', 'onnxruntime', 'interlock.answers', 'interlock.engine'} & set(sys.modules)\n"
    )
    ended = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
    assert (ended.returncode, ended.stderr) == (0, "")

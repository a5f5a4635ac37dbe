"""Each result of a turn is read once: the next draft asks what was read, and a change marks it, without reading again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from interlock import Runtime, tool
from interlock.answers import Again, Agent, Answers, Intent, TurnResult
from interlock.answers.grounding import Source, default_vocabulary, ground, kept_evidence
from interlock.answers.grounding.evidence import Fact
from interlock.answers.grounding.kept_evidence import KeptEvidence
from interlock.answers.grounding.reading import SourceReading, read_source
from interlock.config import TextLimits
from interlock.models import Proposal
from interlock.policy import parse_policy

POLICY = 'version = 1\n[[rule]]\nid = "open"\ntools = ["*"]\ndecision = "allow"\n'
WORDS = default_vocabulary()
LIMIT = 100_000
ROWS = {"value": {"trails": [{"id": "north-1", "acres": 41, "open": True}, {"id": "south-2", "acres": 77.5}]}}


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The ids of the sources that are read, as they are read."""
    found: list[str] = []

    def count(source: Source, *more: Any) -> SourceReading:
        found.append(source.id)
        return read_source(source, *more)

    monkeypatch.setattr(kept_evidence, "read_source", count)
    return found


def shown(facts: tuple[Fact, ...]) -> list[object]:
    """Facts as values: a place is another object each time that a source is read."""
    return [(fact.place.path, str(replace(fact, place=None))) for fact in facts]


def look(kept: KeptEvidence, *sources: Source, limit: int = LIMIT) -> list[object]:
    evidence = kept.read(sources, WORDS, limit)
    return [evidence.cut, *shown(evidence.facts)]


async def test_a_second_draft_of_a_turn_does_not_read_the_results_again(reads: list[str]) -> None:
    @tool(effect="read")
    async def count_trees(trail: str) -> dict[str, Any]:
        """Count the trees of a trail."""
        return {"trail": trail, "trees": 412 if trail == "north" else 95}

    agent = Agent(
        name="trails",
        tools=("count_trees",),
        intents=(Intent(name="trees", requires="count_trees", keywords=("trees",)),),
        semantic=False,
    )
    async with (
        Runtime.open("memory://", policy=parse_policy(POLICY), tools=[count_trees]) as runtime,
        Answers(runtime).turn("how many trees are there?", agent=agent) as turn,
    ):
        await turn.propose([Proposal("count_trees", {"trail": name}, name) for name in ("north", "south")])
        assert isinstance(await turn.finish("The north trail has 999 trees."), Again)
        first = [name for name in reads if name.startswith("record")]
        await turn.facts()
        result = await turn.finish("The north trail has 412 trees.")
    assert isinstance(result, TurnResult)
    assert result.verified
    assert first
    assert [name for name in reads if name.startswith("record")] == first
    assert reads.count("question") == 1


def test_only_what_is_new_is_read(reads: list[str]) -> None:
    kept, one, two = KeptEvidence(), Source("record 1", ROWS), Source("record 2", {"value": {"acres": 9}})
    look(kept, one)
    assert look(kept, one, two) == look(KeptEvidence(), one, two)
    assert reads == ["record 1", "record 2", "record 1", "record 2"]


def test_a_change_marks_what_was_read_before_it_without_reading_it_again(reads: list[str]) -> None:
    kept, source = KeptEvidence(), Source("record 1", ROWS)
    look(kept, source)
    for stale, names in ((("acres",), ("north 1",)), (("acres",), ()), (("*",), ())):
        marked = replace(source, stale=stale, stale_names=names)
        found = kept.read([marked], WORDS, LIMIT).facts
        assert reads == ["record 1"]
        old = {
            (str(fact.number), fact.stale) for fact in found if fact.place.name == "acres" and fact.number is not None
        }
        assert old == {("41", True), ("77.5", names == ())}
    assert not any(fact.stale for fact in kept.read([source], WORDS, LIMIT).facts)
    assert reads == ["record 1"]


def test_values_that_are_equal_and_not_the_same_are_read_anew() -> None:
    kept = KeptEvidence()
    for value in (1, True, 1.0):
        source = Source("record 1", {"value": value})
        assert look(kept, source) == look(KeptEvidence(), source)


def test_a_result_over_the_limit_is_cut_where_it_was_before(reads: list[str]) -> None:
    sources = [
        Source(f"record {number}", {"value": {"text": "Seven of 12. " * 40, "n": number}}) for number in range(4)
    ]
    for limit in (0, 30, 600, 1_100, LIMIT):
        kept = KeptEvidence()
        first = look(kept, *sources, limit=limit)
        before = len(reads)
        assert look(kept, *sources, limit=limit) == first
        assert len(reads) == before
        assert first == look(KeptEvidence(), *sources, limit=limit)
        assert first[0] is (limit < LIMIT)


def test_what_is_kept_is_no_more_than_the_last_two_looks(reads: list[str]) -> None:
    kept, sources = KeptEvidence(), [Source(f"record {number}", {"value": number}) for number in range(4)]
    for source in sources:
        look(kept, source)
    look(kept, sources[3])
    look(kept, sources[0])
    assert reads == ["record 0", "record 1", "record 2", "record 3", "record 0"]


def test_what_a_draft_asks_of_all_facts_is_worked_out_once() -> None:
    kept, sources = KeptEvidence(), [Source("record 1", ROWS)]
    made: list[int] = []

    def count(facts: object) -> int:
        made.append(1)
        return len(made)

    facts = kept.read(sources, WORDS, LIMIT).facts
    assert ground("North-1 has 41 acres.", sources, WORDS, TextLimits(max_evidence_chars=LIMIT), None, kept).claims
    again = kept.read(sources, WORDS, LIMIT).facts
    assert again is facts
    assert facts.once(count) == again.once(count) == 1

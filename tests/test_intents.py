"""Intents: whole words, paraphrases by meaning, unsure means required; held-out questions of four domains."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from interlock.answers.intents import Classifier, Intent
from interlock.answers.intents.classify import _AND
from interlock.answers.intents.features import features
from interlock.answers.intents.keywords import hits, split_words
from interlock.answers.requirements import leaves
from interlock.embedding import minilm as embedding_module
from interlock.embedding.wordpiece import WordPiece, words
from interlock.errors import ConfigError
from tests.growth import LINEAR, growth

sys.path.insert(0, str(Path(__file__).parent.parent / "benchmarks"))
import intents as measured

DAMAGE = Intent(name="damage", requires="classify_damage", keywords=("damage", "burned", "washed out"))
CLOSURE = Intent(name="closure", requires="evaluate_closure", keywords=("closure", "closed", "open"))
PRIORITY = Intent(name="priority", requires="prioritize_trails", keywords=("priority", "first"), weight=0.9)


def tools(found: Any) -> list[str]:
    return [leaf.tool for leaf in leaves(found.requirement)]


@pytest.mark.parametrize(
    "text", ["Which trails burned?", "this hiking machinery in Chico burned", "helpful burned map"]
)
def test_words_inside_words_do_not_count(text: str) -> None:
    assert tools(Classifier([DAMAGE, CLOSURE], semantic=False).classify(text)) == ["classify_damage"]


@pytest.mark.parametrize(
    "text", ["hi", "Thanks a lot!", "who are you?", "Hello there, good morning", "ok, got it, bye"]
)
def test_conversation_needs_nothing(text: str) -> None:
    found = Classifier([DAMAGE], semantic=False).classify(text)
    assert (found.chat, found.by, tools(found)) == (True, "phrases", [])
    # Also of an agent that has a default and no intents.
    assert Classifier([], default="classify_damage").classify(text).chat


@pytest.mark.parametrize("text", ["help", "Thanks, help!", "hello help"])
def test_a_phrase_of_conversation_that_is_a_word_of_the_agents_is_a_question(text: str) -> None:
    desk = Intent(name="tickets", requires="open_ticket", keywords=("help",))
    assert Classifier([DAMAGE], semantic=False).classify(text).chat
    assert tools(Classifier([desk], semantic=False).classify(text)) == ["open_ticket"]


def test_several_hold_weights_count_and_what_is_unknown_is_required() -> None:
    sorter = Classifier([DAMAGE, CLOSURE, PRIORITY], semantic=False)
    assert tools(sorter.classify("is the damage a reason for closure?")) == ["classify_damage", "evaluate_closure"]
    assert tools(sorter.classify("which closed trail comes first?")) == ["evaluate_closure"]  # 1.0 against 0.9
    unsure = sorter.classify("tell me about the weather up there")
    assert (unsure.by, set(tools(unsure))) == ("default", {"classify_damage", "evaluate_closure", "prioritize_trails"})
    named = Classifier([DAMAGE], default="classify_damage", semantic=False)
    assert tools(named.classify("what about the weather up there?")) == ["classify_damage"]


def test_phrases_are_found_as_a_whole() -> None:
    assert hits(("washed out",), split_words("The bridge is WASHED OUT.")) == ("washed out",)
    assert hits(("washed out",), split_words("washed and out")) == ()


def test_without_the_weights_keywords_decide_and_it_is_said(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(embedding_module, "_PACKAGE", "no_such_package")
    with_examples = Intent(name="damage", requires="classify_damage", keywords=("damage",), examples=("is it broken?",))
    other = Intent(name="closure", requires="evaluate_closure", keywords=("closure",), examples=("may I go there?",))
    with caplog.at_level(logging.WARNING, logger="interlock"):
        sorter = Classifier([with_examples, other])
    assert sorter.head is None
    assert "by keywords alone" in caplog.text
    assert "interlock[intents]" in caplog.text
    assert sorter.classify("any damage?").by == "keywords"


def test_a_pattern_is_sure_before_anything_else_is_looked_at() -> None:
    page = Intent(name="page", requires="web_access", pattern=r"^read https?://\S+$")
    sorter = Classifier([DAMAGE, page], semantic=False)
    sure = sorter.classify("READ https://trails.example/damage")
    assert (sure.by, tools(sure), sure.clear) == ("pattern", ["web_access"], True)
    assert sorter.classify("what does https://trails.example say of the damage?").by == "keywords"


@pytest.mark.parametrize(
    ("pattern", "why"),
    [("(", "is no regular expression"), ("(a+)+b", "repeats something inside of another repetition")],
)
def test_a_pattern_that_cannot_be_used_is_refused(pattern: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        Intent(name="page", requires="web_access", pattern=pattern)


def test_names_must_differ() -> None:
    with pytest.raises(ConfigError, match="different names"):
        Classifier([DAMAGE, DAMAGE], semantic=False)


def test_pieces_of_words() -> None:
    assert words("Café déjà-vu 42%") == ["cafe", "deja", "-", "vu", "42", "%"]
    pieces = WordPiece()
    assert pieces.encode("hello")[0] == 101
    assert pieces.encode("hello")[-1] == 102
    assert len(pieces.encode("word " * 500)) == 128
    assert pieces.encode("x" * 200) == [101, 100, 102]


@pytest.fixture
def no_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Heads are trained anew."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))


def test_the_head_is_trained_once_and_kept(tmp_path: Path, no_cache: None) -> None:
    broken = Intent(
        name="broken", requires="a", examples=("what is broken?", "which bridges are gone?", "list the damage")
    )
    shut = Intent(name="shut", requires="b", examples=("is it open?", "may people go in?", "should we shut it?"))
    first = Classifier([broken, shut])
    kept = list(tmp_path.rglob("*.npz"))
    assert len(kept) == 1
    text = "has the footbridge been destroyed?"
    assert first.classify(text) == Classifier([broken, shut]).classify(text)
    kept[0].write_bytes(b"not what was written")
    assert Classifier([broken, shut]).classify(text) == first.classify(text)
    assert set(tools(first.classify(text))) <= {"a", "b"}
    assert first.head is not None
    assert first.head.labels == ("broken", "shut")  # conversation is none of its classes


def test_no_held_out_question_is_in_the_training_data() -> None:
    for domain in measured.DOMAINS:
        seen = {e.strip().lower() for several in measured.agents(domain).values() for i in several for e in i.examples}
        held_out = [row["q"].strip().lower() for row in measured.questions(domain)]
        assert len(held_out) >= 150
        assert not set(held_out) & seen


@pytest.mark.slow
def test_held_out_questions_are_sorted_right() -> None:
    """Over all four domains: no question passes for conversation, and the right tool is required."""
    total: Counter[str] = Counter()
    for domain in measured.DOMAINS:
        total += measured.measure(domain, "both")
    assert total["through"] == 0
    assert total["right"] / total["needs"] >= 0.93


@pytest.mark.parametrize("part", ["a", "a-", "a_", "ab.", "@", "   ", ", and ", "perimiter ", "q1: "])
def test_four_times_the_question_takes_about_four_times_as_long(part: str) -> None:
    """A word of 16,000 letters took nine seconds."""
    words_of, pieces = Classifier([CLOSURE], semantic=False), WordPiece()

    def read(size: int) -> None:
        text = part * (size // len(part))
        features(text)
        words_of.classify(text)
        pieces.encode(text)
        _AND.split(" ".join(text.split()))

    assert growth(read, 5000) < LINEAR


def test_a_long_text_is_held_against_the_head_a_few_times_only() -> None:
    asked: list[str] = []
    classifier = taught(CLOSURE, examples=20, likely={"closure": 0.9, "other": 0.1}, asked=asked)
    for text in (" and ".join(f"show me closure {n}" for n in range(700)), "show me it and " * 700):
        asked.clear()
        assert classifier.classify(text).intents == ("closure",)
        assert len(asked) < 10


STOCK = Intent(
    name="stock",
    requires="read_stock",
    keywords=("stock", "on hand", "how many"),
    examples=("do we still have pallets?",),
)
LOW = Intent(name="low", requires="read_low", keywords=("running low", "low"))
SHIP = Intent(name="ship", requires="ship", keywords=("ship", "send"))
TRAIL = Intent(
    name="closure",
    requires="evaluate_closure",
    keywords=("closure", "reopen"),
    examples=("may my scouts hike there on Saturday?",),
)


def test_one_example_of_one_intent_silences_no_keyword(no_cache: None) -> None:
    """Every question of an agent needed its default, or the one intent that had an example."""
    sorter = Classifier([STOCK, LOW, SHIP])
    assert sorter.head is None  # with one class it would say that of everything
    for text, name in (
        ("stock", "stock"),
        ("How many M8 bolts are in stock?", "stock"),
        ("What is running low?", "low"),
        ("ship it", "ship"),
        ("Please send 3 pallets", "ship"),
        ("Ship a Euro pallet to ACME", "ship"),
    ):
        found = sorter.classify(text)
        assert (found.intents, found.by, found.score) == ((name,), "keywords", 1.0), text
    assert set(tools(sorter.classify("do we still have pallets?"))) == {"read_stock", "read_low", "ship"}
    taught_two = Classifier([STOCK, LOW, msgspec.structs.replace(SHIP, examples=("put two boxes on the truck",))])
    assert taught_two.head is not None
    assert taught_two.classify("do we still have pallets?").intents == ("stock",)
    assert Classifier([TRAIL]).classify("Is there a closure?").intents == ("closure",)


def taught(*intents: Intent, examples: int, likely: dict[str, float], asked: list[str] | None = None) -> Classifier:
    """A classifier whose first intent has so many examples, and whose head always says the same."""

    class Head:
        def probabilities(self, text: str) -> dict[str, float]:
            if asked is not None:
                asked.append(text)
            return likely

    first, *others = intents
    made = [msgspec.structs.replace(first, examples=tuple(f"example {n}" for n in range(examples))), *others]
    classifier = Classifier(made, semantic=False)
    classifier.head = Head()  # type: ignore[assignment]
    return classifier


@pytest.mark.parametrize(
    ("examples", "likely", "text", "names", "score"),
    [
        (10, {"stock": 0.9, "other": 0.1}, "ship it", ("stock", "ship"), 0.5),  # it asks, or both are needed
        (10, {"stock": 0.7, "other": 0.3}, "ship it", ("ship",), 1.0),  # the head is not clear
        (10, {"stock": 0.1, "other": 0.9}, "ship it", ("ship",), 1.0),  # it knows nothing of shipping
        (10, {"stock": 0.9, "other": 0.1}, "ship what is in stock", ("stock", "ship"), 1.0),  # they agree
        (10, {"stock": 0.1, "other": 0.9}, "the stock", ("stock",), 1.0),  # the head is at a loss
        (9, {"stock": 0.9, "other": 0.1}, "ship it", ("ship",), 1.0),  # too few examples to overrule anything
        (9, {"stock": 0.9, "other": 0.1}, "are there any?", ("stock",), 0.9),  # no keyword: the head may say
        (10, {"stock": 0.2, "other": 0.8}, "are there any?", (), 0.2),
    ],
)
def test_the_head_speaks_only_about_what_it_was_taught(
    examples: int, likely: dict[str, float], text: str, names: tuple[str, ...], score: float
) -> None:
    found = taught(STOCK, LOW, SHIP, examples=examples, likely=likely).classify(text)
    assert (found.intents, found.score) == (names, score)


def test_loading_the_embedder_leaves_no_telemetry_behind(tmp_path: Path) -> None:
    home = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "HOME": str(tmp_path)}
    code = "from interlock.embedding import MiniLm; MiniLm()"
    subprocess.run([sys.executable, "-c", code], env=home, check=True, timeout=60)
    assert list(tmp_path.rglob("*")) == []

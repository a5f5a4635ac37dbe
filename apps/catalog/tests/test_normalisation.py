"""Names, vocabulary, contracts and normalisation: pure, total, idempotent, and exactly as write_backup down."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_testing import clean_families
from interlock_catalog.contracts import KINDS, Exercise, find_violations
from interlock_catalog.naming import (
    build_exercise_id,
    is_one_sided,
    join_name,
    name_words,
    split_name,
    title_case,
    variant_key,
)
from interlock_catalog.normalise import FamilyFacts, family_facts, normalise
from interlock_catalog.seed import build_clean_catalog
from interlock_catalog.vocabulary import KINDS as WORDS
from interlock_catalog.vocabulary import canonical_word, equipment_from_name, equipment_name, ordered_words, slug, words
from plant import plant_faults

GOLDEN = Path(__file__).with_name("golden")
BENCH = FamilyFacts("Bench Press", True)


def exercise(**changes: Any) -> dict[str, Any]:
    return {**clean_families("bench-press")["exercise:bench-press-bench-press-barbell"], **changes}


@pytest.mark.parametrize("kind", WORDS)
def test_every_spelling_leads_to_one_word(kind: str) -> None:
    for word in ordered_words(kind):
        assert canonical_word(kind, word) == word
        assert canonical_word(kind, word.upper().replace("-", " ")) == word
        assert slug(word.replace("_", "-")) == word.replace("_", "-")
    assert canonical_word(kind, "no such thing") is None
    assert canonical_word(kind, 7) is None
    assert words(kind) == frozenset(ordered_words(kind))


def test_equipment_in_names_and_back() -> None:
    for word in ordered_words("equipment"):
        assert equipment_from_name(equipment_name(word)) == word
    assert equipment_name("ez-bar") == "EZ Bar"


@pytest.mark.parametrize(
    ("name", "parts"),
    [
        ("Row (Barbell)", ("Row", "Barbell")),
        ("Row", ("Row", None)),
        ("  Row   Wide ( EZ Bar )", ("Row Wide", "EZ Bar")),
        ("Row (a) (b)", ("Row (a)", "b")),
        ("(Barbell)", ("(Barbell)", None)),
    ],
)
def test_names_come_apart(name: str, parts: tuple[str, str | None]) -> None:
    assert split_name(name) == parts


@pytest.mark.parametrize(
    ("given_name", "made"),
    [("bench press", "Bench Press"), ("  CLOSE grip  bench. ", "Close Grip Bench"), ("JM press", "JM Press"),
     ("push-up with clap", "Push-Up with Clap"), ("t-bar row", "T-Bar Row"), ("deadlift 180 kg", "Deadlift 180 kg"),
     ("curl 5 x 5 kg", "Curl 5 x 5 kg"), ("Kniebeuge mit  Langhantel", "Kniebeuge mit Langhantel"),
     ("Flexión de brazos", "Flexión de brazos"), ("développé couché", "développé couché"), ("懸垂 pull-up", "懸垂 pull-up")],
)  # fmt: skip
def test_titles(given_name: str, made: str) -> None:
    assert title_case(given_name) == made


def test_names_that_mean_the_same_have_the_same_words() -> None:
    assert set(name_words("Barbell Bench Press")) == set(name_words("Bench Presses (Barbell)"))
    assert name_words("DB Row") == ("dumbbell", "row")
    assert name_words("High to Low Fly") != name_words("Low to High Fly")
    assert is_one_sided("Single-Arm Row")
    assert not is_one_sided("Arm Circle")


def test_ids_and_variants() -> None:
    assert build_exercise_id("row", "Row (Barbell)") == "row-row-barbell"
    assert len(build_exercise_id("x" * 100, "y" * 100)) <= 128
    assert variant_key("Incline Bench Press", "Bench Press", "barbell") == "variant:incline"
    assert variant_key("Bench Press", "Bench Press", "barbell") == "equipment:barbell"
    assert join_name("Row", None) == "Row"


def test_the_clean_catalog_holds_its_contracts() -> None:
    docs = build_clean_catalog()
    wrong = {
        key: found
        for key, doc in docs.items()
        if key.split(":")[0] in KINDS and (found := find_violations(key.split(":")[0], doc))
    }
    assert wrong == {}
    kinds = [key.split(":")[0] for key in docs]
    assert kinds.count("exercise") >= 400
    assert kinds.count("family") >= 60


@pytest.mark.parametrize(
    ("change", "field", "code"),
    [
        ({"name_slug": "x"}, "name_slug", "slug"),
        ({"name": "Bench Press (Dumbbell)", "name_slug": "bench-press-dumbbell"}, "name", "qualifier"),
        ({"equipment": []}, "equipment", "invalid"),
        ({"equipment": ["barbel"]}, "equipment", "invalid"),
        ({"description": "short"}, "description", "invalid"),
        (
            {"description": "TODO: something that is long enough to be a description of it"},
            "description",
            "placeholder",
        ),
        ({"description": "<b>Bold</b> words that are long enough to be a description of it"}, "description", "markup"),
        ({"execution_notes": ["Lift.", "lift. "]}, "execution_notes", "doubled"),
        ({"status": "merged"}, "merged_into", "merge"),
        ({"merged_into": "x"}, "merged_into", "merge"),
        ({"metadata": {"level": "beginner", "plane_of_motion": "sagittal"}}, "metadata.unilateral", "missing"),
        ({"metadata": {"level": 1, "plane_of_motion": "sagittal", "unilateral": False}}, "metadata.level", "invalid"),
        ({"colour": "red"}, "colour", "unknown_field"),
        ({"variant_key": "v2/x"}, "variant_key", "invalid"),
        ({"muscles": "all"}, "muscles", "invalid"),
    ],
)
def test_a_breach_is_named_by_its_field(change: dict[str, Any], field: str, code: str) -> None:
    assert (field, code) in {(fault.field, fault.code) for fault in find_violations("exercise", exercise(**change))}


@pytest.mark.parametrize(
    ("change", "code"),
    [
        ({"contribution": {"pectorals": 0.5, "triceps": 0.2, "front-delts": 0.2}}, "sum"),
        ({"contribution": {"pectorals": 1.0}}, "muscles"),
        ({"category": ["legs"]}, "derived"),
        ({"secondary": ["pectorals", "triceps"]}, "doubled"),
    ],
)
def test_muscles_hang_together(change: dict[str, Any], code: str) -> None:
    doc = exercise()
    doc["muscles"] = {**doc["muscles"], **change}
    assert code in {fault.code for fault in find_violations("exercise", doc)}


@pytest.mark.parametrize(
    ("primary", "secondary", "fields"),
    [
        (["hamstrings", "hamstrings"], [], ["muscles.primary"]),
        (["hamstrings"], ["abs", "abs"], ["muscles.secondary"]),
        (["hamstrings"], ["hamstrings"], ["muscles.secondary"]),
    ],
)
def test_a_muscle_that_comes_twice_is_named_where_it_is(
    primary: list[str], secondary: list[str], fields: list[str]
) -> None:
    doc = exercise()
    doc["muscles"] = {**doc["muscles"], "primary": primary, "secondary": secondary}
    assert [found.field for found in find_violations("exercise", doc) if found.code == "doubled"] == fields


def test_an_alias_has_one_target() -> None:
    assert find_violations("alias", {"alias_slug": "a", "exercise_id": "x"}) == ()
    assert [f.code for f in find_violations("alias", {"alias_slug": "a"})] == ["target"]
    assert [f.code for f in find_violations("alias", {"alias_slug": "a", "exercise_id": "x", "family_slug": "y"})] == [
        "target"
    ]
    assert find_violations("exercise", "nothing") != ()
    assert Exercise.model_validate(exercise()).name == "Bench Press (Barbell)"


@pytest.mark.parametrize("file", sorted(GOLDEN.glob("normalise-*.json")), ids=lambda file: file.stem)
def test_golden_normalisation(file: Path) -> None:
    """What normalisation makes of messy records, to the letter; write_backup once by hand and kept."""
    golden = json.loads(file.read_text())
    facts = FamilyFacts(golden["family"]["base_name"], golden["family"]["qualified"])
    for case in golden["cases"]:
        doc = {**exercise(), **case["given"]}
        made = normalise(doc, facts)
        assert {key: made.doc.get(key) for key in case["becomes"]} == case["becomes"], case["name"]
        assert sorted({correction.field for correction in made.corrections}) == sorted(case["fields"]), case["name"]


@pytest.mark.parametrize(
    ("name", "made", "what"),
    [
        ("Incline Bench Press", "Incline Bench Press (Barbell)", ["Name (Equipment)"]),
        ("bench press (barbell)", "Bench Press (Barbell)", ["capitals"]),
        ("Bench  Press (Barbell).", "Bench Press (Barbell)", ["single spaces"]),
        ("barbell  bench press", "Bench Press (Barbell)", ["Name (Equipment)", "capitals", "single spaces"]),
    ],
)
def test_a_new_name_says_what_was_changed(name: str, made: str, what: list[str]) -> None:
    (why,) = [item.why for item in normalise(exercise(name=name), BENCH).corrections if item.field == "name"]
    assert why.startswith(f"{name!r} is written {made!r}: ")
    assert [word for word in ("Name (Equipment)", "capitals", "single spaces") if word in why] == what


def test_a_name_without_equipment_gets_none() -> None:
    bare = exercise(id="b", name="pull-up", name_slug="pull-up", equipment=[])
    made = normalise(bare, family_facts(None, [bare, exercise(), exercise(equipment=["dumbbell"])]))
    assert (made.doc["name"], made.doc["name_slug"]) == ("Pull-Up", "pull-up")


def held_facts(aliases: dict[str, Any], *others: dict[str, Any]) -> FamilyFacts:
    barbell = exercise(id="a", name="bench press", name_slug="bench-press")
    members = [barbell, exercise(id="b", equipment=["dumbbell"], name_slug="bench-press-dumbbell"), *others]
    return family_facts({"base_name": "Bench Press"}, members, aliases)


@pytest.mark.parametrize(
    ("facts", "becomes"),
    [
        (held_facts({}), "Bench Press (Barbell)"),
        (held_facts({"bench-press": {"alias_slug": "bench-press", "exercise_id": "a"}}), "Bench Press (Barbell)"),
        (held_facts({"bench-press": {"alias_slug": "bench-press", "family_slug": "bench-press"}}), "Bench Press"),
        (held_facts({"bench-press": {"alias_slug": "bench-press", "exercise_id": "b"}}), "Bench Press"),
        (held_facts({}, exercise(id="c", name="Bench-Press", name_slug="bench-press")), "Bench Press"),
    ],
)
def test_a_slug_that_leads_elsewhere_as_well_is_not_given_up(facts: FamilyFacts, becomes: str) -> None:
    """It could not become an alias, so that nobody would find the exercise by its old name any more."""
    made = normalise(exercise(id="a", name="bench press", name_slug="bench-press"), facts).doc
    assert (made["name"], made["name_slug"]) == (becomes, slug(becomes))


def test_what_is_merged_is_left_as_it_is() -> None:
    gone = exercise(status="merged", merged_into="x", name="odd   name")
    assert normalise(gone, BENCH).doc == gone


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.floats(allow_nan=False, allow_infinity=False, width=16)
    | st.text(max_size=12) | st.sampled_from(["Bench press (DB)", "ez_bar", "Quads", "expert", "<b>x</b>", "barbell"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
FIELDS = sorted({*Exercise.model_fields, "coaching_cues", "tips", "odd"})


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=6), st.booleans())
def test_normalisation_is_total_and_idempotent(change: dict[str, Any], qualified: bool) -> None:
    doc = exercise(**change)
    before = copy.deepcopy(doc)
    facts = FamilyFacts("Bench Press", qualified)
    once = normalise(doc, facts)
    assert doc == before
    again = normalise(once.doc, facts)
    assert again.doc == once.doc
    assert again.corrections == ()
    had = {(fault.field, fault.code) for fault in find_violations("exercise", doc)}
    new = [fault for fault in find_violations("exercise", once.doc) if (fault.field, fault.code) not in had]
    allowed = ("execution_notes", "name", "name_slug", "variant_key", "muscles", "equipment", "stimulus_tags")
    assert all(
        fault.field.split(".")[0]
        in (*allowed, "common_mistakes", "suitability_notes", "programming_use_cases", "description")
        for fault in new
    )


def test_planted_spelling_faults_are_put_right_exactly() -> None:
    clean = build_clean_catalog()
    planted = plant_faults(clean)
    docs = planted.docs
    members: dict[str, list[Any]] = {}
    for key, doc in docs.items():
        if key.startswith("exercise:"):
            members.setdefault(doc["family_slug"], []).append(doc)
    checked = 0
    for fault in planted.faults:
        if fault.needs != "checks" or not fault.target.startswith("exercise:") or fault.merged_into:
            continue
        facts = family_facts(docs[f"family:{fault.family}"], members[fault.family])
        assert normalise(docs[fault.target], facts).doc == clean[fault.target], fault
        checked += 1
    assert checked >= 100

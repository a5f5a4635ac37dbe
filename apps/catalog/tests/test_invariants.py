"""What may never come out of a change: the invariants, asked of the tools on both databases; and who may do what."""

from __future__ import annotations

import asyncio
import tomllib
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from catalog_testing import PRESS, clean_families, fill_catalog, prepare_home, read_catalog
from interlock import Outcome, Runtime
from interlock_catalog.app import POLICY, AppContext, open_app
from interlock_catalog.backends import Write
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.backends.planned import PlannedView, planning
from interlock_catalog.changes import build_alias, content_digest
from interlock_catalog.checks.issues import FIELDS
from interlock_catalog.document_keys import alias_key, exercise_key
from interlock_catalog.pipeline.execute import SERVICE
from interlock_catalog.settings import Loaded

ROW = "t-bar-row-t-bar-row-landmine"
DUMBBELL = "bench-press-bench-press-dumbbell"


@pytest.fixture
async def loaded(tmp_path: Path, backend_url: str) -> Loaded:
    made = prepare_home(tmp_path / "home", backend=backend_url)
    await fill_catalog(made, clean_families("bench-press", "t-bar-row"))
    return made


@pytest.fixture
async def app(loaded: Loaded) -> AsyncIterator[AppContext]:
    async with open_app(loaded) as found:
        yield found


def patch(field: str, before: Any, after: Any) -> dict[str, Any]:
    return {"field": field, "before": before, "after": after, "justification": "a test", "evidence": "test:case"}


async def upsert(runtime: Runtime, exercise: str, *changes: dict[str, Any], **details: Any) -> Outcome:
    family = details.pop("family", "bench-press")
    more = {"actor": "person", "mode": "apply", "run": "r", "evidence": ("test:case",), "confidence": 0.97, **details}
    arguments = {"exercise_id": exercise, "family_slug": family, "changes": list(changes), "justification": "a test"}
    return await runtime.call("upsert_exercise", arguments, **more)


async def call(runtime: Runtime, tool: str, arguments: dict[str, Any], **details: Any) -> Outcome:
    more = {
        "actor": "librarian",
        "mode": "apply",
        "run": "r",
        "evidence": ("test:case",),
        "confidence": 0.97,
        **details,
    }
    return await runtime.call(tool, {**arguments, "justification": "a test"}, **more)


def why(outcome: Outcome) -> str:
    assert outcome.status.value == "denied", outcome
    assert outcome.verdict is not None
    return f"{outcome.verdict.rule}: {outcome.verdict.reason}"


async def test_a_field_is_set_and_read_back(app: AppContext, loaded: Loaded) -> None:
    before = (await read_catalog(loaded))[f"exercise:{PRESS}"]["stimulus_tags"]
    outcome = await upsert(app.runtime, PRESS, patch("stimulus_tags", before, ["power"]))
    assert outcome.ok
    assert (await read_catalog(loaded))[f"exercise:{PRESS}"]["stimulus_tags"] == ["power"]


@pytest.mark.parametrize(
    ("field", "after", "said"),
    [
        ("id", "x", "not a field that may be set"),
        ("status", "approved", "not a field that may be set"),
        ("description", "too short", "description"),
        ("equipment", ["barbel"], "equipment"),
        ("muscles.contribution", {"pectorals": 2.0}, "muscles.contribution"),
        ("name", "Incline Bench Press (Barbell)", "name_slug"),
        ("family_slug", "nowhere", "no family 'nowhere'"),
        ("category", None, "category"),
    ],
)
async def test_a_wrong_value_is_refused(app: AppContext, loaded: Loaded, field: str, after: Any, said: str) -> None:
    doc = (await read_catalog(loaded))[f"exercise:{PRESS}"]
    before: Any = doc
    for part in field.split("."):
        before = before.get(part)
    outcome = await upsert(app.runtime, PRESS, patch(field, before, after))
    assert why(outcome).startswith("invariant: ")
    assert said in why(outcome)
    assert (await read_catalog(loaded))[f"exercise:{PRESS}"] == doc


async def test_a_change_that_rests_on_an_old_value_is_refused(app: AppContext) -> None:
    outcome = await upsert(app.runtime, PRESS, patch("category", "isolation", "compound"))
    assert "not what the change was decided on" in why(outcome)


async def test_a_slug_is_unique_and_no_alias_stands_in_its_way(app: AppContext) -> None:
    taken = [
        patch("name", "Bench Press (Barbell)", "Incline Bench Press (Barbell)"),
        patch("name_slug", "bench-press-barbell", "incline-bench-press-barbell"),
    ]
    outcome = await upsert(app.runtime, PRESS, *taken)
    assert "has the name slug 'incline-bench-press-barbell' already" in why(outcome)


async def test_a_change_that_does_not_touch_the_name_is_not_judged_by_a_namesake(
    app: AppContext, loaded: Loaded
) -> None:
    docs = await read_catalog(loaded)
    doc = docs[f"exercise:{PRESS}"]
    backend = DatabaseBackend(loaded.settings.backend)
    await backend.fill({"exercise:came-with-it": {**doc, "id": "came-with-it"}})
    await backend.close()
    outcome = await upsert(app.runtime, PRESS, patch("equipment", doc["equipment"], ["barbell"]))
    assert outcome.ok, outcome
    other = [
        patch("name", doc["name"], "Decline Bench Press (Barbell)"),
        patch("name_slug", doc["name_slug"], "incline-bench-press-barbell"),
    ]
    assert "already" in why(await upsert(app.runtime, PRESS, *other))


async def test_what_is_planned_is_seen_in_its_own_task_and_nothing_is_written_on_it(app: AppContext) -> None:
    view = PlannedView(app.backend)
    press, new = exercise_key(PRESS), alias_key("big-press")
    real = (await app.backend.read_many([press]))[press]
    slug, renamed = real.value["name_slug"], {**real.value, "name_slug": "big-press"}
    with planning() as planned:
        planned |= {press: renamed, new: build_alias("big-press", exercise_id=PRESS), alias_key("gone"): None}
        assert (await view.read_many([press, new, alias_key("gone")])).keys() == {new, press}
        assert (await view.read_many([press]))[press].version == real.version
        assert press not in await view.find_by_name([slug])
        assert press in await view.find_by_name(["big-press"])
        assert new in await view.aliases_of([PRESS])
        assert (await view.exercises(family="bench-press"))[press].value == renamed
        assert press in await asyncio.create_task(view.find_by_name(["big-press"]))
        with pytest.raises(RuntimeError, match="only planned"):
            await view.write(Write("upsert_exercise", {press: renamed}))
    assert (await view.read_many([press, new])) == {press: real}
    assert press in await view.find_by_name([slug])


async def test_a_name_says_the_equipment_where_the_family_has_several(app: AppContext) -> None:
    bare = [
        patch("name", "Bench Press (Barbell)", "Bench Pressing"),
        patch("name_slug", "bench-press-barbell", "bench-pressing"),
    ]
    assert "several equipments" in why(await upsert(app.runtime, PRESS, *bare))


async def test_an_exercise_is_changed_under_the_lease_of_its_own_family(app: AppContext) -> None:
    outcome = await upsert(app.runtime, ROW, patch("category", "compound", "isolation"))
    assert "is of family 't-bar-row', not 'bench-press'" in why(outcome)


async def test_a_new_exercise_is_a_whole_draft(app: AppContext, loaded: Loaded) -> None:
    thin = [patch("name", None, "Odd Bench Press (Barbell)")]
    assert "invariant" in why(await upsert(app.runtime, "bench-press-odd-bench-press-barbell", *thin))
    model = (await read_catalog(loaded))[f"exercise:{PRESS}"]
    fields = ["equipment", "category", "description", "execution_notes", "common_mistakes", "suitability_notes",
              "programming_use_cases", "stimulus_tags"]  # fmt: skip
    whole = [
        patch("name", None, "Odd Bench Press (Barbell)"),
        patch("name_slug", None, "odd-bench-press-barbell"),
        patch("family_slug", None, "bench-press"),
        patch("variant_key", None, "variant:odd"),
        *(patch(field, None, model[field]) for field in fields),
        *(patch(f"muscles.{name}", None, value) for name, value in model["muscles"].items()),
        *(patch(f"metadata.{name}", None, value) for name, value in model["metadata"].items()),
        *(patch(f"movement.{name}", None, value) for name, value in model["movement"].items()),
    ]
    assert "the id of a new exercise" in why(await upsert(app.runtime, "bench-press-other", *whole))
    sure = await upsert(app.runtime, "bench-press-odd-bench-press-barbell", *whole, actor="scout", confidence=0.95)
    assert sure.ok, sure
    made = (await read_catalog(loaded))["exercise:bench-press-odd-bench-press-barbell"]
    assert made["status"] == "draft"
    unsure = await upsert(
        app.runtime, "bench-press-odd-bench-press-barbell", *whole, actor="scout", confidence=0.8, run="q"
    )
    assert unsure.status.value == "denied"


# Aliases


async def test_an_alias_is_new_and_has_one_live_target_of_the_family(app: AppContext, loaded: Loaded) -> None:
    async def alias(slug: str, exercise: str | None, of: str = "bench-press", **more: Any) -> Outcome:
        return await call(
            app.runtime, "upsert_alias", {"alias_slug": slug, "of_family": of, "exercise_id": exercise, **more}
        )

    assert (await alias("flat-press", PRESS)).ok
    assert (await read_catalog(loaded))["alias:flat-press"] == build_alias("flat-press", exercise_id=PRESS)
    assert "is not there" in why(await alias("gone", "nobody")) or "not there" in why(await alias("gone", "nobody"))
    assert "is of family 't-bar-row'" in why(await alias("row", ROW))
    assert "mapped already" in why(await alias("flat-press", DUMBBELL))
    assert "one target" in why(await alias("both", PRESS, family_slug="bench-press"))
    assert "is called that itself" in why(await alias("bench-press-dumbbell", PRESS))
    assert (await alias("pressing", None, family_slug="bench-press")).ok
    assert "no family" in why(await alias("rowing", None, family_slug="t-bar-row"))


async def test_an_alias_goes_only_for_a_right_one(app: AppContext, loaded: Loaded) -> None:
    slug = next(
        key[6:]
        for key, doc in (await read_catalog(loaded)).items()
        if key.startswith("alias:") and doc.get("exercise_id") == PRESS
    )

    async def replace(alias: str, to: dict[str, Any]) -> Outcome:
        arguments = {
            "alias_slug": alias,
            "of_family": "bench-press",
            "replacement": {"family_slug": None, "exercise_id": None, **to},
        }
        return await call(app.runtime, "delete_alias", arguments)

    assert "no alias" in why(await replace("nothing-here", {"alias_slug": "nothing-here", "exercise_id": PRESS}))
    assert "not there" in why(await replace(slug, {"alias_slug": slug, "exercise_id": "nobody"}))
    assert "one target" in why(await replace(slug, {"alias_slug": slug}))
    assert (await replace(slug, {"alias_slug": slug, "exercise_id": DUMBBELL})).ok
    assert (await read_catalog(loaded))[f"alias:{slug}"]["exercise_id"] == DUMBBELL
    assert (await replace(slug, {"alias_slug": "other-name", "exercise_id": DUMBBELL})).ok
    now = await read_catalog(loaded)
    assert f"alias:{slug}" not in now
    assert now["alias:other-name"]["exercise_id"] == DUMBBELL


# Merges


async def merge(app: AppContext, source: str, target: str, aliases: list[str], **details: Any) -> Outcome:
    found = await app.backend.read_many(f"exercise:{identity}" for identity in (source, target))
    digests = {key[9:]: content_digest(doc.value) for key, doc in found.items()}
    arguments = {
        "source_id": source,
        "target_id": target,
        "family_slug": "bench-press",
        "aliases": aliases,
        "digests": digests,
    }
    return await call(app.runtime, "merge_exercises", arguments, **details)


async def test_a_merge_stays_in_its_family_and_leaves_no_orphan(app: AppContext, loaded: Loaded) -> None:
    before = await read_catalog(loaded)
    mine = sorted(
        key[6:] for key, doc in before.items() if key.startswith("alias:") and doc.get("exercise_id") == DUMBBELL
    )
    assert mine
    assert "merges stay in a family" in why(await merge(app, ROW, PRESS, []))
    assert "would be left pointing at" in why(await merge(app, DUMBBELL, PRESS, []))
    assert "into itself" in why(await merge(app, PRESS, PRESS, []))
    assert "not there" in why(await merge(app, "nobody", PRESS, []))
    others = next(
        key[6:] for key, doc in before.items() if key.startswith("alias:") and doc.get("exercise_id") == PRESS
    )
    incline = "bench-press-incline-bench-press-barbell"
    assert "points elsewhere" in why(await merge(app, DUMBBELL, incline, [*mine, others]))
    assert (await read_catalog(loaded)) == before
    outcome = await merge(app, DUMBBELL, PRESS, [*mine, "bench-press-dumbbell"])
    assert outcome.ok, outcome
    now = await read_catalog(loaded)
    assert now[f"exercise:{DUMBBELL}"]["merged_into"] == PRESS
    assert now[f"exercise:{PRESS}"]["merge_lineage"] == [DUMBBELL]
    assert all(now[f"alias:{alias}"]["exercise_id"] == PRESS for alias in [*mine, "bench-press-dumbbell"])
    assert "is merged" in why(await merge(app, DUMBBELL, PRESS, [], run="again"))
    assert "is merged: it is not changed any more" in why(
        await upsert(app.runtime, DUMBBELL, patch("category", "compound", "core"))
    )


async def test_a_merge_is_of_what_was_looked_at(app: AppContext, loaded: Loaded) -> None:
    mine = sorted(
        key[6:]
        for key, doc in (await read_catalog(loaded)).items()
        if key.startswith("alias:") and doc.get("exercise_id") == DUMBBELL
    )
    digests = {DUMBBELL: "another", PRESS: content_digest((await read_catalog(loaded))[f"exercise:{PRESS}"])}
    arguments = {
        "source_id": DUMBBELL,
        "target_id": PRESS,
        "family_slug": "bench-press",
        "aliases": mine,
        "digests": digests,
    }
    assert "not what was looked at" in why(await call(app.runtime, "merge_exercises", arguments))


async def test_a_merge_that_only_looks_right_is_asked_about(app: AppContext, loaded: Loaded) -> None:
    mine = sorted(
        key[6:]
        for key, doc in (await read_catalog(loaded)).items()
        if key.startswith("alias:") and doc.get("exercise_id") == DUMBBELL
    )
    assert why(await merge(app, DUMBBELL, PRESS, mine, confidence=0.05)).startswith("needs-confidence")
    parked = await merge(app, DUMBBELL, PRESS, mine, confidence=0.9, principal=SERVICE)
    assert parked.status.value == "parked"
    assert parked.plan is not None
    assert parked.plan.risk == "high"
    await app.runtime.operations.decide(parked.ticket or "", approve=True)
    assert (await app.runtime.operations.resume(parked.ticket or "")).ok


# Roles


@pytest.mark.parametrize("role", sorted(FIELDS))
async def test_a_specialist_touches_its_own_fields_only(app: AppContext, loaded: Loaded, role: str) -> None:
    doc = (await read_catalog(loaded))[f"exercise:{PRESS}"]
    foreign = next(field for other, fields in FIELDS.items() if other != role for field in fields)
    value: Any = doc
    for part in foreign.split("."):
        value = value[part]
    outcome = await upsert(app.runtime, PRESS, patch(foreign, value, value), actor=role)
    assert why(outcome).startswith(f"{role}-fields")


def test_the_policy_and_the_table_of_fields_agree() -> None:
    rules = {rule["id"]: rule for rule in tomllib.loads(POLICY.read_text())["rule"]}
    for role, fields in FIELDS.items():
        listed = rules[f"{role}-fields"]["when"].partition("[")[2].partition("]")[0]
        assert tuple(part.strip(" '") for part in listed.split(",")) == fields


@pytest.mark.parametrize(
    ("details", "rule"),
    [
        ({"evidence": ()}, "needs-evidence"),
        ({"confidence": 0.05}, "needs-confidence"),
        ({"confidence": None}, "needs-confidence"),
        ({"actor": "analyst"}, "grant"),
        ({"actor": "normalizer"}, "default"),
        ({"actor": "stranger"}, "default"),
    ],
)
async def test_evidence_confidence_and_the_right_role_are_needed(
    app: AppContext, details: dict[str, Any], rule: str
) -> None:
    given = {"actor": "programming", **details}
    outcome = await upsert(app.runtime, PRESS, patch("stimulus_tags", ["hypertrophy", "strength"], ["power"]), **given)
    assert why(outcome).startswith(f"{rule}:")


async def test_identity_changes_only_past_its_threshold_and_families_with_a_person(app: AppContext) -> None:
    change = patch("variant_key", "equipment:barbell", "variant:flat")
    low = await upsert(app.runtime, PRESS, change, actor="biomechanics", confidence=0.85)
    assert why(low).startswith("identity-threshold")
    assert (await upsert(app.runtime, PRESS, change, actor="biomechanics", confidence=0.95)).ok
    moved = await upsert(app.runtime, PRESS, patch("family_slug", "bench-press", "t-bar-row"), actor="person")
    assert moved.status.value == "parked"


async def test_a_family_is_observed_until_it_is_enabled(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home", enabled="t-bar-row")
    await fill_catalog(loaded, clean_families("bench-press", "t-bar-row"))
    async with open_app(loaded) as app:
        change = patch("stimulus_tags", ["hypertrophy", "strength"], ["power"])
        assert why(await upsert(app.runtime, PRESS, change, actor="programming")).startswith("family-not-enabled")
        planned = await upsert(app.runtime, PRESS, change, actor="programming", mode="dry_run")
        assert planned.status.value == "planned"
        (loaded.folder / "enabled.txt").write_text("bench-press\n")
        import asyncio

        await asyncio.sleep(1.1)  # the list is read again after its ttl
        assert (await upsert(app.runtime, PRESS, change, actor="programming")).ok


async def test_what_was_changed_rests_except_for_its_run_and_for_people(app: AppContext) -> None:
    first = patch("stimulus_tags", ["hypertrophy", "strength"], ["power"])
    assert (await upsert(app.runtime, PRESS, first, actor="programming", run="r1")).ok
    second = patch("stimulus_tags", ["power"], ["strength"])
    assert why(await upsert(app.runtime, PRESS, second, actor="programming", run="r2")).startswith("cooldown")
    assert (await upsert(app.runtime, PRESS, second, actor="programming", run="r1")).ok
    assert (await upsert(app.runtime, PRESS, patch("stimulus_tags", ["strength"], ["grip"]), run="r3")).ok


@pytest.mark.parametrize("key", ["!! variant:ab ??", "variant:", "Variant:ab", "variant:ab-"])
async def test_the_key_of_a_variant_is_nothing_but_that(app: AppContext, key: str) -> None:
    assert "variant_key" in why(await upsert(app.runtime, PRESS, patch("variant_key", "equipment:barbell", key)))

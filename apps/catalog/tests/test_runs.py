"""Runs: statuses, caps, locks, rejected payloads, undo, shadow, drift, backups, real data."""

from __future__ import annotations

import io
import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest
from rich.console import Console

from catalog_testing import (
    Says,
    clean_families,
    faulty_families,
    fill_catalog,
    open_steps,
    prepare_home,
    read_catalog,
    run_all,
)
from interlock import Context
from interlock.errors import ConfigError
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.backends.port import Write
from interlock_catalog.backup import find_drift, read_backup, restore_backup, write_backup
from interlock_catalog.confidence import Tally, shipped_calibration
from interlock_catalog.importer import import_exercises
from interlock_catalog.rejected import export_rejected, submit_rejected
from interlock_catalog.report.change_report import build_report
from interlock_catalog.report.html import render_html
from interlock_catalog.report.terminal import print_report
from interlock_catalog.resource import family_lock
from interlock_catalog.runner.records import FamilyResult, RunRequest, status_of
from interlock_catalog.shadow_report import build_shadow_report
from interlock_catalog.source_records import read_source_file

DATA = Path(__file__).parents[4] / "shared" / "data" / "free-exercise-db.json"
FAMILIES = ("bench-press", "sit-up", "snatch", "squat", "front-raise", "good-morning", "seated-row")


def request_for(run: str, mode: str = "apply", **more: Any) -> RunRequest:
    return RunRequest(run=run, mode=mode, **{"scout": False, **more})


async def versions(loaded: Any) -> dict[str, int]:
    backend = DatabaseBackend(loaded.settings.backend)
    try:
        return {key: int(doc.version) for key, doc in (await backend.documents.page("", limit=10_000)).items()}
    finally:
        await backend.close()


async def test_a_dry_run_changes_nothing_and_says_what_it_would(tmp_path: Path) -> None:
    docs = faulty_families(*FAMILIES)
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, results = await run_all(steps, request_for("r1", "dry_run"))
        report = await build_report(steps.app.runtime, run)
    assert run.status == "succeeded"
    assert run.counts["planned"] > 3
    assert await read_catalog(loaded) == docs
    changes = [change for family in report.families for change in family.changes]
    assert all(
        change.status == "planned" and change.why and change.evidence and change.risk and change.differences
        for change in changes
    )
    shown = render_html(report)
    assert all(family in shown for family, result in results.items() if result.counts)
    assert "<script" not in shown


async def test_an_applied_run_is_journalled_and_undone_to_the_letter(tmp_path: Path, backend_url: str) -> None:
    docs = faulty_families(*FAMILIES)
    loaded = prepare_home(tmp_path / "home", backend=backend_url)
    await fill_catalog(loaded, docs)
    before = await versions(loaded)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("r1"))
        assert (run.status, set(run.counts)) == ("succeeded", {"ok"})
        changed = {key for key, doc in (await read_catalog(loaded)).items() if docs.get(key) != doc}
        entries = [entry for turn in run.turns async for entry in steps.app.runtime.operations.journal(turn=turn)]
        assert len(entries) == run.counts["ok"]
        assert {key for entry in entries for key in entry.target_ids} >= changed
        for entry in entries:
            assert entry.op_type
            assert entry.idempotency_key
            assert entry.evidence
            assert entry.mode == "apply"
            assert entry.actor
            assert entry.timestamp_us
            assert any(name.startswith("lease:") for name in entry.lock_tokens)
            assert entry.before != entry.after
        again, _results = await run_all(steps, request_for("r2"))
        assert again.counts == {}
        done = await steps.app.runtime.operations.undo(run="r1")
        assert all(outcome is not None and outcome.ok for _step, outcome in done)
    assert await read_catalog(loaded) == docs
    after = await versions(loaded)
    assert all(after[key] >= number for key, number in before.items())
    assert any(after[key] > number for key, number in before.items())


async def test_a_report_says_what_was_not_made_as_planned(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = DatabaseBackend.write

    async def write_otherwise(self: DatabaseBackend, given: Write, context: Context | None = None) -> None:
        states = {
            key: {**doc, "name": "Otherwise"} if doc and key.startswith("exercise:") else doc
            for key, doc in given.states.items()
        }
        await write(self, msgspec.structs.replace(given, states=states), context)

    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, faulty_families("bench-press"))
    monkeypatch.setattr(DatabaseBackend, "write", write_otherwise)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("r1"))
        report = await build_report(steps.app.runtime, run)
    other = {key for family in report.families for change in family.changes for key in change.deviates}
    assert other
    assert all(key.startswith("exercise:") for key in other)
    out = Console(record=True, width=5_000, file=io.StringIO())
    print_report(out, report, str, str, every=True)
    text, page, scripted = out.export_text(), render_html(report), msgspec.json.encode(report).decode()
    assert all(
        f"not as planned: {change.deviates[0]}" in text for change in report.families[0].changes if change.deviates
    )
    assert "Not as planned: exercise:" in page
    assert f'"deviates":["{min(other)}"' in scripted


async def test_an_undo_leaves_what_a_person_edited_since(tmp_path: Path) -> None:
    docs = faulty_families(*FAMILIES)
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("r1"))
        entries = [entry for turn in run.turns async for entry in steps.app.runtime.operations.journal(turn=turn)]
        single = next(e for e in entries if e.op_type == "normalize_catalog_page")
        key = next(name for name in single.target_ids if name.startswith("exercise:"))
        mine = {
            **(await read_catalog(loaded))[key],
            "description": "A person wrote this description of the exercise afterwards.",
        }
        assert (
            await steps.app.runtime.call(
                "restore_document", {"key": key, "state": mine}, actor="person", mode="apply", call_id="edit"
            )
        ).ok
        done = await steps.app.runtime.operations.undo(run="r1")
        refused = [step for step, outcome in done if outcome is None]
        assert [key in (k.partition("/")[2] for k in step.keys) for step in refused] == [True]
        assert "has changed since" in refused[0].obstacle
    now = await read_catalog(loaded)
    assert now[key] == mine
    assert {k: v for k, v in now.items() if k != key} == {k: v for k, v in docs.items() if k != key}


async def test_a_cap_holds_and_the_next_run_goes_on_with_the_rest(tmp_path: Path) -> None:
    docs = faulty_families(*FAMILIES)
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        free, _results = await run_all(steps, request_for("r0", "dry_run"))
        total = free.counts["planned"]
        first, results = await run_all(steps, request_for("r1", max_changes=2))
        assert first.counts == {"ok": 2}
        assert first.status == "partial"
        assert first.left_over
        assert all(results[name].state == "overflow" for name in first.left_over)
        next_work = await steps.begin(request_for("r2"))
        assert [item.text for item in next_work[: len(first.left_over)]] == list(first.left_over)
        second, _results = await run_all(steps, request_for("r2", max_changes=total))
        assert second.counts == {"ok": total - 2}
        assert second.status == "succeeded"


async def test_a_locked_family_is_deferred_and_not_failed(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, faulty_families(*FAMILIES))
    async with open_steps(loaded) as steps, steps.app.runtime.lock(family_lock("squat")):
        run, results = await run_all(steps, request_for("r1"))
    assert results["squat"].state == "deferred"
    assert run.left_over == ("squat",)
    assert run.status == "partial"
    assert run.counts.get("failed", 0) == 0


@pytest.mark.parametrize(
    ("states", "counts", "status"),
    [
        (["ok", "clean"], {"ok": 3}, "succeeded"),
        (["clean"], {}, "succeeded"),
        (["ok", "deferred"], {"ok": 1}, "partial"),
        (["partial"], {"ok": 1, "denied": 1}, "partial"),
        (["waiting"], {"ok": 1, "parked": 1}, "waiting"),
        (["waiting", "deferred"], {"parked": 1}, "partial"),
        (["failed"], {"denied": 2}, "failed"),
        (["failed"], {"unknown": 1}, "failed"),
        (["clean", "failed"], {}, "partial"),
        (["failed"], {}, "failed"),
    ],
)
def test_a_run_succeeds_only_if_every_change_is_ok(states: list[str], counts: dict[str, int], status: str) -> None:
    results = [
        FamilyResult(family=str(n), state=state, counts=counts if n == 0 else {}) for n, state in enumerate(states)
    ]
    assert status_of(results, "apply") == status


async def test_what_is_rejected_is_exported_corrected_and_submitted_again(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    dumbbell = "bench-press-bench-press-dumbbell"
    docs[f"exercise:{dumbbell}"]["description"] = ""
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    short = {"family_slug": "bench-press", "changes": [{"exercise_id": dumbbell, "field": "description", "after": "Too short.",
             "justification": "from the record", "evidence": "record:fields", "confidence": 0.9}]}  # fmt: skip
    model = Says(propose_changes=lambda _content: short)
    async with open_steps(loaded, model) as steps:
        run, results = await run_all(steps, request_for("r1", families=("bench-press",)))
    assert results["bench-press"].counts == {}
    assert [item.tool for item in results["bench-press"].rejected] == ["upsert_exercise"]
    assert [issue.field for issue in results["bench-press"].unresolved] == ["description"]
    assert run.status == "succeeded"  # there was no change that is not ok
    file = tmp_path / "rejected.jsonl"
    assert await export_rejected(loaded, None, file) == 1
    (line,) = [json.loads(text) for text in file.read_text().splitlines()]
    assert line["tool"] == "upsert_exercise"
    assert "break its contract" in line["reason"]
    better = "The Bench Press with two dumbbells asks each arm to find its own way, from the chest to straight elbows."
    line["arguments"]["changes"][0]["after"] = better
    line["confidence"] = 0.9
    for wrong in ({"confidence": "high"}, {"confidence": 7}, {"evidence": 5}, {"evidence": [1]}, {"actor": 3}, [1]):
        bad = {**line, **wrong} if isinstance(wrong, dict) else wrong
        file.write_text(json.dumps(line) + "\n" + json.dumps(bad) + "\n")
        with pytest.raises(ConfigError, match=r"line 2: .*; nothing was submitted"):
            await submit_rejected(loaded, file, "apply")
    file.write_text("[" * 100_000)
    with pytest.raises(ConfigError, match="every line is a JSON object"):
        await submit_rejected(loaded, file, "apply")
    file.write_bytes(b"\n\n" + json.dumps(line).encode() + b"\n\xff\n")
    with pytest.raises(ConfigError, match="line 4: the byte 0xff at its beginning is no UTF-8; save the file as UTF-8"):
        await submit_rejected(loaded, file, "apply")
    assert (await read_catalog(loaded))[f"exercise:{dumbbell}"]["description"] == ""
    file.write_text(json.dumps(line) + "\n" + json.dumps({"tool": "report_issues", "arguments": {}}) + "\n")
    done = await submit_rejected(loaded, file, "apply")
    assert [item["status"] for item in done["items"]] == ["ok", "rejected"]
    assert (await read_catalog(loaded))[f"exercise:{dumbbell}"]["description"] == better


async def test_one_bad_exercise_does_not_keep_its_siblings_from_being_fixed(tmp_path: Path) -> None:
    docs = clean_families("squat")
    names = [key for key in docs if key.startswith("exercise:")][:3]
    for key in names:
        docs[key]["name_slug"] = f"{docs[key]['name_slug']}-9"
    taken = docs[names[0]]
    docs["exercise:lunge-x"] = {
        **taken,
        "id": "lunge-x",
        "family_slug": "lunge",
        "name_slug": taken["name_slug"].removesuffix("-9"),
    }
    docs["family:lunge"] = {**docs["family:squat"], "slug": "lunge", "base_name": "Lunge"}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        _run, results = await run_all(steps, request_for("r1", families=("squat",)))
    assert results["squat"].counts == {"ok": 2, "denied": 1}
    now = await read_catalog(loaded)
    assert [now[key]["name_slug"].endswith("-9") for key in names] == [True, False, False]


async def test_what_rests_is_deferred_and_does_not_fail(tmp_path: Path) -> None:
    docs = faulty_families("squat")
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        first, _results = await run_all(steps, request_for("r1", families=("squat",)))
        await fill_catalog(loaded, docs)  # somebody puts the faults back, past the gate
        second, results = await run_all(steps, request_for("r2", families=("squat",)))
        assert results["squat"].state == "deferred"
        assert (second.status, second.left_over) == ("partial", ("squat",))
        assert first.status == "succeeded"
        # The report calls it what the summary does, and says why.
        (family,) = (await build_report(steps.app.runtime, second)).families
        assert {change.status for change in family.changes} - {"ok"} == {"deferred"}
        assert "denied" not in second.counts


async def test_a_rename_leaves_the_old_name_behind_as_an_alias(tmp_path: Path) -> None:
    docs = clean_families("squat")
    key = "exercise:squat-squat-barbell"
    docs[key] |= {"name": "Barbell Squat", "name_slug": "barbell-squat"}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        await run_all(steps, request_for("r1", families=("squat",)))
        found = await steps.app.runtime.call("resolve_exercise", {"name": "Barbell Squat"}, actor="person")
        assert found.value["exercise_id"] == "squat-squat-barbell"
        await steps.app.runtime.operations.undo(run="r1")
    assert await read_catalog(loaded) == docs


async def test_orphans_that_cannot_be_resolved_are_left_for_a_person(tmp_path: Path) -> None:
    docs = clean_families("squat")
    some = next(doc for key, doc in docs.items() if key.startswith("exercise:"))
    docs["exercise:stray"] = {
        **some,
        "id": "stray",
        "family_slug": "nowhere",
        "name": "Stray (Barbell)",
        "name_slug": "stray-barbell",
    }
    docs["alias:nothing"] = {"alias_slug": "nothing"}
    docs["alias:old-family"] = {"alias_slug": "old-family", "family_slug": "gone"}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        _run, results = await run_all(steps, request_for("r1"))
    left = {(issue.target, issue.code) for issue in results["~orphans"].unresolved}
    assert left == {("exercise:stray", "stray"), ("alias:nothing", "orphan"), ("alias:old-family", "orphan")}


async def test_a_shadow_run_is_compared_with_what_people_did(tmp_path: Path) -> None:
    docs = faulty_families("squat", "front-raise", "good-morning")
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("s1", "shadow"))
        assert await read_catalog(loaded) == docs
        entries = [entry for turn in run.turns async for entry in steps.app.runtime.operations.journal(turn=turn)]
        spelled = [entry for entry in entries if entry.op_type == "normalize_catalog_page"]
        first = spelled[0]
        second = next(entry for entry in spelled if entry.turn != first.turn)
        same = [entry for entry in entries if entry.turn == first.turn]
        for key, state in {
            k: s for entry in same for k, s in entry.after.items()
        }.items():  # a person does the very same
            await steps.app.runtime.call(
                "restore_document", {"key": key, "state": state}, actor="person", mode="apply", call_id=key
            )
        key, state = next(iter(second.after.items()))  # and something else there, in the very fields
        mine = {field: "mine" for field, value in state.items() if second.before[key].get(field) != value}
        await steps.app.runtime.call(
            "restore_document", {"key": key, "state": {**state, **mine}}, actor="person", mode="apply", call_id="edit"
        )
    found = await build_shadow_report(loaded, "s1")
    agreed, differed = (first.turn or "").partition("/")[2], (second.turn or "").partition("/")[2]
    assert found["families"][agreed] == {"agrees": sum(len(entry.after) for entry in same)}
    assert found["families"][differed]["differs"] == 1
    assert set(found["rules"]) >= set(first.evidence)
    assert agreed in found["ready"]


async def test_an_apply_run_over_the_whole_catalog_goes_through_what_is_enabled_when_it_begins(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home", enabled=FAMILIES[0])
    await fill_catalog(loaded, clean_families(*FAMILIES))

    async def begin(run: str, mode: str = "apply") -> list[str]:
        async with open_steps(loaded) as steps:
            return [item.text for item in await steps.begin(RunRequest(run=run, mode=mode))]

    assert await begin("r1") == [FAMILIES[0]]
    everything = [*sorted(FAMILIES), "~orphans", "~searches"]
    assert await begin("r2", "dry_run") == everything
    for enabled in ("*", ""):  # none: the policy denies every change, which is seen
        (loaded.folder / "enabled.txt").write_text(enabled)
        assert await begin(f"r3{enabled}") == everything


async def test_drift_is_what_was_written_past_the_gate(tmp_path: Path) -> None:
    docs = faulty_families(*FAMILIES)
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        await run_all(steps, request_for("r1"))
    clean = await find_drift(loaded)
    assert clean["compared"] > 3
    assert clean["drifted"] == []
    changed = next(key for key, doc in (await read_catalog(loaded)).items() if docs.get(key) != doc)
    backend = DatabaseBackend(loaded.settings.backend)
    await backend.fill({changed: {"id": "x", "family_slug": "squat"}})
    await backend.close()
    assert [item["key"] for item in (await find_drift(loaded))["drifted"]] == [changed]


async def test_a_backup_is_written_whole_and_restored_through_the_gate(tmp_path: Path) -> None:
    docs = faulty_families(*FAMILIES)
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    file = tmp_path / "backup.jsonl"
    assert await write_backup(loaded, file) == len(docs)
    async with open_steps(loaded) as steps:
        await run_all(steps, request_for("r1"))
    planned = await restore_backup(loaded, file, apply=False, delete_others=True)
    assert set(planned.put_back.values()) == {"planned"}
    done = await restore_backup(loaded, file, apply=True, delete_others=True)
    assert set(done.put_back.values()) == {"ok"}
    assert await read_catalog(loaded) == docs
    async with open_steps(loaded) as steps:
        undone = await steps.app.runtime.operations.undo(run=done.run)
        assert all(outcome is not None and outcome.ok for _step, outcome in undone)


async def test_drafts_wait_for_a_person_unless_a_judge_with_a_good_record_has_looked(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    draft = next(key for key in docs if key.startswith("exercise:"))
    docs[draft]["status"] = "draft"
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("r1", families=("bench-press",)))
        assert run.counts == {"parked": 1}
        (entry,) = [entry for turn in run.turns async for entry in steps.app.runtime.operations.journal(turn=turn)]
        assert (entry.op_type, entry.status, entry.rule) == ("approve_exercise", "parked", "approver-asks")
        assert entry.ticket
        assert entry.after[draft]["status"] == "approved"
        await steps.app.runtime.operations.decide(entry.ticket, approve=True)
        assert (await steps.app.runtime.operations.resume(entry.ticket)).ok
    assert (await read_catalog(loaded))[draft]["status"] == "approved"
    await fill_catalog(loaded, {draft: docs[draft]})
    proven = shipped_calibration().add({"verified:judged@says": Tally(19, 0)})
    async with open_steps(loaded, Says(), proven) as steps:
        run, _results = await run_all(steps, request_for("r2", families=("bench-press",)))
        assert run.counts == {"ok": 1}


async def test_a_dry_run_does_not_approve_what_it_has_only_planned_to_fix(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    draft = next(key for key in docs if key.startswith("exercise:"))
    docs[draft] |= {"status": "draft", "variant_key": "v2/old"}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("r1", "dry_run", families=("bench-press",)))
        assert (run.status, run.counts) == ("succeeded", {"planned": 1})
        run, _results = await run_all(steps, request_for("r2", families=("bench-press",)))
        assert run.counts == {"ok": 1, "parked": 1}


@pytest.mark.skipif(not DATA.exists(), reason="the public data is not here")
async def test_real_data_is_imported_fixed_and_undone(tmp_path: Path) -> None:
    docs = import_exercises(read_source_file(DATA).records)
    assert sum(key.startswith("exercise:") for key in docs) >= 860
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    before = await versions(loaded)
    every = sorted(key.partition(":")[2] for key in docs if key.startswith("family:"))
    some = () if os.environ.get("TORTURE") else tuple(every[::3])  # all of it takes a minute
    async with open_steps(loaded) as steps:
        dry, _results = await run_all(steps, request_for("r0", "dry_run", max_changes=10_000, families=some))
        assert await read_catalog(loaded) == docs
        run, results = await run_all(steps, request_for("r1", max_changes=10_000, families=some))
        assert run.counts["ok"] >= (50 if some else 100)
        assert set(run.counts) <= {"ok", "parked", "denied"}
        assert dry.counts.get("planned", 0) >= run.counts["ok"]
        assert not [result.reason for result in results.values() if result.state == "failed" and result.reason]
        done = await steps.app.runtime.operations.undo(run="r1")
        assert all(outcome is not None and outcome.ok for _step, outcome in done)
    assert await read_catalog(loaded) == docs
    after = await versions(loaded)
    assert all(after[key] >= number for key, number in before.items())


async def test_a_backup_goes_into_a_file_and_is_read_whole_or_not_at_all(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, clean_families("squat"))
    with pytest.raises(ConfigError, match="is a folder; name a file"):
        await write_backup(loaded, tmp_path)
    file = tmp_path / "b.jsonl"
    for text in (
        '{"key": "family:x", "state": {"slug": "x", "slug": "y"}}',
        '{"key": "family:x", "state": ' + "[" * 100_000,
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match="is no backup"):
            read_backup(file)


async def test_a_backup_is_read_line_by_line_and_key_by_key(tmp_path: Path) -> None:
    doc = {**clean_families("bench-press")["exercise:bench-press-bench-press-barbell"], "description": "a\u2028b\x85c"}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, {"exercise:bench-press-bench-press-barbell": doc})
    file = tmp_path / "backup.jsonl"
    assert await write_backup(loaded, file) == 1
    assert list(read_backup(file).values()) == [doc]
    line = file.read_text()
    for text, said in (
        (line + line, "a second time"),
        ('{"key": "alias:a", "state": 3}', "no object"),
        ("x", "no backup"),
        (line + "\nx", ":3: is no backup"),
        (line.replace("bench", "\\ud83d", 1), r":1: holds \\ud83d, which is half a character"),
    ):
        file.write_text(text)
        with pytest.raises(ConfigError, match=said):
            read_backup(file)

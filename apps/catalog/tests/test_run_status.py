"""What a run makes of what goes wrong: bad records, crashes, silent models, people who wait or take back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from interlock.cli.main import main
from interlock.errors import RateLimited, Unavailable
from interlock.models import ModelFailed, Proposal, Reply, Request
from interlock_catalog.app import POLICY
from interlock_catalog.backends.embedded import DatabaseBackend
from interlock_catalog.checks import check_apart, run_checks
from interlock_catalog.normalise import FamilyFacts, normalise
from interlock_catalog.runner.health import check_health
from interlock_catalog.runner.lanes import carry_out
from interlock_catalog.runner.records import FamilyResult, Run, RunRequest, format_now, open_run_store, status_of
from interlock_catalog.runner.work_items import ORPHANS, WorkItem
from interlock_catalog.snapshot import Snapshot

PRESS = "bench-press-bench-press-barbell"
KEY = f"exercise:{PRESS}"
NO_MUSCLES: dict[str, Any] = {"primary": [], "secondary": [], "category": [], "contribution": {}}
json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats(0, 2) | st.sampled_from(["chest", "quads", "x", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["chest", "quads", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)


def request_for(run: str, mode: str = "apply", **more: Any) -> RunRequest:
    return RunRequest(run=run, mode=mode, **{"scout": False, **more})


def without_cooldown() -> str:
    before, _, rest = POLICY.read_text().partition("[[cooldown]]")
    return before + rest[rest.index("# No run changes") :]


@given(st.dictionaries(st.sampled_from(["primary", "secondary", "category", "contribution"]), json_values))
def test_whatever_muscles_are_written_as_normalisation_goes_on(muscles: dict[str, Any]) -> None:
    made = normalise({"id": "a", "name": "Press", "muscles": muscles}, FamilyFacts("Press", False)).doc
    assert normalise(made, FamilyFacts("Press", False)).doc == made


async def test_a_record_without_muscles_stops_itself_and_not_its_family(tmp_path: Path) -> None:
    docs = faulty_families("squat")
    bad, *others = sorted(key for key in docs if key.startswith("exercise:"))
    docs[bad]["muscles"] = NO_MUSCLES
    docs[others[0]]["name_slug"] = "wrong"
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, results = await run_all(steps, request_for("r1", families=("squat",)))
    result = results["squat"]
    assert (result.crashed, result.counts["ok"] >= 1, run.status) == (False, True, "succeeded")
    assert (bad, "muscles.primary") in {(issue.target, issue.field) for issue in result.unresolved}


def test_a_record_on_which_a_check_breaks_down_is_set_aside() -> None:
    docs = faulty_families("squat")
    exercises = {key.partition(":")[2]: doc for key, doc in docs.items() if key.startswith("exercise:")}
    bad = min(exercises)
    deep: Any = "push"
    for _level in range(5000):  # no database of ours would take it; a server of others may
        deep = [deep]
    exercises[bad]["movement"] = {"type": deep, "split": "lower"}
    family = Snapshot("squat", docs["family:squat"], exercises, {})
    with pytest.raises(RecursionError):
        run_checks(family)
    found = check_apart(family)
    assert set(found.family.exercises) == set(exercises) - {bad}
    assert found.issues == run_checks(found.family)
    assert [(issue.target, issue.severity, issue.specialist) for issue in found.unreadable] == [
        (f"exercise:{bad}", "critical", None)
    ]


async def test_what_fails_is_tried_again_at_the_end_of_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, faulty_families("squat", "bench-press"))
    async with open_steps(loaded) as steps:
        backend, asked = steps.app.backend, list[str]()
        assert isinstance(backend, DatabaseBackend)
        read, write, written = backend.exercises, backend.write, list[str]()

        async def read_later(*, family: str | None = None, **more: Any) -> Any:
            asked.append(str(family))
            if family == "squat" and "bench-press" not in asked:
                raise Unavailable("the catalog is away for a moment")
            return await read(family=family, **more)

        async def write_later(*given: Any) -> None:
            written.append(given[0].op)
            if len(written) == 1:
                raise RateLimited("not now")
            await write(*given)

        monkeypatch.setattr(backend, "exercises", read_later)
        monkeypatch.setattr(backend, "write", write_later)
        run, results = await run_all(steps, request_for("r1", families=("squat", "bench-press")))
    assert asked.index("bench-press") < len(asked) - 1 - asked[::-1].index("squat")
    assert {name: result.state for name, result in results.items()} == {"squat": "ok", "bench-press": "ok"}
    assert run.status == "succeeded"


async def test_only_what_failed_is_tried_again_and_once() -> None:
    begun = list[str]()

    async def start(item: WorkItem) -> FamilyResult:
        begun.append(item.text)
        again = begun.count(item.text) > 1
        if item.text == "a":
            return FamilyResult(family="a", state="ok" if again else "failed", crashed=not again)
        if item.text == "c":
            return FamilyResult(family="c", state="failed", counts={"failed": 1})
        return FamilyResult(family=item.text, state="failed", counts={"denied": 1})

    results = await carry_out(2, [ORPHANS, *map(WorkItem.of_family, "abc")], start)
    assert begun == ["a", "b", "c", "~orphans", "a", "c"]
    assert [(result.family, result.state) for result in results] == [
        ("~orphans", "failed"),
        ("a", "ok"),
        ("b", "failed"),
        ("c", "failed"),
    ]


class Silent:
    """A model that is there, and never answers."""

    name, instructable = "silent", True

    async def reply(self, _request: Request) -> Reply:
        raise ModelFailed("no route to the provider")

    async def close(self) -> None: ...


SILENT = Silent()
"""For `--model python:test_run_status:SILENT`."""
UNUSABLE: dict[str, Callable[[Request], Reply]] = {
    "a tool that is not there": lambda _request: Reply(proposals=(Proposal("no_such_tool", {}),)),
    "half a call": lambda request: Reply(proposals=(Proposal(str(request.force), '{"issues": ['),)),
    "a report without its list": lambda request: Reply(proposals=(Proposal(str(request.force), {}),)),
    "a list of nothing that fits": lambda request: Reply(proposals=(Proposal(str(request.force), {"issues": [{}]}),)),
    "words alone": lambda _request: Reply("All is well."),
}


@pytest.mark.parametrize("kind", UNUSABLE)
@pytest.mark.parametrize("instructable", [True, False], ids=["writes", "chooses"])
async def test_a_run_in_which_no_reply_could_be_used_is_degraded_and_says_that_there_were_replies(
    tmp_path: Path, kind: str, instructable: bool
) -> None:
    class Useless(Says):
        name = "useless"

        async def reply(self, request: Request) -> Reply:
            self.asked.append(request)
            return UNUSABLE[kind](request)

    model = Useless()
    model.instructable = instructable
    loaded = prepare_home(tmp_path / "home")
    docs = clean_families("bench-press")
    docs[KEY]["stimulus_tags"] = []
    await fill_catalog(loaded, docs)
    async with open_steps(loaded, model) as steps:
        run, _ = await run_all(steps, request_for("r1", "dry_run", families=("bench-press",)))
    assert model.asked
    assert run.status == "degraded"
    times = f"asked {len(model.asked)} time"
    assert times in run.degradation
    assert "never with anything that could be used" in run.degradation
    assert "never answered" not in run.degradation


async def test_a_report_with_an_empty_list_can_be_used(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, clean_families("bench-press"))
    async with open_steps(loaded, Says()) as steps:
        run, _ = await run_all(steps, request_for("r1", "dry_run", families=("bench-press",)))
    assert run.degradation == ""


def test_a_run_is_degraded_if_families_crashed_or_the_model_never_answered() -> None:
    fine = FamilyResult(
        family="a", state="ok", counts={"ok": 3}, model_calls={"analyst": 2}, model_answers={"analyst": 1}
    )
    assert status_of([fine], "apply") == "succeeded"
    crash = FamilyResult(family="b", state="failed", reason="ValueError: x", crashed=True)
    assert status_of([fine, crash], "apply") == "degraded"
    mute = FamilyResult(family="c", state="clean", model_calls={"analyst": 1})
    assert status_of([mute], "apply") == "degraded"
    assert status_of([fine, mute], "apply") == "succeeded"


async def prepare(folder: Path, docs: dict[str, Any]) -> None:
    await fill_catalog(prepare_home(folder), docs)


def test_health_tells_of_a_run_that_is_degraded(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    home = tmp_path / "home"
    asyncio.run(prepare(home, clean_families("bench-press")))
    run = ["catalog", "run", "--home", str(home), "--no-scout", "--json"]
    assert main([*run, "--model", "python:test_run_status:SILENT"]) == 1
    assert json.loads(capsys.readouterr().out)["run"]["status"] == "degraded"
    assert main(["catalog", "health", "--home", str(home), "--json"]) == 1
    (alarm, *_more) = json.loads(capsys.readouterr().out)["alarms"]
    assert "degraded" in alarm
    assert "never answered" in alarm
    assert main(run) == 0
    capsys.readouterr()

    async def broken(*_given: Any, **_more: Any) -> Any:
        raise Unavailable("the catalog is away")

    with monkeypatch.context() as patched:
        patched.setattr("interlock_catalog.backends.embedded.DatabaseBackend.exercises", broken)
        assert main([*run, "--family", "bench-press"]) == 1
    assert json.loads(capsys.readouterr().out)["run"]["status"] == "degraded"
    assert main(["catalog", "health", "--home", str(home)]) == 1
    assert "1 of 1 family crashed" in " ".join(capsys.readouterr().out.split())


async def test_health_tells_of_a_family_that_failed_in_the_last_run(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    families = (FamilyResult(family="curl", state="failed", reason="denied"), FamilyResult(family="row", state="ok"))
    run = Run(id="r1", mode="apply", status="partial", ended=format_now(), families=families)
    async with open_run_store(loaded.settings) as runs:
        await runs.put(run)
        found = await check_health(loaded.settings, runs, None)
    assert not found.ok
    assert found.failed_families == {"curl": "denied"}
    assert found.alarms == ("in the last run (r1), curl failed: denied",)


def test_a_run_that_only_waits_for_people_ends_well_every_night(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    docs = clean_families("bench-press")
    docs[KEY] |= {"status": "draft", "variant_key": "v2/old"}
    home = tmp_path / "home"
    asyncio.run(prepare(home, docs))
    run = ["catalog", "run", "--home", str(home), "--no-scout", "--apply", "--json"]
    assert main(run) == 0
    told = json.loads(capsys.readouterr().out)["run"]
    assert (told["status"], told["counts"]) == ("waiting", {"ok": 1, "parked": 1})
    assert main(run) == 0
    assert json.loads(capsys.readouterr().out)["run"]["counts"] == {}


async def test_what_waits_for_a_person_keeps_the_approval_after_it_waiting(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    docs[KEY] |= {"status": "draft", "description": ""}
    text = "The Bench Press with a barbell is done lying on a bench, from the chest to straight elbows."
    change = {"exercise_id": PRESS, "field": "description", "after": text, "justification": "from the record",
              "evidence": "record:fields", "confidence": 0.9}  # fmt: skip
    model = Says(propose_changes={"family_slug": "bench-press", "changes": [change]})
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded, model) as steps:
        for name, counts in (("r1", {"parked": 1}), ("r2", {})):
            run, results = await run_all(steps, request_for(name, families=("bench-press",)))
            assert run.counts == counts
            assert [item.target for item in results["bench-press"].foreseen] == [KEY]


async def test_a_dry_run_shows_the_approvals_that_an_applied_run_would_ask_for(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    docs[KEY] |= {"status": "draft", "variant_key": "v2/old"}
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, results = await run_all(steps, request_for("r1", "dry_run", families=("bench-press",)))
        (foreseen,) = results["bench-press"].foreseen
        assert (foreseen.op, foreseen.target, foreseen.evidence) == ("approve_exercise", KEY, ("verified:checks",))
        run, results = await run_all(steps, request_for("r2", families=("bench-press",)))
        assert run.counts == {"ok": 1, "parked": 1}
        assert results["bench-press"].foreseen == ()


async def test_a_dry_run_judges_each_change_as_if_those_before_it_had_been_made(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    # The one that stays has the other's name once it is spelled right: free only after the other has been merged.
    twin = json.loads(json.dumps(docs[f"exercise:{PRESS}"]))
    twin |= {"id": "twin", "name": "Barbell Bench Press", "name_slug": "barbell-bench-press"}
    docs["exercise:twin"] = twin
    docs[f"exercise:{PRESS}"]["status"] = "draft"
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    for mode, status in (("dry_run", "planned"), ("shadow", "planned"), ("apply", "ok")):
        async with open_steps(loaded) as steps:
            run, _results = await run_all(steps, RunRequest(run=f"r-{mode}", mode=mode, families=("bench-press",)))
            entries = [entry for turn in run.turns async for entry in steps.app.runtime.operations.journal(turn=turn)]
            made = [(entry.op_type, entry.target_ids) for entry in entries if entry.op_type != "approve_exercise"]
            assert run.counts == {status: 2}, [(entry.op_type, entry.reason) for entry in entries]
        renamed = next(entry.after["exercise:twin"] for entry in entries if entry.op_type.startswith("normalize"))
        assert (renamed["name_slug"], renamed["merge_lineage"]) == ("bench-press-barbell", [PRESS])
        assert [name for name, _targets in made] == ["merge_exercises", "normalize_catalog_page"]
        if mode != "apply":
            assert await read_catalog(loaded) == docs
    now = await read_catalog(loaded)
    assert (now[f"exercise:{PRESS}"]["status"], now["exercise:twin"]["name_slug"]) == ("merged", "bench-press-barbell")


async def test_a_change_that_a_person_took_back_is_not_proposed_again(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    docs[KEY]["variant_key"] = "v2/old"
    loaded = prepare_home(tmp_path / "home", policy=without_cooldown())
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("r1", families=("bench-press",)))
        assert run.counts == {"ok": 1}
        await steps.app.runtime.operations.undo(run="r1")
        for name, mode in (("r2", "dry_run"), ("r3", "apply")):
            run, results = await run_all(steps, request_for(name, mode, families=("bench-press",)))
            assert (run.status, run.counts) == ("succeeded", {})
            assert "took back" in results["bench-press"].reason
        assert await read_catalog(loaded) == docs
        # With another fault in it, it is another change.
        docs[KEY]["variant_key"] = "v3/other"
        await fill_catalog(loaded, {KEY: docs[KEY]})
        run, results = await run_all(steps, request_for("r4", "dry_run", families=("bench-press",)))
        assert (run.counts, results["bench-press"].reason) == ({"planned": 1}, "")


def test_a_family_that_is_not_there_is_a_sentence_and_no_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home = tmp_path / "home"
    asyncio.run(prepare(home, clean_families("bench-press")))
    for command in (["run"], ["run", "--queue"], ["schedule", "0 3 * * *"]):
        assert main(["catalog", *command, "--home", str(home), "--family", "bench-pres"]) == 2
        said = capsys.readouterr().err
        assert "there is no family bench-pres (perhaps bench-press)" in said

    async def read() -> list[Any]:
        async with open_run_store(prepare_home(home).settings) as runs:
            return await runs.all()

    assert asyncio.run(read()) == []


async def test_a_model_call_is_counted_where_a_question_was_asked(tmp_path: Path) -> None:
    class Chooser(Says):
        name, instructable = "chooser", False

        async def reply(self, request: Request) -> Reply:
            self.asked.append(request)
            return Reply("no choice")

    docs = clean_families("bench-press")
    # For these there is nothing that the records could offer, so nothing is asked.
    docs = {key: doc for key, doc in docs.items() if not key.startswith("exercise:") or key == KEY}
    docs[KEY]["stimulus_tags"] = []
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(loaded, docs)
    model = Chooser()
    async with open_steps(loaded, model) as steps:
        run, results = await run_all(steps, request_for("r1", families=("bench-press",)))
    assert sum(run.model_calls.values()) == len(model.asked)
    assert results["bench-press"].issues


async def test_changes_that_are_denied_before_they_are_planned_are_counted_one_by_one(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    for key in [key for key in docs if key.startswith("exercise:")][:3]:
        docs[key]["variant_key"] = "v2/old"
    policy = POLICY.read_text()
    loaded = prepare_home(
        tmp_path / "home", policy=policy.replace('actors = ["normalizer", "person"]', 'actors = ["person"]')
    )
    await fill_catalog(loaded, docs)
    async with open_steps(loaded) as steps:
        run, _results = await run_all(steps, request_for("r1", families=("bench-press",)))
        entries = [entry async for entry in steps.app.runtime.operations.journal(turn="r1/bench-press")]
    assert {entry.idempotency_key for entry in entries} == {""}
    assert run.counts == {"denied": 3}

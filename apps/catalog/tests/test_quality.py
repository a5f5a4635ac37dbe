"""How much of what was planted is found and fixed: with checks alone, and with a competent model."""

from __future__ import annotations

import json
import logging
import sys
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import httpx
import pytest

from catalog_testing import Says, clean_families, fill_catalog, open_steps, prepare_home, read_catalog, run_all
from interlock.cli.main import main
from interlock_catalog.confidence import Tally, shipped_calibration
from interlock_catalog.runner.durable import read_queue
from interlock_catalog.runner.endpoint import build_app
from interlock_catalog.runner.records import RunRequest, RunStore
from search_meanings import read_meanings


@pytest.fixture(autouse=True)
def _quiet(monkeypatch: pytest.MonkeyPatch) -> Any:
    # The library's benchmarks, which other tests look for, have a file of the same name.
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    monkeypatch.delitem(sys.modules, "quality", raising=False)
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


async def test_checks_alone_fix_what_needs_no_judgement_and_nothing_else(tmp_path: Path) -> None:
    from quality import measure_quality

    found = await measure_quality(tmp_path / "home", None)
    assert found.detection.precision == 1.0
    near_duplicates = {fault.target for fault in found.planted if fault.kind == "near_duplicate"}
    assert set(found.wrong) <= near_duplicates  # copies that only a judge can see are normalised
    fixed = {fault.target for fault in found.planted if fault.needs == "checks"} & found.fixed_targets
    wanted = [fault for fault in found.planted if fault.needs == "checks"]
    assert len(fixed) / len(wanted) >= 0.98
    assert sum(found.never.values()) == 0
    assert found.run.model_calls == {}


async def test_a_competent_model_reaches_the_ceiling(tmp_path: Path) -> None:
    from competent import Competent
    from quality import measure_quality

    found = await measure_quality(tmp_path / "home", Competent())
    assert found.detection.precision >= 0.98
    assert found.detection.recall >= 0.95
    assert found.fixes.precision >= 0.98
    assert found.fixes.recall >= 0.95
    assert found.never == {"invariants": 0, "cross_family_merges": 0, "outside_fields": 0}


def test_the_competent_model_cannot_know_what_was_planted() -> None:
    source = (Path(__file__).parent.parent / "benchmarks" / "competent.py").read_text()
    assert "interlock_catalog" not in source
    assert "planted" not in source.split('"""', 2)[2]


# The scout


def searched(*queries: str) -> dict[str, Any]:
    return {f"search:{n:05}": {"query": query, "hits": 0, "count": 3} for n, query in enumerate(queries)}


async def test_the_scout_adds_aliases_for_the_same_words(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(
        loaded,
        {**clean_families("bench-press"), **searched("db bench press", "something else", "bench presss barbell")},
    )
    async with open_steps(loaded) as steps:
        _run, results = await run_all(steps, RunRequest(run="r1", mode="apply"))
        assert results["~searches"].counts == {"ok": 2}
        again, _results = await run_all(steps, RunRequest(run="r2", mode="apply"))
        assert again.counts == {}
    now = await read_catalog(loaded)
    assert now["alias:db-bench-press"]["exercise_id"] == "bench-press-bench-press-dumbbell"
    assert now["alias:bench-presss-barbell"]["exercise_id"] == "bench-press-bench-press-barbell"
    assert len([query for query, meant in read_meanings().items() if meant]) >= 40


def _action(query: str, **more: Any) -> dict[str, Any]:
    return {"query": query, "hypothesis": "people look for it", "evidence": "searches:often", "proposed_action": "draft_exercise",
            "rationale": "the family lacks it", "confidence": 0.95, "apply": True, **more}  # fmt: skip


async def test_the_scout_drafts_only_what_is_whole_and_sure(tmp_path: Path) -> None:
    docs = clean_families("bench-press")
    model_doc = docs["exercise:bench-press-bench-press-barbell"]
    draft = {**model_doc, "name": "Spoto Bench Press (Barbell)", "variant_key": "variant:spoto",
             "description": "The Spoto Bench Press stops a hand's width above the chest before the bar is pressed up again."}  # fmt: skip
    for field in ("id", "status", "merged_into", "merge_lineage", "name_slug", "family_slug"):
        draft.pop(field)
    thin = {"name": "Thin Press (Barbell)"}
    actions = [
        _action("spoto press", family_slug="bench-press", draft=draft),
        _action("thin press", family_slug="bench-press", draft=thin),
        _action(
            "unsure press",
            family_slug="bench-press",
            draft={**draft, "name": "Unsure Bench Press (Barbell)"},
            confidence=0.85,
        ),
        _action(
            "later press",
            family_slug="bench-press",
            draft={**draft, "name": "Later Bench Press (Barbell)"},
            apply=False,
        ),
        _action("nobody asked", family_slug="bench-press", draft=draft),
        _action("wrong alias", proposed_action="add_alias", exercise_id="bench-press-bench-press-dumbbell"),
    ]
    loaded = prepare_home(tmp_path / "home")
    await fill_catalog(
        loaded, {**docs, **searched("spoto press", "thin press", "unsure press", "later press", "wrong alias")}
    )
    proven = shipped_calibration().add({"scout:draft_exercise@says": Tally(30, 1)})
    async with open_steps(loaded, Says(propose_actions={"actions": actions}), proven) as steps:
        _run, results = await run_all(steps, RunRequest(run="r1", mode="apply", families=("~searches",)))
    now = await read_catalog(loaded)
    assert set(now) - set(docs) - {f"search:{n:05}" for n in range(5)} == {
        "exercise:bench-press-spoto-bench-press-barbell"
    }
    assert now["exercise:bench-press-spoto-bench-press-barbell"]["status"] == "draft"
    assert results["~searches"].counts == {"ok": 1, "parked": 1, "denied": 1}  # thin is denied, unsure is asked about
    reasons = [item.reason for item in results["~searches"].rejected]
    assert any("nobody searched" in reason for reason in reasons)
    assert any("not among the nearest" in reason for reason in reasons)


# What a monitor and an event see


async def test_a_worker_answers_monitors_and_events(tmp_path: Path) -> None:
    loaded = prepare_home(tmp_path / "home", token="secret")
    await fill_catalog(loaded, clean_families("bench-press"))
    runs = RunStore(loaded.settings.engine)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(build_app(loaded, runs)), base_url="http://worker"
    ) as client:
        first = await client.get("/health")
        assert first.status_code == 503
        assert first.json()["alarms"] == ["no run has ended yet"]
        async with open_steps(loaded) as steps:
            await run_all(steps, RunRequest(run="r1", families=("bench-press",)))
        assert (await client.get("/health")).status_code == 200
        assert (await client.post("/runs", json={})).status_code == 401
        key = {"Authorization": "Bearer secret"}
        assert (await client.post("/runs", json={"mode": "wild"}, headers=key)).status_code == 422
        started = await client.post("/runs", json={"families": ["bench-press"], "event": "import"}, headers=key)
        assert started.status_code == 202
        assert started.json()["run"]
        assert (await client.get("/health")).json()["queue_depth"] == 1
        (loaded.folder / "enabled.txt").write_text("")
        for families, said in ((["bench-press"], "bench-press is only observed"), ([], "every family is only")):
            refused = await client.post("/runs", json={"families": families, "mode": "apply"}, headers=key)
            assert refused.status_code == 409
            assert said in refused.json()["detail"]
            assert "interlock catalog enable" in refused.json()["detail"]
    await runs.close()
    assert read_queue(loaded.settings).depth == 1


def test_a_webhook_is_fetched_when_a_run_has_ended(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    seen: list[str] = []

    class Monitor(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            seen.append(self.path)
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_given: Any) -> None: ...

    server = HTTPServer(("127.0.0.1", 0), Monitor)
    Thread(target=server.serve_forever, daemon=True).start()
    home = tmp_path / "home"
    assert main(["catalog", "init", "--clean", "--home", str(home)]) == 0
    with (home / "catalog.toml").open("a") as out:
        out.write(f'webhook = "http://127.0.0.1:{server.server_address[1]}/up"\nembeddings = true\n')
    capsys.readouterr()
    assert main(["catalog", "run", "--family", "squat", "--home", str(home), "--json"]) == 0
    run = json.loads(capsys.readouterr().out)["run"]
    assert seen == [f"/up?run={run['id']}&status=succeeded"]
    server.shutdown()
    server.server_close()

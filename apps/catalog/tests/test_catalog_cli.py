"""`interlock catalog` as a user types it: a folder, a run, a report, back again; and what is wrong said in a sentence."""

from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from catalog_testing import source_record
from interlock.cli.main import main
from interlock.config import help_texts
from interlock_catalog.settings import Settings


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "160")
    assert main(["catalog", "init"]) == 0
    return folder


def said(capsys: pytest.CaptureFixture[str], *arguments: str) -> Any:
    """What a command prints as JSON."""
    main(["catalog", *arguments, "--json"])
    return json.loads(capsys.readouterr().out)


def test_from_a_fresh_folder_to_a_run_and_back(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = said(capsys, "init", "--home", "another")
    assert made == {"home": "another", "exercise": 893, "family": 122, "alias": 975, "planted": 280}
    assert {file.name for file in home.iterdir()} >= {
        "catalog.toml",
        "interlock.toml",
        "policy.toml",
        "enabled.txt",
        "planted.json",
    }
    assert main(["catalog", "backup", "before.jsonl"]) == 0
    capsys.readouterr()
    assert (
        main(["catalog", "run", "--html", "report.html", "--family", "squat", "--family", "bench-press", "--all"]) == 0
    )
    shown = capsys.readouterr().out
    assert "dry_run" in shown
    assert "why:" in shown
    assert "evidence:" in shown
    assert "risk" in shown
    assert "<h2>squat" in (home / "report.html").read_text()
    before = said(capsys, "runs")
    for named in (["--family", "squat"], []):
        assert main(["catalog", "run", "--apply", *named]) == 2  # observed only: refused before anything is counted
        assert "interlock catalog enable" in capsys.readouterr().err
    assert said(capsys, "runs") == before
    assert main(["catalog", "enable", "squat"]) == 0
    capsys.readouterr()
    run = said(capsys, "run", "--apply", "--family", "squat")["run"]
    assert run["status"] == "succeeded"
    assert run["counts"]["ok"] >= 1
    listed = said(capsys, "runs")
    assert listed[0]["id"] == run["id"]
    assert main(["catalog", "show", run["id"]]) == 0
    assert "squat" in capsys.readouterr().out
    main(["catalog", "show", run["id"], "--journal"])
    journal = json.loads(capsys.readouterr().out)
    assert {
        "op_type",
        "idempotency_key",
        "target_ids",
        "before",
        "after",
        "evidence",
        "mode",
        "lock_tokens",
        "actor",
        "timestamp_us",
    } <= set(journal[0])
    assert main(["catalog", "drift"]) == 0
    assert main(["undo", "--run", run["id"], "--yes"]) == 0
    assert main(["catalog", "backup", "after.jsonl"]) == 0
    assert (home / "before.jsonl").read_bytes() == (home / "after.jsonl").read_bytes()


def test_looking_goes_through_the_gate(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    rows = said(capsys, "list", "--limit", "5")
    assert len(rows) == 5
    assert len(said(capsys, "list", "--families", "--limit", "500")) == 122
    assert said(capsys, "list", "--aliases", "--limit", "3")[0]["alias_slug"]
    assert said(capsys, "list", "--searches")[0]["hits"] == 0
    assert main(["catalog", "list", "--family", "squat"]) == 0
    assert "squat" in capsys.readouterr().out
    assert {"id", "name"} <= set(said(capsys, "search", "goblet squat")[0])
    assert main(["catalog", "search", "goblet"]) == 0
    assert main(["catalog", "search", "nothing like that"]) == 1
    capsys.readouterr()
    got = said(capsys, "get", "Goblet Squat (Kettlebell)")
    assert got["exercise"]["name"] == "Goblet Squat (Kettlebell)"
    assert main(["catalog", "get", "nobody"]) == 2
    assert "there is no exercise 'nobody'" in capsys.readouterr().err
    capsys.readouterr()
    assert main(["catalog", "validate", f"exercise:{got['exercise']['id']}"]) == 0
    assert main(["catalog", "validate", "exercise:nobody"]) == 2
    assert main(["audit", "show", "--tool", "get_exercise"]) == 0
    assert "get_exercise" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("names", "slug"),
    [
        (("Hip Thrust", "Hip-Thrust"), "hip-thrust"),
        # Both keep their slug, and neither becomes a third exercise with that of the last one.
        (("Barbell Back Squat", "barbell back squat ", "Back Squat (Barbell)"), "barbell-back-squat"),
    ],
)
def test_exercises_with_one_name_slug_are_never_passed_over(
    names: tuple[str, ...], slug: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    home, file = ["--home", str(tmp_path / "home")], tmp_path / "data.json"
    # Of other muscles: whether they are one exercise is for somebody to say.
    muscles = ("glutes", "hamstrings", "quadriceps")
    file.write_text(
        json.dumps(
            [
                source_record(name=name, id=f"x{n}", primaryMuscles=[muscle])
                for n, (name, muscle) in enumerate(zip(names, muscles, strict=False))
            ]
        )
    )
    assert main(["catalog", "init", "--from", str(file), *home]) == 0
    capsys.readouterr()
    main(["catalog", "run", "--all", *home])
    shown = capsys.readouterr().out.splitlines()
    lines = [line for line in shown if "for a person" in line and f"name_slug: '{slug}' is also that of" in line]
    assert len(lines) == 2
    invalid = {item["key"]: item["violations"] for item in said(capsys, "validate", *home)["invalid"]}
    named = [key for key, found in invalid.items() if any(item["code"] == "namesake" for item in found)]
    assert set(named) >= {"exercise:x0", "exercise:x1"}
    assert main(["catalog", "validate", "exercise:x0", *home]) == 1
    assert "is also that of exercise:x1" in capsys.readouterr().out


def test_settings_are_shown_with_their_origins(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CATALOG_LANES", "2")
    monkeypatch.setenv("CATALOG_TOKEN", "secret")
    capsys.readouterr()
    found = said(capsys, "config")
    assert found["lanes"] == {"value": 2, "from": "environment CATALOG_LANES"}
    assert (found["backend"]["from"], found["stale_s"]["from"]) == ("catalog.toml", "default")
    assert found["token"]["value"] == "(set)"
    assert main(["catalog", "config"]) == 0
    shown = capsys.readouterr().out
    assert "families that a run works on at a time" in shown
    assert "secret" not in shown


def test_every_setting_is_in_the_docs() -> None:
    docs = (Path(__file__).parents[3] / "docs" / "catalog.md").read_text()
    assert [name for name in Settings.__struct_fields__ if f"`{name}`" not in docs] == []
    assert all(help_texts(Settings).values())


def test_health_and_schedules(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["catalog", "health"]) == 1
    shown = capsys.readouterr().out
    assert "no run has ended yet; 0 queued" in shown
    assert "never" not in shown
    assert main(["catalog", "run", "--family", "squat"]) == 0
    capsys.readouterr()
    found = said(capsys, "health")
    assert (found["ok"], found["queue_depth"], found["failure_rate"], found["lock_age_s"]) == (True, 0, 0.0, None)
    nightly = ["schedule", "0 3 * * *", "--apply", "--zone", "Europe/Vienna"]
    for named in ([], ["--family", "squat"]):
        assert main(["catalog", *nightly, *named]) == 2  # observed only, as with `run --apply`
        assert "interlock catalog enable" in capsys.readouterr().err
    assert said(capsys, "schedule") == []
    assert main(["catalog", "enable", "squat"]) == 0
    assert main(["catalog", *nightly, "--family", "bench-press"]) == 2
    capsys.readouterr()
    request = said(capsys, *nightly)["request"]
    assert (request["mode"], request["families"]) == ("apply", [])  # each run takes those that are enabled then
    assert said(capsys, "schedule")[0]["cron"] == "0 3 * * *"
    assert main(["catalog", "schedule"]) == 0
    assert "nightly" in capsys.readouterr().out
    queued = said(capsys, "run", "--queue", "--family", "squat")["run"]
    assert queued
    assert said(capsys, "health")["queue_depth"] == 1
    assert main(["catalog", "schedule", "--remove"]) == 0
    capsys.readouterr()
    assert said(capsys, "schedule") == []


def test_shadow_report_rejected_and_restore(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    run = said(capsys, "run", "--shadow", "--family", "squat")["run"]
    assert run["counts"] == {"planned": run["counts"]["planned"]}
    found = said(capsys, "shadow-report", "--run", run["id"])
    assert sum(found["families"]["squat"].values()) >= 1
    assert main(["catalog", "shadow-report"]) == 0
    assert main(["catalog", "rejected", "list.jsonl"]) == 0
    assert (home / "list.jsonl").read_text() == ""
    main(["catalog", "backup", "b.jsonl"])
    main(["catalog", "enable", "--all"])
    main(["catalog", "run", "--apply", "--family", "squat"])
    capsys.readouterr()
    planned = said(capsys, "restore", "b.jsonl")
    assert set(planned["put_back"].values()) == {"planned"}
    assert main(["catalog", "restore", "b.jsonl", "--yes"]) == 0
    capsys.readouterr()
    assert said(capsys, "restore", "b.jsonl")["put_back"] == {}
    enabled = said(capsys, "disable", "squat")["enabled"]
    assert "squat" not in enabled
    assert len(enabled) == 121  # all were enabled: the others still are
    assert said(capsys, "enable", "squat")["enabled"] == sorted([*enabled, "squat"])
    assert said(capsys, "disable", "--all")["enabled"] == []


def test_a_restore_says_what_it_deletes_and_deletes_only_when_asked_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("one.json").write_text(json.dumps([source_record()]))
    Path("two.json").write_text(json.dumps([source_record(), source_record(name="Floor Press", id="press")]))
    assert main(["catalog", "init", "--home", "one", "--from", "one.json"]) == 0
    assert main(["catalog", "init", "--home", "two", "--from", "two.json"]) == 0
    assert main(["catalog", "backup", "b.jsonl", "--home", "one"]) == 0
    lines = Path("b.jsonl").read_text().replace('"level": "beginner"', '"level": "expert"')
    Path("b.jsonl").write_text(lines)
    others = ["alias:floor-press", "exercise:press", "family:floor-press"]
    restore = ["restore", "b.jsonl", "--home", "two"]
    capsys.readouterr()

    assert said(capsys, *restore)["left"] == others
    assert main(["catalog", *restore]) == 0
    assert "1 document would be put back, 3 left: not in the backup (delete with --delete-others)" in (
        capsys.readouterr().out
    )
    assert main(["catalog", *restore, "--yes"]) == 0
    assert "1 document put back, 3 left: not in the backup" in capsys.readouterr().out
    assert main(["catalog", "get", "press", "--home", "two"]) == 0
    capsys.readouterr()

    planned = said(capsys, *restore, "--delete-others")
    assert (planned["put_back"], planned["left"]) == ({}, [])
    assert planned["deleted"] == dict.fromkeys(others, "planned")
    assert main(["catalog", *restore, "--delete-others"]) == 0
    shown = capsys.readouterr().out
    assert "delete  exercise:press  planned" in shown
    assert "0 documents would be put back, 3 documents would be deleted: not in the backup" in shown
    assert main(["catalog", *restore, "--delete-others", "--yes"]) == 0
    assert "3 documents deleted: not in the backup" in capsys.readouterr().out
    assert [row["id"] for row in said(capsys, "list", "--home", "two")] == ["barbell-curl"]
    with pytest.raises(SystemExit):
        main(["catalog", "restore", "--help"])
    assert "--delete-others" in capsys.readouterr().out


def test_a_recorded_model_is_replayed(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(Path(__file__).parent.parent / "benchmarks"))
    capsys.readouterr()
    options = ("--family", "pull-up", "--model", "python:competent:Competent")
    first = said(capsys, "run", *options, "--record", "answers.jsonl")
    assert first["run"]["model_calls"]["analyst"] == 2
    again = said(capsys, "run", *options, "--replay", "answers.jsonl")

    def made(report: Any) -> Any:
        return [
            [(change["op"], change["differences"]) for change in family["changes"]] for family in report["families"]
        ]

    assert made(again) == made(first)
    assert made(first)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["init"], "there is a catalog here already"),
        (["enable"], "enable what?"),
        (["disable"], "disable what?"),
        (["disable", "no-such-family"], "there is no family no-such-family"),
        (["enable", "no-such-family"], "there is no family no-such-family"),
        (["run", "--max-changes", "-1"], "zero or more"),
        (["run", "--resume", "nothing"], "there is no run 'nothing'"),
        (["show", "nothing"], "there is no run 'nothing'"),
        (["show", "nothing", "--journal"], "there is no run 'nothing'"),
        (["rejected", "list.jsonl", "--run", "nothing"], "there is no run 'nothing'"),
        (["shadow-report", "--run", "nothing"], "there is no run 'nothing'"),
        (["schedule", "every night"], "cron has five"),
        (["schedule", "0 0 31 2 *"], "no time that ever comes"),
        (["schedule", "0 3 * * *", "--zone", "Mars"], "no time zone 'Mars'"),
        (["restore", "nothing.jsonl"], "there is no such file"),
        (["rejected", "nothing.jsonl", "--submit"], "there is no such file"),
        (["serve"], "there are no tokens"),
        (["run", "--replay", "nothing.jsonl"], "no recorded answers"),
    ],
)
def test_what_is_wrong_is_said_in_a_sentence(
    home: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    capsys.readouterr()
    assert main(["catalog", *arguments]) == 2
    assert message in capsys.readouterr().err.replace("\n", " ")


def test_a_list_of_families_that_is_no_utf8_says_its_line(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (home / "enabled.txt").write_bytes(b"squat\ncaf\xe9\n")
    capsys.readouterr()
    assert main(["catalog", "enable", "--all"]) == 2
    told = capsys.readouterr().err.replace("\n", " ")
    assert "enabled.txt, line 2: the byte 0xe9 after 'caf' is no UTF-8; save the file as UTF-8" in told


def test_a_folder_without_a_catalog_says_how_to_make_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["catalog", "run"]) == 2
    assert "interlock catalog init" in capsys.readouterr().err
    (tmp_path / "catalog.toml").write_text("lanes = 4\ncolour = 1\n")
    assert main(["catalog", "runs"]) == 2
    assert "catalog.toml: colour: there is no such setting" in capsys.readouterr().err
    (tmp_path / "catalog.toml").write_text("lanes = 0\n")
    assert main(["catalog", "runs"]) == 2
    assert "at least 1" in capsys.readouterr().err


def test_other_beginnings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "data.json"
    file.write_text(json.dumps([source_record()]))
    for options in (["--clean"], ["--empty"], ["--from", str(file)]):
        folder = tmp_path / "".join(filter(str.isalnum, options[0]))
        assert main(["catalog", "init", "--home", str(folder), *options]) == 0
    assert "1 exercise in 1 family, 1 alias, 0 planted faults" in capsys.readouterr().out
    file.write_text("{}")
    assert main(["catalog", "init", "--home", str(tmp_path / "x"), "--from", str(file)]) == 2
    assert "no free-exercise-db" in capsys.readouterr().err


def test_only_families_are_counted_as_families(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    home = ["--home", str(tmp_path)]
    assert main(["catalog", "init", "--empty", *home]) == 0
    capsys.readouterr()
    assert main(["catalog", "run", "--html", str(tmp_path / "page.html"), *home]) == 0
    assert "families: none   orphans: clean   searches: clean" in capsys.readouterr().out
    assert "0 families looked at" in (tmp_path / "page.html").read_text()
    assert said(capsys, "runs", *home)[0]["families"] == 0


def test_every_command_says_what_its_exit_codes_mean(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["catalog", "--help"])
    names = re.findall(r"^    ([a-z-]+)  ", capsys.readouterr().out, re.MULTILINE)
    assert len(names) == 20
    for name in names:
        with pytest.raises(SystemExit):
            main(["catalog", name, "--help"])
        assert "exit codes:" in capsys.readouterr().out, name


def test_whether_a_page_can_be_written_is_tried_before_the_run(home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["catalog", "run", "--family", "squat", "--html", "no/such/page.html"]) == 2
    assert "--html no/such/page.html: nothing can be written there" in capsys.readouterr().err
    assert said(capsys, "runs") == []
    assert main(["catalog", "run", "--family", "squat", "--no-scout", "--html", "page.html"]) in (0, 1)
    assert "<html" in (home / "page.html").read_text(encoding="utf-8")


def test_every_database_of_a_catalog_is_for_its_owner_alone(home: Path) -> None:
    before = os.umask(0)
    try:
        assert main(["catalog", "run", "--family", "squat", "--no-scout"]) in (0, 1)
    finally:
        os.umask(before)
    files = list(home.glob("*.db*"))
    assert (home / "runs.db") in files
    assert {file.name: file.stat().st_mode & 0o077 for file in files} == dict.fromkeys((f.name for f in files), 0)


def test_a_backup_holds_the_log_of_searches_and_one_without_it_leaves_it(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["catalog", "backup", "b.jsonl"]) == 0
    lines = (home / "b.jsonl").read_text(encoding="utf-8").splitlines(keepends=True)
    searches = [line for line in lines if json.loads(line)["key"].startswith("search:")]
    assert searches
    assert main(["catalog", "init", "--empty", "--home", "two"]) == 0
    (home / "few.jsonl").write_text("".join(searches[:3]), encoding="utf-8")
    capsys.readouterr()
    done = said(capsys, "restore", "few.jsonl", "--home", "two", "--yes")
    assert (list(done["put_back"].values()), done["searches"]) == (["ok"] * 3, "")
    assert main(["catalog", "backup", "two.jsonl", "--home", "two"]) == 0
    assert (home / "two.jsonl").read_text(encoding="utf-8") == "".join(searches[:3])
    (home / "old.jsonl").write_text("", encoding="utf-8")
    capsys.readouterr()
    done = said(capsys, "restore", "old.jsonl", "--home", "two", "--delete-others", "--yes")
    assert done["deleted"] == {}
    assert "of an earlier version" in done["searches"]
    assert main(["catalog", "init", "--empty", "--home", "three"]) == 0
    assert main(["catalog", "backup", "three.jsonl", "--home", "three"]) == 0
    capsys.readouterr()
    assert said(capsys, "restore", "three.jsonl", "--home", "three")["searches"] == ""  # there are none to be left

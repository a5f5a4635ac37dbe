"""The command line as a person and as a script would use it."""

from __future__ import annotations

import io
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from interlock.cli.main import main
from tests.conftest import ALLOW

ROOT = Path(__file__).parent.parent
TRAILS = ROOT / "examples" / "trails"


@pytest.fixture
def trails(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The example's folder, with nothing called yet."""
    for name in ("trails.py", "policy.toml", "cases.toml", "interlock.toml"):
        shutil.copy(TRAILS / name, tmp_path / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield tmp_path
    sys.modules.pop("trails", None)


Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(trails: Path, capsys: pytest.CaptureFixture[str]) -> Run:
    def go(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return go


WALDO = '{"trail_id": "waldo-lake-3536"}'


def test_a_call_prints_its_outcome_and_its_exit_code_says_whether_it_was_ok(run: Run) -> None:
    code, out, _ = run("call", "classify_damage", WALDO, "--actor", "trail-assessor")
    assert code == 0
    assert out.startswith("ok  classify_damage")
    assert "rule survey-tools" in out
    assert '"damage_class":3' in out.replace(" ", "")
    code, out, _ = run("call", "classify_damage", WALDO, "--actor", "visitor")
    assert (code, out.split()[0]) == (1, "denied")
    assert run("call", "classify_damage", '{"trail_id": "betty-lake-3664"}', "--actor", "trail-assessor")[0] == 0


def test_where_a_tool_broke_is_shown_with_its_record(trails: Path, run: Run) -> None:
    (trails / "broken.py").write_text(
        "from interlock import tool\n\n@tool(effect='read')\nasync def broken() -> int:\n    return {}['depth']\n"
    )
    (trails / "open.toml").write_text(ALLOW)
    code, out, _ = run("call", "broken", "{}", "--tools", "broken:broken", "--policy", "open.toml")
    assert code == 1
    assert "it raised KeyError, whose traceback is in the log" in out
    row = json.loads(run("audit", "show", "--id", "1")[1])
    assert "in broken\n    return {}['depth']" in row["traceback"]
    assert row["traceback"].endswith("KeyError: 'depth'")
    sys.modules.pop("broken", None)


def test_a_call_as_json_is_for_scripts(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run("call", "search_reports", '{"query": "waldo", "top_k": 500}', "--json")
    outcome = json.loads(out)
    assert (code, outcome["status"], len(outcome["value"])) == (0, "ok", 10)
    assert outcome["verdict"]["rewrites"] == [{"field": "top_k", "before": 500, "after": 10, "rule": "fewer-reports"}]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(WALDO.encode())))
    assert run("call", "classify_damage", "-", "--actor", "trail-assessor", "--mode", "dry_run")[0] == 0


def test_a_clamped_and_a_long_answer_are_readable(run: Run) -> None:
    _, out, _ = run("call", "search_reports", '{"query": "waldo", "top_k": 500}')
    assert "top_k: 500 → 10 (rule fewer-reports)" in out
    assert '\n    "field report 02' in out


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("call", "classify_damage", "{nonsense"), 2, "arguments are not JSON"),
        (("call", "x", "{}", "--store", "redis://x"), 2, "is not one of memory://"),
        (("call", "x", "{}", "--policy", "none.toml"), 1, "there is no such policy file"),
        (("call", "x", "{}", "--tools", "nowhere:TOOLS"), 2, "cannot be imported"),
        (("call", "x", "{}", "--config", "none.toml"), 2, "there is no such file"),
        (("call", "x", "{}", "--store", "sqlite:///no/such/folder/x.db"), 3, "does the folder exist"),
        (("audit", "show"), 2, "there is no ledger yet"),
        (("policy", "check", "--config", "bare.toml"), 2, "no tools are known"),
        (("policy", "test", "none.toml"), 2, "none.toml: cannot be read: No such file"),
        (("policy", "test", "."), 2, "cannot be read"),
        (("policy", "test", "unknown.json"), 2, "a case has name, tool, arguments, expect and more"),
        (("audit", "export", "--json"), 2, "--json has no effect on audit export, which writes JSONL, or CSV"),
        (("metrics", "--prometheus", "--json"), 2, "--json has no effect on it: choose one of them"),
        (("metrics", "enforcement", "--prometheus"), 2, "--prometheus has no effect on metrics enforcement: leave it"),
        (("metrics", "enforcement", "--limits"), 2, "--limits has no effect on metrics enforcement: leave it out"),
        (("metrics", "enforcement", "--tool", "x"), 2, "--tool has no effect on metrics enforcement: leave it out"),
        (("metrics", "--limits", "--prometheus"), 2, "--prometheus has no effect on metrics --limits: leave it out"),
        (("metrics", "--limits", "--since", "7d"), 2, "--since has no effect on metrics --limits: leave it out"),
        (("call", "x", "{}", "--tools", ":x"), 2, "cannot be imported"),
        (("call", "x", "{}", "--tools", "trails:Season"), 2, "neither a Tool nor a list of Tools"),
        (
            ("call", "x", "{}", "--tools", "trails:TOOLS", "--tools", "trails:classify_damage"),
            2,
            "a tool of that name already",
        ),
        (("call", "x", "[" * 5000), 2, "arguments are not JSON"),
        (("audit", "anchor", "--key", "/proc/nope/k.pem"), 2, "there is no ledger yet"),
        (("policy", "explain", "none.json"), 2, "cannot be read"),
        (("policy", "explain", "bare.toml"), 2, "not a call"),
        (("policy", "explain", "unknown.json"), 2, "there is no tool 'nope'"),
        (("tools", "show", "clasify_damage"), 2, "did you mean 'classify_damage'?"),
        (("tools", "show", "zzzzzzzzzzzzzzz"), 2, "there is no tool"),
    ],
)
def test_every_error_is_one_sentence_with_a_way_out(
    trails: Path, run: Run, arguments: tuple[str, ...], code: int, sentence: str
) -> None:
    (trails / "bare.toml").write_text('policy = "policy.toml"\n')
    (trails / "unknown.json").write_text('{"tool": "nope"}')
    found, out, error = run(*arguments)
    assert (found, out) == (code, "")
    assert error.startswith("interlock: ")
    assert sentence in error
    assert "Traceback" not in error


def test_policy_check_says_that_all_is_well_or_what_is_not(trails: Path, run: Run) -> None:
    code, out, _ = run("policy", "check")
    assert (code, "8 rules for 7 tools, all can decide" in out) == (0, True)
    with (trails / "policy.toml").open("a") as policy:
        policy.write('\n[[rule]]\nid = "idle"\ntools = ["crew_contact"]\ndecision = "allow"\nwhen = "false"\n')
    code, out, _ = run("policy", "check")
    assert (code, "'idle' can never decide" in out) == (1, True)
    assert json.loads(run("policy", "check", "--json")[1])["never_decide"]
    with (trails / "policy.toml").open("a") as policy:
        policy.write('\n[review]\napprovers = ["user:lea"]\n')
    assert json.loads(run("policy", "check", "--json")[1])["never_approved"]
    with (trails / "policy.toml").open("a") as policy:
        policy.write(
            '\n[[rule]]\nid = "bad"\ntools = ["crew_contact"]\ndecision = "allow"\nwhen = "args.fone == \'\'"\n'
        )
    code, _, error = run("policy", "check")
    assert code == 1
    assert "the tool has no parameter 'fone'; did you mean 'args.phone'?" in error


def test_policy_check_finds_keys_and_lists_that_cannot_be_read(trails: Path, run: Run) -> None:
    (trails / "garbage.pem").write_text("garbage")
    (trails / "names.txt").write_text("ann\n")
    with (trails / "policy.toml").open("a") as policy:
        policy.write(
            '\n[review]\nkeys = ["reviewers.pem", "garbage.pem", "ed25519:12"]\n[lists.fine]\nfile = "names.txt"\n'
            '[lists.gone]\nfile = "nofile.txt"\n'
            '[lists.asked]\ndatabase = "sqlite:///none.db"\nquery = "SELECT 1"\n'
        )
    code, out, _ = run("policy", "check")
    said = " ".join(out.split())
    assert (code, out.count("✗"), "✓" in out) == (1, 5, False)
    for sentence in (
        "reviewers.pem: cannot be read: No such file or directory",
        "garbage.pem: not a PEM key",
        "'ed25519:12' is no key",
        "[lists.gone]: the file 'nofile.txt' cannot be read, so that every rule that asks it denies: No such file",
        "[lists.asked]: what its query asks for cannot be read",
    ):
        assert sentence in said
    assert len(json.loads(run("policy", "check", "--json")[1])["never_read"]) == 5


def test_policy_coverage_fails_on_a_tool_without_a_decision(trails: Path, run: Run) -> None:
    code, out, _ = run("policy", "coverage")
    assert (code, out.count("✓")) == (0, 7)
    text = (trails / "policy.toml").read_text().replace('tools = ["crew_contact"]', 'tools = ["classify_damage"]')
    (trails / "policy.toml").write_text(text)
    code, out, _ = run("policy", "coverage")
    assert (code, "no rule: every call is denied" in out) == (1, True)
    assert json.loads(run("policy", "coverage", "--json")[1])["without_decision"] == ["crew_contact"]


def test_policy_test_runs_the_cases_people_wrote(trails: Path, run: Run) -> None:
    code, out, _ = run("policy", "test", "cases.toml")
    assert (code, "5 passed, 0 failed" in out) == (0, True)
    with (trails / "cases.toml").open("a") as cases:
        cases.write(
            '[[case]]\nname = "wrong"\ntool = "crew_contact"\narguments = { crew = "a", phone = "b" }\nexpect = "allow"\nrule = "x"\nreason = "zzz"\n'
        )
        cases.write('[[case]]\nname = "no tool"\ntool = "nope"\nexpect = "deny"\n')
        cases.write('[[case]]\nname = "bad arguments"\ntool = "crew_contact"\nexpect = "deny"\nrule = "contract"\n')
        cases.write(
            '[[case]]\nname = "not clamped"\ntool = "search_reports"\narguments = { query = "x" }\nexpect = "allow"\nbecomes = { top_k = 9 }\n'
        )
    code, out, _ = run("policy", "test", "cases.toml")
    assert (code, "7 passed, 2 failed" in out) == (1, True)
    assert "verdict should be 'allow', is 'review'" in out
    assert "arguments.top_k should be 9, is 5" in out
    assert len(json.loads(run("policy", "test", "cases.toml", "--json")[1])["failed"]) == 2
    (trails / "cases.toml").write_text("[[case]]\nnam = 'x'\n")
    code, _, error = run("policy", "test", "cases.toml")
    assert (code, "see docs/policy.md" in error) == (2, True)


def test_policy_explain_shows_what_each_rule_says(trails: Path, run: Run) -> None:
    call = {
        "tool": "classify_damage",
        "arguments": {"trail_id": "waldo-lake-3536", "season": "winter"},
        "actor": "trail-assessor",
    }
    (trails / "call.json").write_text(json.dumps(call))
    code, out, _ = run("policy", "explain", "call.json")
    assert code == 0
    assert "deny by rule winter-needs-lead" in out
    assert "survey-tools" in out
    assert json.loads(run("policy", "explain", "call.json", "--json")[1])["verdict"]["decision"] == "deny"
    (trails / "call.json").write_text(json.dumps({**call, "actor": "visitor"}))
    assert "deny by grant" in run("policy", "explain", "call.json")[1]
    (trails / "call.json").write_text(json.dumps({"tool": "classify_damage"}))
    assert "deny by contract" in run("policy", "explain", "call.json")[1]
    assert json.loads(run("policy", "explain", "call.json", "--json")[1])["verdict"]["rule"] == "contract"
    (trails / "call.json").write_text(json.dumps({"tool": "search_reports", "arguments": {"query": "x", "top_k": 99}}))
    assert "top_k: 99 → 10" in run("policy", "explain", "call.json")[1]


@pytest.fixture
def used(run: Run) -> Run:
    run("call", "classify_damage", WALDO, "--actor", "trail-assessor", "--turn", "t1")
    run("call", "classify_damage", WALDO, "--actor", "visitor")
    run("call", "burn_severity", '{"fire": "x"}', "--actor", "burn-analyst", "--run", "r1")
    return run


def test_audit_show_lists_and_filters(used: Run) -> None:
    _, out, _ = used("audit", "show")
    assert out.startswith("3 records, newest first\n3  ")
    assert "×3" in out
    rows = json.loads(used("audit", "show", "--outcome", "denied", "--json")[1])
    assert [(row["actor"], row["rule"]) for row in rows] == [("visitor", "grant")]
    for filters, count in (
        (("--actor", "burn-analyst"), 1), (("--tool", "classify_damage"), 2), (("--turn", "t1"), 1), (("--since", "1h"), 3),
        (("--since", "2999-01-01"), 0), (("--before", "2999-01-01T00:00:00Z"), 3), (("--newest", "1"), 1),
    ):  # fmt: skip
        assert len(json.loads(used("audit", "show", "--json", *filters)[1])) == count, filters
    row = json.loads(used("audit", "show", "--id", "1")[1])
    assert row["arguments"] == {"season": "summer", "trail_id": "waldo-lake-3536"}
    assert "there is no record 99" in used("audit", "show", "--id", "99")[2]
    assert "is not a time" in used("audit", "show", "--since", "yesterday")[2]


def test_audit_anchor_verify_and_tampering(trails: Path, used: Run) -> None:
    code, out, _ = used("audit", "verify")
    assert (code, "✓ intact: 3 records" in out, "3 records are not yet anchored" in out) == (4, True, True)
    assert "no key is known here" in out
    assert "there is no key" in used("audit", "anchor", "--key", "typo.pem")[2]
    code, out, _ = used("audit", "anchor")
    assert (code, "added to anchors.jsonl" in out) == (0, True)
    assert oct((trails / "audit.key").stat().st_mode & 0o777) == "0o600"
    code, out, _ = used("audit", "verify")
    assert (code, "0 records are not yet anchored" in out) == (0, True)
    assert json.loads(used("audit", "anchor", "--json")[1])["n"] == 2
    assert json.loads(used("audit", "anchor", "--out", "-")[1])["n"] == 3
    assert json.loads(used("audit", "verify", "--json")[1])["intact"] is True
    assert "there are no anchors there" in used("audit", "verify", "--anchors", "none")[2]
    assert "cannot be read" in used("audit", "verify", "--key", "none")[2]
    (trails / "audit.key").rename(trails / "elsewhere.key")
    assert used("audit", "verify")[0] == 0, "its public half is still here"
    (trails / "audit.key.pub").unlink()
    code, out, _ = used("audit", "verify")
    assert (code, "no key is known here" in out) == (4, True)
    assert used("audit", "verify", "--key", "elsewhere.key")[0] == 0
    code, _, err = used("audit", "anchor")
    assert (code, "the key that signed this ledger is not there" in err) == (2, True), "no other is made in silence"
    import sqlite3

    connection = sqlite3.connect(trails / "trails.db")
    connection.execute("UPDATE records SET actor = 'nobody' WHERE id = 2")
    connection.commit()
    connection.close()
    code, out, _ = used("audit", "verify")
    assert (code, "✗ record 2" in out, "not intact" in out) == (1, True, True)
    assert json.loads(used("audit", "verify", "--json")[1])["intact"] is False


def test_a_signing_key_is_rotated_and_lost_from_the_command_line(
    trails: Path, used: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    used("audit", "anchor")
    old = json.loads(used("audit", "verify", "--json")[1])["key"]
    monkeypatch.setenv("INTERLOCK_KEY_PASSPHRASE", "horse battery")
    code, out, _ = used("audit", "rotate", "--encrypt", "--json")
    new = json.loads(out)["new"]
    assert (code, json.loads(out)["old"]) == (0, old)
    assert used("audit", "anchor")[0] == 0
    assert (json.loads(used("audit", "verify", "--json")[1])["key"], used("audit", "verify")[0]) == (new, 0)
    assert used("audit", "verify", "--key", f"audit.key.{old[:16]}")[0] == 0
    assert "so it is not lost" in used("audit", "rotate", "--lost")[2]
    monkeypatch.delenv("INTERLOCK_KEY_PASSPHRASE")
    assert "the key is encrypted" in used("audit", "anchor")[2]
    (trails / "audit.key").unlink()
    code, out, _ = used("audit", "rotate", "--lost")
    assert (code, "has to pin this one" in out) == (0, True)
    assert used("audit", "verify")[0] == 0
    code, out, _ = used("audit", "verify", "--key", f"audit.key.pub.{old[:16]}")
    assert (code, "signed by another key" in out) == (1, True)


def test_a_rotation_is_published_and_a_lost_key_points_to_its_way_out(
    trails: Path, used: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "log@example.org")
    subprocess.run(["git", "init", "--quiet", "witness"], check=True, cwd=trails)
    with (trails / "interlock.toml").open("a") as settings:
        settings.write(f'publish = ["git:{trails / "witness"}"]\n')
    for command in (("anchor",), ("rotate",)):
        assert used("audit", *command)[0] == 0
    (trails / "audit.key").unlink()
    code, _, error = used("audit", "rotate")
    assert (code, "interlock audit rotate --lost" in error, list(trails.glob("audit.key.new*"))) == (2, True, [])
    assert used("audit", "rotate", "--lost")[0] == 0
    (published,) = (trails / "witness").glob("*.anchors.jsonl")
    assert published.read_bytes() == (trails / "anchors.jsonl").read_bytes()
    assert [json.loads(line)["n"] for line in published.read_text().splitlines()] == [1, 2, 3]
    whole = used("audit", "key")[1].strip()
    assert whole == json.loads(used("audit", "verify", "--json")[1])["key"]


def test_a_key_that_the_ledger_refuses_is_not_left_behind_and_one_that_it_took_is_put_in_place(
    trails: Path, used: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    code, _, error = used("audit", "rotate", "--lost")
    assert (code, "nothing was signed yet" in error, list(trails.glob("audit.key.new*"))) == (2, True, [])
    used("audit", "anchor")

    def die(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("interlock.cli.anchors._put_in_place", die)
        assert used("audit", "rotate")[0] == 130
    assert used("audit", "rotate")[0] == 0
    assert (used("audit", "anchor")[0], used("audit", "verify")[0]) == (0, 0)


def test_anchors_of_two_ledgers_do_not_share_a_file(trails: Path, used: Run) -> None:
    assert used("audit", "anchor")[0] == 0
    other = ("--store", f"sqlite:///{trails / 'second.db'}")
    used("call", "classify_damage", WALDO, "--actor", "trail-assessor", *other)
    for command in (("anchor",), ("rotate",)):
        code, _, error = used("audit", *command, *other)
        assert (code, "holds anchors of another ledger" in error) == (2, True)
    assert used("audit", "anchor", "--out", "second.jsonl", *other)[0] == 0
    assert used("audit", "verify", "--anchors", "second.jsonl", *other)[0] == used("audit", "verify")[0] == 0
    code, out, _ = used("audit", "verify", "--anchors", "second.jsonl")
    assert (code, "3 records are not yet anchored" in out) == (1, True), "anchors of another ledger cover nothing"


def test_where_anchors_cannot_go_is_said_before_anything_is_signed(trails: Path, used: Run) -> None:
    for where in ("ftp://x", "git:", "witness"):
        code, _, error = used("audit", "anchor", "--publish", where)
        assert (code, "anchors go to git:FOLDER or https://" in error) == (2, True)
    assert not (trails / "anchors.jsonl").exists()
    (trails / "interlock.toml").write_text('publish = "git:witness"\n')
    code, _, error = used("audit", "anchor")
    assert (code, 'it is a list: write publish = ["git:witness"]' in error) == (2, True)


def test_audit_export_writes_jsonl_and_csv(trails: Path, used: Run) -> None:
    _, out, _ = used("audit", "export")
    lines = [json.loads(line) for line in out.splitlines()]
    assert (lines[0]["complete"], [line["id"] for line in lines[1:]]) == (True, [1, 2, 3])
    code, _, error = used("audit", "export", "--format", "csv", "--out", "x.csv", "--actor", "visitor")
    assert (code, "1 record written to x.csv" in error) == (0, True)
    assert (trails / "x.csv").read_text().count("\n") == 2


def test_metrics_as_table_json_and_prometheus(used: Run) -> None:
    _, out, _ = used("metrics")
    assert "burn-analyst" in out
    assert "grant" in out
    assert json.loads(used("metrics", "--json", "--actor", "burn-analyst")[1])["lines"][0]["retries"] == 2
    assert (
        'interlock_calls_total{actor="visitor",tool="classify_damage",outcome="denied",repeat="false"} 1'
        in used("metrics", "--prometheus")[1]
    )


def test_limits_show_what_was_spent(used: Run) -> None:
    _, out, _ = used("metrics", "--limits")
    assert "per-agent-day" in out
    day = r"20\d\d-\d\d-\d\d 00:00:00 UTC"
    assert re.search(rf"actor burn-analyst +{day} to {day} +1 of 500, 499 left +0.0020 of 1.0000, 0.9980 left", out)
    assert re.search(r"imagery +\S+ +burn_severity|imagery +all +burn_severity|imagery +\S+ +all", out)
    assert "|" not in out
    found = json.loads(used("metrics", "--limits", "--json")[1])
    day = next(item for scope, item in found["budgets"].items() if "burn-analyst" in scope)
    assert (day["calls"], day["cost_micros"]) == (1, 2000)
    assert list(found["buckets"].values()) == [4.0]


def test_config_show_cuts_a_long_value_visibly_and_has_it_whole_in_json(trails: Path, run: Run) -> None:
    names = [f"trails:TOOLS_{number}" for number in range(12)]
    where = "sqlite:///" + "x" * 600
    (trails / "long.toml").write_text(f"tools = {json.dumps(names)}\nstore = {json.dumps(where)}\n")
    _, out, _ = run("config", "show", "--config", "long.toml")
    assert max(map(len, out.splitlines())) < 320
    assert f"{where[:200]}… (610 characters; --json has all of them)" in out
    assert "tools = 12 values:" in out
    assert [line.strip() for line in out.splitlines() if "TOOLS_" in line] == names
    shown = json.loads(run("config", "show", "--config", "long.toml", "--json")[1])
    assert (shown["store"]["value"], shown["tools"]["value"]) == (where, names)


def test_config_show_prints_every_value_and_its_origin(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("INTERLOCK_THREADS", "3")
    _, out, _ = run("config", "show")
    assert "threads = 3  (environment INTERLOCK_THREADS)" in out
    assert all(len(line) <= 100 for line in out.splitlines() if line.startswith("    ")), "it fits a pipe"
    shown = json.loads(run("config", "show", "--json")[1])
    assert shown["threads"] == {"value": 3, "from": "environment INTERLOCK_THREADS"}
    assert shown["policy"]["from"] == "interlock.toml"


def test_tools_are_listed_and_shown(run: Run) -> None:
    assert "6 tools" in run("tools", "list")[1]
    assert run("tools", "list", "--capability", "trails:read")[1].splitlines()[0].rstrip() == "1 tool"
    assert len(json.loads(run("tools", "list", "--actor", "visitor", "--json")[1])) == 5
    shown = json.loads(run("tools", "show", "classify_damage", "--json")[1])
    assert (shown["effect"], shown["capabilities"], shown["timeout_s"]) == ("read", ["trails:read"], 5.0)


def test_help_is_worth_reading(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    out = capsys.readouterr().out
    for words in (
        "exit codes:",
        "settings:",
        "examples:",
        "call",
        "tools",
        "policy",
        "audit",
        "metrics",
        "config",
    ):
        assert words in out
    assert main([]) == 0
    assert capsys.readouterr().out == out


def test_the_module_runs_as_a_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "interlock", "--version"],
        capture_output=True,
        text=True,
        timeout=600,
        check=True,
    )
    assert done.stdout == "interlock 0.1.0\n"


def test_a_reader_that_goes_away_is_no_error(trails: Path, used: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    class Gone(io.StringIO):
        def write(self, text: str) -> int:
            raise BrokenPipeError

    monkeypatch.setattr(sys, "stdout", Gone())
    monkeypatch.setattr(sys, "stderr", io.StringIO())
    assert main(["audit", "export"]) == 0


def test_other_errors_of_ours_are_told_too(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from interlock import InterlockError
    from interlock.cli import config

    def fail(given: Any) -> int:
        raise InterlockError("something else")

    monkeypatch.setattr(config, "_show", fail)
    assert main(["config", "show"]) == 1


@pytest.mark.slow
def test_the_demonstration_shows_everything_it_promises(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(TRAILS / "demo.py")],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    for words in (
        "ok  classify_damage",
        "did you mean 'season'",
        "winter classes are given",
        "top_k: 500 → 10",
        "gave no answer within",
        "3 attempts",
        "parked",
        "planned, not performed",
        '+  "reason": "41.5 downed trees a mile"',
        "1 of 1 done",
        "✓ intact",
        "0 records are not yet anchored",
    ):
        assert words in done.stdout, words


def test_what_a_model_wrote_cannot_steer_the_terminal(run: Run, capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b]0;PWNED\x07\x1b[2J[/x]"
    for arguments in (json.dumps({bad: 1}), json.dumps({"trail_id": bad})):
        _, out, _ = run("call", "classify_damage", arguments, "--actor", "trail-assessor")
        assert "\x1b" not in out
    _, out, _ = run("call", "[/x]\x1b[2J", "{}")
    assert "\x1b" not in out
    for command in (("audit", "show"), ("metrics",)):
        _, out, _ = run(*command)
        assert "\x1b" not in out
        assert "PWNED" in out or command == ("metrics",)


def test_explain_takes_odd_names_and_shows_rules_as_the_engine_asks_them(trails: Path, run: Run) -> None:
    call = {"tool": "search_reports", "arguments": {"query": "x", "top_k": 99}, "actor": "[/oops]"}
    (trails / "call.json").write_text(json.dumps(call))
    with (trails / "policy.toml").open("a") as policy:
        policy.write(
            '\n[[rule]]\nid = "many"\ntools = ["search_reports"]\ndecision = "deny"\nwhen = "args.top_k > 10"\n'
        )
    shown = json.loads(run("policy", "explain", "call.json", "--json")[1])
    assert (shown["verdict"]["decision"], shown["arguments"]["top_k"]) == ("allow", 10)
    assert {item["rule"]["id"]: item["matched"] for item in shown["rules"]}["many"] is False
    assert run("policy", "explain", "call.json")[0] == 0


def test_files_that_cannot_be_written_are_named_before_anything_is_done(trails: Path, used: Run) -> None:
    code, _, error = used("audit", "anchor", "--out", "no/such/folder/a.jsonl")
    assert (code, "no/such/folder" in error) == (2, True)
    assert json.loads(used("audit", "verify", "--json")[1])["checkpoints"] == 0
    assert used("audit", "export", "--out", "no/such/folder/x")[0] == 2
    assert used("audit", "show", "--id", "9" * 30)[0] == 2

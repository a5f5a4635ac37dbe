"""Changing the world from the command line: plan, apply, review, undo, replay, recover, halt, shadow."""

from __future__ import annotations

import asyncio
import csv
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from interlock.audit import load_or_make_key
from interlock.cli.main import main
from interlock.ports import SystemClock
from interlock.principals import default_principal
from interlock.stores import open_store
from interlock.transitions import Batch, Committed, OpenClaim

TOOLS = '''
from interlock import Context, tool
from interlock.resources import Documents

shelf = Documents("sqlite:///documents.db", "shelf")


@tool(effect="write", key="{id}", resource=shelf, simulate=lambda state, a: {**(state or {}), "title": a["title"]},
      redact={"pin"})
async def set_title(id: str, title: str, context: Context, pin: str = "") -> str:
    """Set a title."""
    found = await shelf.read_state(id)
    await shelf.write(id, {**(found.value if found else {}), "title": title}, context)
    if title == "then breaks":
        raise RuntimeError("the second step failed")
    return title


@tool(effect="send")
async def mail(to: str) -> str:
    """Send a mail."""
    if to.startswith("lost"):
        raise RuntimeError("no answer")
    return "sent"


def break_(state, arguments):
    raise LookupError("no such shelf")


@tool(effect="write", key="{id}", resource=shelf, simulate=break_)
async def unplannable(id: str) -> str:
    """Cannot say what it would do."""
    return id


TOOLS = [set_title, mail, unplannable]
'''
POLICY = """
version = 1
mode = "apply"
[[rule]]
id = "open"
tools = ["set_title", "mail", "unplannable", "undo.*"]
decision = "allow"
[[rule]]
id = "ask"
tools = ["set_title"]
decision = "review"
when = "args.id == 'precious'"
reason = "somebody should look"
"""
COUNT = '''
@tool(effect="write", key="{id}", resource=shelf, simulate=lambda state, a: {"count": a["count"]})
async def set_count(id: str, count: int, context: Context) -> int:
    """Set a count."""
    await shelf.write(id, {"count": count}, context)
    return count


TOOLS.append(set_count)
'''
CLAMP = """
[[rule]]
id = "count"
tools = ["set_count"]
decision = "allow"
[[rule]]
id = "few"
tools = ["set_count"]
decision = "clamp"
when = "args.count > 25"
set = { count = 25 }
"""
SETTINGS = 'tools = ["shop:TOOLS"]\n'
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Iterator[Run]:
    """A folder with tools and a policy, and the command line in it."""
    for name, text in (("shop.py", TOOLS), ("policy.toml", POLICY), ("interlock.toml", SETTINGS)):
        (tmp_path / name).write_text(text)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.syspath_prepend(str(tmp_path))

    def go(*arguments: str) -> tuple[int, str, str]:
        code = main(arguments)
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    yield go
    leave_shop()


def leave_shop() -> None:
    """Forget the tools, and let go of what they opened."""
    shop = sys.modules.pop("shop", None)
    if shop is not None:
        asyncio.run(shop.shelf.close())


def title(run: Run, key: str, text: str, *more: str) -> tuple[int, str, str]:
    return run("call", "set_title", json.dumps({"id": key, "title": text}), *more)


def test_a_plan_is_looked_at_and_then_exactly_that_is_performed(run: Run) -> None:
    code, out, _ = title(run, "a", "new", "--mode", "dry_run")
    assert (code, out.split()[0]) == (0, "planned")
    assert '+  "title": "new"' in out
    digest = json.loads(title(run, "a", "new", "--mode", "dry_run", "--json")[1])["plan"]["digest"]
    assert title(run, "a", "newer", "--plan", digest)[0] == 1
    assert title(run, "a", "new", "--plan", digest)[0] == 0
    code, out, _ = title(run, "a", "new", "--plan", digest)
    assert (code, "the resource changed since the plan was looked at" in out) == (1, True)
    assert ("rule plan_moved: the resource changed" in out, "allows this" in out) == (True, False)


def test_undo_shows_first_and_then_does_it(run: Run) -> None:
    title(run, "a", "one", "--run", "r")
    title(run, "b", "two", "--run", "r")
    run("call", "mail", '{"to": "x"}', "--run", "r")
    code, out, _ = run("undo", "--run", "r")
    assert (code, "2 of 3 changes would be taken back; do it with --yes" in out) == (0, True)
    assert "a send cannot be taken back" in out
    code, out, _ = run("undo", "--run", "r", "--yes")
    assert (code, "2 of 3 done" in out) == (1, True)
    shown = json.loads(run("undo", "--run", "r", "--json")[1])
    assert [step["of"] for step in shown] == ["mail"]
    code, out, _ = run("replay", "--run", "r")
    assert (code, "2 of 2 changes would be made again" in out) == (0, True)
    assert run("replay", "--run", "r", "--yes")[0] == 0
    assert run("replay", "--run", "r", "--yes", "--json")[:2] == (1, "[]\n")
    assert run("undo", "--key", "shelf/a", "--since", "1h", "--yes")[0] == 0


def test_undo_leaves_what_lies_behind_a_send_that_was_not_taken_back_and_says_so(run: Run, tmp_path: Path) -> None:
    unsend = '@tool(effect="send")\nasync def unsend(to: str) -> str:\n    raise Permanent("it was read")\n\n\n'
    text = TOOLS.replace('@tool(effect="send")', '@tool(effect="send", compensate=UNSEND)').replace(
        "TOOLS = [", unsend + "TOOLS = [unsend, "
    )
    head = "from interlock import Compensation\nfrom interlock.errors import Permanent\n"
    head += 'UNSEND = Compensation("unsend", lambda arguments, value: arguments)\n'
    (tmp_path / "shop.py").write_text(head + text)
    (tmp_path / "policy.toml").write_text(POLICY.replace('"mail", ', '"mail", "unsend", '))
    title(run, "a", "one", "--run", "r")
    assert run("call", "mail", '{"to": "x"}', "--run", "r")[0] == 0
    code, out, _ = run("undo", "--run", "r")
    assert (code, "2 of 2 changes would be taken back; do it with --yes" in out) == (0, True)
    code, out, _ = run("undo", "--run", "r", "--yes")
    assert (code, "0 of 2 done" in out) == (1, True)
    assert "(mail) came after it and is not taken back; see to that one first" in out
    assert "left as it is: record " in out


def test_a_ticket_is_listed_shown_decided_and_resumed(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    arguments = json.dumps({"id": "precious", "title": "x", "pin": "zebra-pin"})
    code, out, _ = run("call", "set_title", arguments, "--turn", "t")
    assert (code, out.split()[0]) == (1, "parked")
    (ticket,) = json.loads(run("review", "list", "--json")[1])
    name = ticket["id"]
    assert "somebody should look" in run("review", "list")[1]
    code, out, _ = run("review", "show", name)
    assert (code, '+  "title": "x"' in out, "zebra-pin" in out) == (0, True, False)
    assert "zebra-pin" not in run("review", "show", name, "--json")[1]
    code, _, err = run("review", "approve", name)
    assert (code, "asked for this, so somebody else decides" in err) == (1, True)
    monkeypatch.setenv("LOGNAME", "bob")
    assert run("review", "approve", name)[0] == 1
    assert run("review", "resume", name)[0] == 1
    monkeypatch.setattr("interlock.cli.review.default_principal", lambda: "os:boss")
    monkeypatch.setattr("interlock.operations.approvals.default_principal", lambda: "os:boss")
    code, out, _ = run("review", "approve", name, "--reason", "fine", "--resume", "--json")
    assert (code, json.loads(out)["status"]) == (0, "ok")
    code, _, err = run("review", "deny", name)
    assert (code, "is spent, not open" in err) == (1, True)
    assert "spent" in run("review", "list", "--all")[1]
    assert run("review", "show", "nope")[0] == 2
    assert run("review", "resume", "nope")[0] == 2


def test_a_service_decides_with_a_token_of_a_trusted_key(run: Run, tmp_path: Path) -> None:
    title(run, "precious", "x")
    (ticket,) = json.loads(run("review", "list", "--json")[1])
    load_or_make_key(tmp_path / "service.key")
    token = run("review", "token", "deployer", "--key", "service.key", "--for", "5m")[1]
    assert json.loads(run("review", "token", "d", "--key", "service.key", "--json")[1])["name"] == "d"
    (tmp_path / "token").write_text(token)
    code, _, err = run("review", "approve", ticket["id"], "--token", "token")
    assert (code, "no key is trusted" in err) == (1, True)
    policy = tmp_path / "policy.toml"
    policy.write_text(policy.read_text() + '[review]\nkeys = ["service.key"]\n')
    code, _, err = run("review", "approve", ticket["id"], "--token", "token")
    assert (code, "no key is trusted" in err) == (1, True), "its terms are those under which it was asked"
    title(run, "precious", "y")
    ticket = json.loads(run("review", "list", "--json")[1])[-1]
    code, out, _ = run("review", "approve", ticket["id"], "--token", "token")
    assert (code, "approved by token:deployer" in out) == (0, True)
    (tmp_path / "token").write_text("forged")
    code, _, err = run("review", "deny", ticket["id"], "--token", "token")
    assert (code, "not a token" in err) == (1, True)


def test_what_is_in_doubt_is_recovered_or_asked(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    code, out, _ = run("call", "mail", '{"to": "lost"}', "--turn", "t", "--call-id", "c")
    assert (code, out.split()[0]) == (1, "unknown")
    code, out, _ = run("recover")
    assert (code, "1 effect was in doubt" in out, "asked" in out) == (1, True, True)
    (found,) = json.loads(run("recover", "--json")[1])
    monkeypatch.setattr("interlock.cli.review.default_principal", lambda: "os:boss")
    monkeypatch.setattr("interlock.operations.approvals.default_principal", lambda: "os:boss")
    assert run("review", "deny", found["ticket"], "--reason", "it is not in the outbox")[0] == 0
    code, out, _ = run("recover")
    assert (code, "0 effects were in doubt" in out) == (0, True)


def test_what_is_in_doubt_names_the_way_out_and_recover_says_what_each_question_is_about(run: Run) -> None:
    for number in (1, 2):
        code, out, _ = run("call", "mail", json.dumps({"to": f"lost {number}"}), "--call-id", f"m-{number}")
        assert (code, "`interlock recover` settles it" in out) == (1, True)
    out = run("recover")[1]
    tickets = {ticket["call"]: ticket["id"] for ticket in json.loads(run("review", "list", "--json")[1])}
    for number in (1, 2):
        assert f"mail  call m-{number}  begun 20" in out
        assert f'{{"to":"lost {number}"}}' in out
        ticket = tickets[f"m-{number}"]
        assert f"ticket {ticket}: interlock review show {ticket}" in out
        assert (
            f"Ticket {ticket} asks a person"
            in run("call", "mail", json.dumps({"to": f"lost {number}"}), "--call-id", f"m-{number}")[1]
        )


def test_a_change_that_is_there_and_whose_tool_broke_is_marked(run: Run) -> None:
    code, out, _ = run("call", "set_title", '{"id": "a", "title": "then breaks"}')
    assert (code, out.split()[0]) == (0, "ok")
    assert "answer_lost: it landed (the resource shows it), and its answer is lost: it raised RuntimeError" in out
    assert out.count("it landed") == 1
    assert "it landed" in run("audit", "show")[1]


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (("mail", '{"to": "lost"}'), "RuntimeError: no answer"),
        (("unplannable", '{"id": "a"}'), "LookupError: no such shelf"),
    ],
)
def test_a_traceback_that_is_in_the_log_is_shown_when_the_log_is(run: Run, call: tuple[str, str], said: str) -> None:
    code, out, err = run("call", *call)
    where = "whose traceback is in the log (logger interlock; a command shows it with --verbose)"
    assert (code, where in out, err) == (1, True, "")
    code, out, err = run("call", *call, "--verbose")
    assert (code, said in err, 'shop.py", line ' in err, said in out) == (1, True, True, False)
    assert run("call", *call)[2] == "", "of one command only"


def test_a_halt_stops_and_an_unhalt_lets_go(run: Run) -> None:
    title(run, "a", "one")
    assert "nothing is halted" in run("halt", "--list")[1]
    code, out, err = run("halt")
    assert (code, out, "name --tool, --actor, --run or --all" in err) == (2, "", True)
    assert run("halt", "--tool", "set_title", "--reason", "x\nhalted  everything")[0] == 0
    code, out, _ = title(run, "a", "two")
    assert (code, "tool set_title was halted by" in out) == (1, True)
    assert len(run("halt", "--list")[1].splitlines()) == 1  # a reason cannot forge a line
    assert json.loads(run("halt", "--list", "--json")[1])[0]["scope"] == "tool:set_title"
    assert run("halt", "--tool", "")[0] == 2
    code, _, err = run("halt", "--tool", "set_titel")
    assert (code, "there is no tool 'set_titel' to halt; did you mean 'set_title'?" in err) == (2, True)
    shown = run("audit", "show", "--newest", "3")[1]
    assert ("scope tool:set_title" in shown, "null" in shown) == (True, False)
    assert run("unhalt")[0] == 2
    assert run("unhalt", "--tool", "")[0] == 2
    assert run("unhalt", "--tool", "mail")[0] == 1
    assert run("unhalt", "--tool", "set_title")[0] == 0
    assert title(run, "a", "two")[0] == 0
    assert run("halt", "--all")[0] == 0
    assert json.loads(run("unhalt", "--all", "--json")[1])["scope"] == "all"


def test_a_halt_of_somebody_whom_no_record_names_is_made_and_says_so(run: Run) -> None:
    title(run, "a", "one", "--actor", "nobody", "--run", "night")
    code, out, err = run("halt", "--actor", "nobdy")
    assert (code, "actor nobdy was halted" in out) == (0, True)
    assert err == "no record names the actor 'nobdy' yet; did you mean 'nobody'?\n"
    code, out, err = run("halt", "--run", "nigth", "--json")
    assert (code, [row["scope"] for row in json.loads(out)]) == (0, ["actor:nobdy", "run:nigth"])
    assert err == "none of the newest 2,000 records names the run 'nigth' yet; did you mean 'night'?\n"
    assert run("halt", "--actor", "nobody")[2] == ""
    assert run("halt", "--run", "night")[2] == ""
    assert run("halt", "--list")[2] == ""
    for scope in ("nobody", "nobdy"):
        assert run("unhalt", "--actor", scope)[0] == 0
    code, _, err = run("unhalt", "--run", "nihgt")
    assert (code, "'run:nihgt' is not halted; halted: run:night, run:nigth" in err) == (1, True)
    for scope in ("night", "nigth"):
        assert run("unhalt", "--run", scope)[0] == 0
    assert "is not halted; halted: nothing" in run("unhalt", "--all")[2]


def test_a_plan_set_from_a_file(run: Run, tmp_path: Path) -> None:
    changes = [{"tool": "set_title", "arguments": {"id": key, "title": "x"}} for key in ("a", "b")]
    (tmp_path / "set.json").write_text(json.dumps(changes))
    code, out, _ = run("plan-set", "set.json", "--name", "n")
    assert (code, out.count('+  "title": "x"')) == (0, 2)
    assert len(json.loads(run("plan-set", "set.json", "--name", "n", "--json")[1])["planned"]) == 2
    code, out, _ = run("plan-set", "set.json", "--name", "n", "--apply")
    assert (code, "2 of 2 changes made" in out) == (0, True)
    (tmp_path / "set.json").write_text(json.dumps(changes[:1] * 2))
    code, out, _ = run("plan-set", "set.json", "--name", "twice", "--apply")
    assert (code, "2 of 2 changes made" in out, ", repeats record" in out) == (0, True, True)
    assert "1 of them the same as another one of the set, and made once with that" in out
    (tmp_path / "set.json").write_text('[{"tool": "nope", "arguments": {}}]')
    assert run("plan-set", "set.json", "--name", "m", "--apply")[0] == 1
    assert run("plan-set", "set.json", "--name", "m", "--json")[0] == 1
    (tmp_path / "set.json").write_text("{")
    assert run("plan-set", "set.json", "--name", "m")[0] == 2
    (tmp_path / "set.json").write_text("[]")
    code, _, err = run("plan-set", "set.json", "--name", "m", "--apply")
    assert (code, "the list of changes is empty" in err) == (2, True)


def test_a_plan_set_shows_each_change_on_what_the_one_before_it_leaves(run: Run, tmp_path: Path) -> None:
    changes = [{"tool": "set_title", "arguments": {"id": "a", "title": title}} for title in ("one", "two", "two")]
    changes.append({"tool": "set_title", "arguments": {"id": "precious", "title": "x"}})
    (tmp_path / "set.json").write_text(json.dumps(changes))
    code, out, _ = run("plan-set", "set.json", "--name", "n")
    assert (code, out.count('-  "title": "one"'), out.count('+  "title": "two"')) == (0, 1, 1)
    assert "the same as change 2 of the set, and made once with that" in out
    assert "a person will be asked: somebody should look (rule 'ask')" in out
    code, out, _ = run("plan-set", "set.json", "--name", "n", "--apply")
    assert (code, "3 of 4 changes made" in out) == (1, True)
    again = json.loads(run("plan-set", "set.json", "--name", "n", "--json")[1])
    assert [item["diff"] is None for item in again["planned"]] == [False, False, True, False]
    (tmp_path / "set.json").write_text(json.dumps(changes[:1]))
    code, _, err = run("plan-set", "set.json", "--name", "n")
    assert (code, "there is another set called 'n'" in err) == (1, True)


def test_a_plan_set_that_is_refused_says_that_nothing_was_changed(run: Run, tmp_path: Path) -> None:
    changes = [{"tool": "set_title", "arguments": {"id": "a", "title": "x"}}, {"tool": "nope", "arguments": {}}]
    (tmp_path / "set.json").write_text(json.dumps([*changes, changes[0]]))
    code, out, _ = run("plan-set", "set.json", "--name", "n", "--apply")
    assert (code, out.splitlines()[0]) == (1, "refused, nothing was changed: change 2 of 3")
    assert "there is no tool 'nope'" in out
    assert '"title": "x"' not in out  # no plan, which would read as if something had come of it
    code, out, _ = run("plan-set", "set.json", "--name", "n")
    assert (code, '+  "title": "x"' in out, "would be refused: change 2 of 3" in out) == (1, True, True)
    assert "refused, nothing was changed" not in out
    assert (
        json.loads(run("plan-set", "set.json", "--name", "n", "--apply", "--json")[1])["refused"]["status"] == "denied"
    )


def test_a_preview_of_a_plan_set_shows_what_the_policy_clamps(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY + CLAMP)
    (tmp_path / "shop.py").write_text(TOOLS + COUNT)
    changes = [{"tool": "set_count", "arguments": {"id": "a", "count": count}} for count in (40, 3)]
    (tmp_path / "set.json").write_text(json.dumps(changes))
    code, out, _ = run("plan-set", "set.json", "--name", "n")
    assert (code, out.count("count: 40 → 25 (rule 'few')"), out.count("(rule 'few')")) == (0, 1, 1)
    notes = [item["notes"] for item in json.loads(run("plan-set", "set.json", "--name", "n", "--json")[1])["planned"]]
    assert notes == [["count: 40 → 25 (rule 'few')"], []]
    assert run("plan-set", "set.json", "--name", "n", "--apply")[0] == 0


def test_recover_says_what_is_under_way_and_when_to_run_it_again(run: Run) -> None:
    assert title(run, "a", "one")[0] == 0
    assert run("recover")[0] == 0

    async def leave_behind() -> None:
        """As a process does that is killed while it makes a change."""
        store = open_store("sqlite:///interlock.db")
        claim = OpenClaim("n", "request", 1, "holder", "c9", "set_title", ("shelf/a",), 30_000_000)
        assert isinstance(await store.commit(Batch(SystemClock().now_us(), (claim,))), Committed)
        await store.close()

    asyncio.run(leave_behind())
    code, out, _ = run("recover")
    assert (code, "0 effects were in doubt" in out) == (1, True)
    assert "1 change is under way, or left by a process that has just died" in out
    assert ("call c9" in out, "lease until" in out, "run interlock recover again after" in out) == (True, True, True)
    code, out, _ = run("recover", "--json")
    (found,) = json.loads(out)
    assert (code, found["state"], found["call"], found["until_us"] > found["begun_us"]) == (1, "under_way", "c9", True)


def test_a_plan_set_of_which_a_change_was_undone_says_so_and_stops(run: Run, tmp_path: Path) -> None:
    changes = [{"tool": "set_title", "arguments": {"id": key, "title": "x"}} for key in ("a", "b")]
    (tmp_path / "set.json").write_text(json.dumps(changes))
    assert run("plan-set", "set.json", "--name", "n", "--apply")[0] == 0
    assert run("undo", "--turn", "set:n", "--yes")[0] == 0
    stops = "change 1 of the set was made"
    code, out, _ = run("plan-set", "set.json", "--name", "n")
    assert (code, stops in out, "undone since; the set stops here" in " ".join(out.split())) == (0, True, True)
    code, out, _ = run("plan-set", "set.json", "--name", "n", "--apply")
    assert (code, stops in out, "0 of 2 changes made" in out) == (1, True, True)
    nothing = [run("undo", "--turn", "set:n", *more)[:2] for more in ((), ("--yes",))]
    assert (nothing[0], "nothing matches" in nothing[0][1], nothing[0][0]) == (nothing[1], True, 1)
    code, out, _ = run("replay", "--turn", "set:n", "--yes")
    assert (code, "2 of 2 done" in out) == (0, True)


def test_a_ticket_shows_the_record_that_made_its_change_however_often_it_is_resumed(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY + "[review]\nself_approval = true\n")
    waiting = json.loads(title(run, "precious", "x", "--turn", "t", "--call-id", "c", "--json")[1])
    made = json.loads(run("review", "approve", waiting["ticket"], "--resume", "--json")[1])
    again = json.loads(run("review", "resume", waiting["ticket"], "--json")[1])
    assert (again["repeats"], again["record"] > again["repeats"]) == (made["record"], True)
    shown = json.loads(run("review", "show", waiting["ticket"], "--json")[1])["made"]
    assert (shown["id"], shown["outcome"]) == (again["repeats"], "ok")


def test_every_door_says_that_a_change_was_not_made_as_planned(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(TOOLS.replace('"title": title}, context)', '"title": title.upper()}, context)'))
    (tmp_path / "policy.toml").write_text(POLICY + "[review]\nself_approval = true\n")
    code, out, _ = title(run, "a", "x")
    assert (code, "not as planned: shelf/a" in out) == (0, True)
    assert "not as planned" not in title(run, "a", "X")[1]
    waiting = json.loads(title(run, "precious", "x", "--json")[1])["ticket"]
    assert run("review", "approve", waiting, "--resume")[0] == 0
    (made,) = [line for line in run("review", "show", waiting)[1].splitlines() if line.startswith("made")]
    assert made.endswith("not as planned: shelf/precious")
    assert json.loads(run("review", "show", waiting, "--json")[1])["made"]["deviates"] == ["shelf/precious"]
    rows = json.loads(run("audit", "show", "--json", "--tool", "set_title")[1])
    assert sorted(row["deviates"] for row in rows if row["deviates"]) == [["shelf/a"], ["shelf/precious"]]
    assert run("audit", "export", "--out", "rows.csv", "--format", "csv")[0] == 0
    with (tmp_path / "rows.csv").open(encoding="utf-8", newline="") as file:
        assert {row["deviates"] for row in csv.DictReader(file)} == {"", "shelf/a", "shelf/precious"}


def test_shadow_plans_are_compared(run: Run) -> None:
    title(run, "a", "x", "--mode", "shadow", "--run", "s", "--turn", "1")
    title(run, "b", "x", "--mode", "shadow", "--run", "s", "--turn", "2")
    title(run, "c", "x", "--mode", "shadow", "--run", "s", "--turn", "3")
    title(run, "a", "x")
    title(run, "b", "y")
    code, out, _ = run("shadow", "--run", "s")
    assert (code, "1 of 2 agree (50%), 1 pending" in out) == (0, True)
    assert {item["verdict"] for item in json.loads(run("shadow", "--json")[1])} == {"agrees", "differs", "pending"}
    assert "nothing to compare yet" in run("shadow", "--run", "none")[1]


@pytest.mark.parametrize(
    ("arguments", "code", "sentence"),
    [
        (("undo",), 2, "undo what?"),
        (("undo", "--run", "nope"), 1, ""),
        (("replay",), 2, "replay what? name --run or --turn"),
        (("undo", "--since", "yesterday"), 2, "is not a time"),
        (("review", "approve", "nope"), 2, "there is no ticket 'nope'"),
        (("review", "token", "x", "--for", "long"), 2, "is not a stretch of time"),
        (("call", "set_title", '{"id": "a", "title": "x"}', "--plan", "what"), 1, ""),
    ],
)
def test_bad_input_gets_a_sentence(run: Run, arguments: tuple[str, ...], code: int, sentence: str) -> None:
    title(run, "z", "there is a ledger")
    got, _, err = run(*arguments)
    assert got == code
    assert sentence in err


def test_nothing_is_made_just_to_look(run: Run, tmp_path: Path) -> None:
    for command in (("recover",), ("undo", "--run", "r", "--yes"), ("review", "list"), ("halt", "--list"), ("shadow",)):
        code, _, err = run(*command, "--store", "sqlite:///typo.db")
        assert (code, "there is no ledger yet" in err) == (2, True)
    assert not (tmp_path / "typo.db").exists()


def test_a_ticket_is_shown_for_people(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY + '[review]\nquorum = 2\nremind = "1h"\n')
    assert run("call", "set_title", '{"id": "precious", "title": "x"}')[0] == 1
    (ticket,) = json.loads(run("review", "list", "--json")[1])
    code, out, _ = run("review", "show", ticket["id"])
    lines = {line[:12].strip(): line[13:] for line in out.splitlines()}
    assert (code, lines["asks"], lines["reminds"]) == (0, "may this call be made?", "every 1:00:00")
    assert (lines["approvals"], lines["may decide"]) == ("0 of 2", f"anybody but {ticket['asked_by']}")
    assert lines["created"].endswith(" UTC")
    assert not any(sign in out for sign in ("None", "_us", "'quorum'", "()", "[]"))


def test_a_ticket_does_not_list_whoever_may_not_decide_it(run: Run, tmp_path: Path) -> None:
    me = default_principal()
    given = '[[review.delegation]]\nof = "{}"\nto = "{}"\nuntil = {}\n'
    delegations = (
        given.format("os:boss", me, "2999-01-01")
        + given.format(me, "os:friend", "2999-01-01")
        + given.format("os:boss", "os:late", "2020-01-01")
        + given.format("os:boss", "os:sub", "2999-01-01")
    )
    for approvers, shown in (
        ([me, "os:boss"], "os:boss, os:sub for os:boss until 2999-01-02 00:00:00 UTC"),
        ([me], ""),
    ):
        review = f"[review]\napprovers = {json.dumps(approvers)}\n" + (delegations if shown else "")
        (tmp_path / "policy.toml").write_text(POLICY + review)
        run("call", "set_title", '{"id": "precious", "title": "x"}')
        ticket = json.loads(run("review", "list", "--json")[1])[-1]["id"]
        out = run("review", "show", ticket)[1]
        (line,) = [line[13:] for line in out.splitlines() if line.startswith("may decide")]
        assert line == shown or (not shown and line.startswith(f"nobody: of {me} nobody is left beside {me}"))


def test_an_approval_that_is_not_the_last_does_not_resume(run: Run, tmp_path: Path) -> None:
    (tmp_path / "policy.toml").write_text(POLICY + "[review]\nquorum = 2\nself_approval = true\n")
    run("call", "set_title", '{"id": "precious", "title": "x"}')
    (ticket,) = json.loads(run("review", "list", "--json")[1])
    code, out, _ = run("review", "approve", ticket["id"], "--resume")
    assert (code, "1 more approval needed" in out, "parked  set_title" in out) == (1, True, True)
    assert "has 1 of the 2 approvals that it needs" in out
    assert "denied" not in run("audit", "show")[1] + run("metrics")[1]


def test_undo_and_replay_show_what_was_sent_and_hide_what_is_redacted(run: Run, tmp_path: Path) -> None:
    (tmp_path / "shop.py").write_text(
        TOOLS.replace("async def mail(to: str)", "async def mail(to: str, pin: str = '')")
    )
    text = (tmp_path / "shop.py").read_text().replace('@tool(effect="send")', '@tool(effect="send", redact={"pin"})')
    (tmp_path / "shop.py").write_text(text)
    assert run("call", "mail", '{"to": "ann", "pin": "4711"}', "--run", "r")[0] == 0
    code, out, _ = run("undo", "--run", "r")
    assert (code, '"to":"ann"' in out, "4711" in out) == (0, True, False)
    (step,) = json.loads(run("undo", "--run", "r", "--json")[1])
    assert (step["arguments"]["to"], "4711" in str(step)) == ("ann", False)


def test_one_person_alone_settles_from_the_shell_whether_something_landed(run: Run, tmp_path: Path) -> None:
    with (tmp_path / "policy.toml").open("a") as policy:
        policy.write("[review]\nself_approval = true\n")
    assert run("call", "mail", '{"to": "lost"}', "--call-id", "m-1")[0] == 1
    code, out, _ = run("recover")
    assert (code, "1 effect was in doubt" in out) == (1, True)
    (ticket,) = json.loads(run("review", "list", "--json")[1])
    assert "did this effect land?" in run("review", "show", ticket["id"])[1]
    assert run("review", "approve", ticket["id"], "--reason", "it is in the outbox")[0] == 0
    code, out, _ = run("call", "mail", '{"to": "lost"}', "--call-id", "m-1")
    assert (code, "settled that it landed" in out) == (0, True)


SWAP = '''
@tool(effect="write", key=lambda given: (given["a"], given["b"]), resource=shelf, redact={"pin"})
async def swap(a: str, b: str, context: Context) -> str:
    """Swap two places, and break half-way."""
    await shelf.write(a, {"place": 2, "pin": "4711-22"}, context)
    raise RuntimeError("the line is gone")


TOOLS = [set_title, mail, unplannable, swap]
'''


def test_a_change_that_landed_in_part_is_seen_from_the_shell_and_not_settled_as_one_that_did_not(
    run: Run, tmp_path: Path
) -> None:
    with (tmp_path / "policy.toml").open("a") as policy:
        policy.write('[[rule]]\nid = "swap"\ntools = ["swap"]\ndecision = "allow"\n[review]\nself_approval = true\n')
    with (tmp_path / "shop.py").open("a") as shop:
        shop.write(SWAP)
    assert run("call", "swap", '{"a": "x", "b": "y"}', "--call-id", "s-1")[0] == 1
    assert "shelf/x moved since it was planned, shelf/y did not" in run("recover")[1]
    (ticket,) = json.loads(run("review", "list", "--json")[1])
    out = run("review", "show", ticket["id"])[1]
    shown = [line.split(maxsplit=1) for line in out.splitlines()[-8:]]
    nothing = [["before", "null"], ["planned", "null"]]
    now = ["now", '{"pin":"[redacted]","place":2}']
    assert shown == [["key", "shelf/x"], *nothing, now, ["key", "shelf/y"], *nothing, ["now", "null"]]
    assert json.loads(run("review", "show", ticket["id"], "--json")[1])["states"][0]["now"]["place"] == 2
    code, _, err = run("review", "deny", ticket["id"])
    assert (code, "shelf/x is not what it was before it" in err) == (1, True)
    (tmp_path / "interlock.toml").write_text("")
    assert "not shown: the settings name no tools" in run("review", "show", ticket["id"])[1]
    code, _, err = run("review", "deny", ticket["id"])
    assert (code, "its resource is not at hand to look again: name the tools" in err) == (1, True)
    asyncio.run(sys.modules["shop"].shelf.restore("x", None))
    (tmp_path / "interlock.toml").write_text(SETTINGS)
    assert run("review", "deny", ticket["id"])[0] == 0


def test_an_id_that_was_used_outside_a_turn_is_not_said_to_have_been_used_in_one(run: Run) -> None:
    assert run("call", "mail", '{"to": "ann"}', "--call-id", "m-1")[0] == 0
    code, out, _ = run("call", "mail", '{"to": "bob"}', "--call-id", "m-1")
    assert (code, "was used before for another call" in out, "turn" in out) == (1, True, False)

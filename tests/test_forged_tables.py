"""With write access to the database and no key: what decides is believed only as the ledger has it, and verify says so."""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import json
import sqlite3
import subprocess
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import msgspec
import psycopg
import pytest

from interlock import ConfigError, Context, Runtime, Status, tool
from interlock.audit import anchor, load_key, load_or_make_key, load_public_key, make_key, rotate, verify
from interlock.audit.publish import publish
from interlock.config import Settings
from interlock.errors import InDoubt, NotAllowed
from interlock.operations.ledger_writer import record_with_payload
from interlock.ports import Query, SystemClock, link
from interlock.review.identity import TokenClaims, issue
from interlock.state import ChangeFilter, ClaimState, TicketState
from interlock.testing import ManualClock
from tests.conftest import expect
from tests.test_changes import OPEN, Shelf, error, retitle, running

REVIEWED = OPEN + '[[rule]]\nid = "large"\ntools = ["pay"]\ndecision = "review"\nwhen = "args.amount > 1000"\n'
BUDGET = OPEN + '[[budget]]\nid = "day"\nper = "actor"\nwindow = "1d"\ncalls = 3\n'
Edit = Callable[[str, tuple[Any, ...]], None]


@pytest.fixture
def edit(durable_url: str) -> Edit:
    """Change the database past the library; `?` marks a parameter."""

    def run(statement: str, parameters: tuple[Any, ...] = ()) -> None:
        if durable_url.startswith("sqlite"):
            with sqlite3.connect(durable_url.removeprefix("sqlite:///")) as database:
                database.execute(statement, parameters)
            database.close()
        else:
            with psycopg.connect(durable_url, autocommit=True) as server:
                server.execute(statement.replace("?", "%s").encode(), parameters)

    return run


@pytest.fixture
def made() -> list[int]:
    return []


def paying(made: list[int], lost: Exception | None = None, **options: Any) -> Any:
    @tool(effect="send", **options)
    async def pay(amount: int, context: Context) -> str:
        made.append(amount)
        if lost is not None:
            raise lost
        return "paid"

    return pay


async def problems(runtime: Runtime) -> str:
    return "\n".join((await verify(runtime.store)).problems)


async def verify_beside(runtime: Runtime, work: Coroutine[Any, Any, None]) -> None:
    """Verify again and again while somebody writes: an honest writer raises no alarm."""
    writing, alarms = asyncio.create_task(work), list[str]()
    while not writing.done():
        alarms.append(await problems(runtime))
    await writing
    assert (set(alarms), len(alarms) > 1) == ({""}, True)


async def ask(runtime: Runtime, amount: int = 1_000_000) -> str:
    outcome = await runtime.call("pay", {"amount": amount}, actor="ann", turn="t", call_id=f"c{amount}")
    assert outcome.status is Status.PARKED
    return expect(outcome.ticket)


async def _forge(runtime: Runtime, edit: Edit, ticket: str, **changes: Any) -> None:
    row = msgspec.to_builtins(expect(await runtime.store.ticket(ticket)))
    row |= changes
    edit("UPDATE tickets SET state = ?, body = ? WHERE id = ?", (row["state"], json.dumps(row), ticket))


async def test_a_ticket_that_is_set_to_approved_pays_nothing(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), policy=REVIEWED, url=durable_url) as runtime:
        ticket = await ask(runtime)
        for changes in (
            {"state": "approved", "decided_by": "user:boss"},
            {"state": "approved", "approvals": [{"by": "user:boss", "voice": "user:boss", "at_us": 1, "record": 1}]},
            {"state": "approved", "approvals": [{"by": "user:boss", "voice": "user:boss", "at_us": 1, "record": 99}]},
        ):
            await _forge(runtime, edit, ticket, **changes)
            outcome = await runtime.operations.resume(ticket)
            assert (outcome.status, error(outcome), made) == (Status.DENIED, "not_approved", []), changes
            assert "as the ledger has it" in outcome.summary
            assert "the ledger knows of no approval" in await problems(runtime)


async def test_terms_that_were_edited_decide_nothing(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), policy=REVIEWED, url=durable_url) as runtime:
        ticket = await ask(runtime)
        for changes in (
            {"terms": {"self_approval": True, "vouched": ["user"]}},
            {"account": "os:svc"},
            {"asked_by": "x"},
        ):
            whole = msgspec.to_builtins(expect(await runtime.store.ticket(ticket)))
            await _forge(runtime, edit, ticket, **changes)
            with pytest.raises(Exception, match="it is not what record 1 opened"):
                await runtime.operations.decide(ticket, approve=True)
            await _forge(runtime, edit, ticket, **whole)
        assert made == []


async def test_an_approval_that_was_written_into_a_question_about_an_effect_does_not_settle_it(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    both = OPEN.replace("[review]\n", "[review]\nquorum = 2\n")
    async with running(paying(made, InDoubt("lost")), policy=both, url=durable_url) as runtime:
        await runtime.call("pay", {"amount": 5}, actor="ann", call_id="c1")
        (asked,) = await runtime.operations.recover()
        ticket, forged = expect(asked.ticket), {"by": "user:kim", "voice": "user:kim", "at_us": 1}
        for record in (None, 1, 99):
            await _forge(runtime, edit, ticket, approvals=[{**forged, "record": record}])
            for approve in (True, False):
                with pytest.raises(NotAllowed, match=r"cannot be decided: .*user:kim"):
                    await runtime.operations.decide(ticket, approve=approve, by="user:boss")
        yes = [{**forged, "by": name, "voice": name, "record": None} for name in ("user:kim", "user:lee")]
        await _forge(runtime, edit, ticket, state="approved", approvals=yes)
        (again,) = await runtime.operations.recover()
        assert (again.state, again.ticket != ticket) == ("asked", True)


async def test_an_approval_of_one_ticket_cannot_be_put_into_another(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made), policy=REVIEWED, url=durable_url) as runtime:
        small, large = await ask(runtime, 1001), await ask(runtime, 1_000_000)
        await runtime.operations.decide(small, approve=True, by="user:boss")
        approved = msgspec.to_builtins(expect(await runtime.store.ticket(small)))
        await _forge(runtime, edit, large, state="approved", approvals=approved["approvals"])
        outcome = await runtime.operations.resume(large)
        assert (error(outcome), made) == ("not_approved", [])
        assert (await runtime.operations.resume(small)).ok


@pytest.mark.parametrize("forgery", ["deleted", "edited", "swapped"])
async def test_who_settles_a_change_is_not_asked_of_a_forged_intent(
    durable_url: str, edit: Edit, made: list[int], forgery: str
) -> None:
    """The intent says who may settle it: without it that would be for whoever recovers to choose."""
    strict = OPEN.replace("[review]\n", '[review]\napprovers = ["user:boss"]\n')
    async with running(paying(made, InDoubt("lost")), policy=OPEN, url=durable_url) as runtime:
        assert (await runtime.call("pay", {"amount": 1}, actor="ann", call_id="c0")).status is Status.UNKNOWN
    async with running(paying(made, InDoubt("lost")), policy=strict, url=durable_url) as runtime:
        assert (await runtime.call("pay", {"amount": 5}, actor="ann", call_id="c1")).status is Status.UNKNOWN
        records = [r async for r in runtime.store.records(Query()) if r.kind == "intent"]
        lax, intent = records[0], records[-1]
        after = [r.id async for r in runtime.store.records(Query(lane=lax.lane, after=lax.id))]
        beside = after[:1] == [intent.id]  # a server has several lanes: then nothing but a forged record follows it
        if forgery == "deleted":
            edit("DELETE FROM records WHERE id = ?", (intent.id,))
        elif forgery == "edited":
            edit(
                "UPDATE records SET body = ? WHERE id = ?", (intent.body.replace("user:boss", "user:asker"), intent.id)
            )
        else:
            claim = next(c for c in await runtime.store.claims(ChangeFilter(since_us=0)) if c.call == "c1")
            edit("UPDATE claims SET intent = ? WHERE name = ?", (lax.id, claim.name))
        found = {item.call: item for item in await runtime.operations.recover()}
        assert (found["c1"].ticket, "the ledger does not hold its intent" in found["c1"].how) == (None, True)
        assert found["c0"].ticket is not None or (beside and forgery != "swapped"), "the others are asked about"


@pytest.mark.parametrize("encrypted", [True, False])
async def test_a_token_that_was_changed_is_not_called_deleted(tmp_path: Path, made: list[int], encrypted: bool) -> None:
    file, url = tmp_path / "l.db", f"sqlite:///{tmp_path / 'l.db'}"
    service = load_or_make_key(tmp_path / "service.key")
    make_key(tmp_path / "other.key")
    policy = REVIEWED.replace("[review]\n", f'[review]\nkeys = ["ed25519:{service.public}"]\n')
    settings = Settings(payload_key="" if encrypted else "none")
    async with running(paying(made), policy=policy, url=url, settings=settings) as runtime:
        ticket, ends_s = await ask(runtime), int(time.time()) + 60
        claims = TokenClaims(sub="deployer", aud=runtime.store.identity.ledger, iat=ends_s - 60, exp=ends_s)
        token, forged = (issue(tmp_path / name, claims) for name in ("service.key", "other.key"))
        number = await runtime.operations.decide(ticket, approve=True, token=token)
        for body in (json.dumps({"token": forged}).encode(), b"{", None):
            with sqlite3.connect(file) as database:
                if body is None:
                    database.execute("UPDATE records SET payload = NULL WHERE id = ?", (number,))
                else:
                    database.execute("UPDATE records SET payload = ? WHERE id = ?", (body, number))
            database.close()
            outcome = await runtime.operations.resume(ticket)
            said = "has been deleted" if body is None else "is not the token of token:deployer that was recorded"
            assert (error(outcome), said in outcome.summary, made) == ("not_approved", True, []), outcome.summary


async def test_a_claim_that_was_reset_or_deleted_is_found(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        call: dict[str, Any] = {"actor": "ann", "call_id": "order-1"}
        assert (await runtime.call("pay", {"amount": 5}, **call)).ok
        assert await problems(runtime) == ""
        edit("UPDATE claims SET state = 'failed' WHERE state = ?", ("done",))
        assert "is failed in the store, and done in the ledger" in await problems(runtime)
        edit("DELETE FROM claims WHERE state = ?", ("failed",))
        assert "it could be made again" in await problems(runtime)


async def test_what_lies_beside_a_record_that_names_nothing_is_not_believed(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        await runtime.operations.halt("tool:pay", reason="stop")
        records = [record async for record in runtime.store.records(Query())]
        named = [r.id for r in records if r.content().payload_digest is not None or r.content().payload]
        plain = [await record_with_payload(runtime.store, r.id) for r in records if r.id not in named]
        edit("UPDATE records SET payload = ? WHERE payload IS NULL", (b'{"arguments": {"amount": 9}, "value": 9}',))
        assert plain
        assert plain == [await record_with_payload(runtime.store, r.id) for r in records if r.id not in named]


ID_ROWS = {  # {ids}: those that stand for call ids
    "deleted": "DELETE FROM claims WHERE {ids}",
    "for another change": "UPDATE claims SET request = 'x' WHERE {ids}",
    "of another id": "UPDATE claims SET call = 'x' WHERE {ids}",
    "a claim": "UPDATE claims SET tool = 'pay' WHERE {ids}",
    "a lock": "UPDATE claims SET name = 'interlock.lock|' || name WHERE {ids}",
    "of another generation": "UPDATE claims SET generation = 2 WHERE {ids}",
    "of earlier generations": "UPDATE claims SET tokens = '[1]' WHERE {ids}",
    "answered otherwise": "UPDATE claims SET record = 1 WHERE {ids}",
    "not answered": "UPDATE claims SET record = NULL, intent = NULL WHERE {ids}",
    "invented": "INSERT INTO claims (name, request, state, generation, holder, call, tool, keys, tokens, expires_us, at_us)"
    " SELECT 'x', request, state, generation, holder, 'y', tool, keys, tokens, expires_us, at_us FROM claims"
    " WHERE {ids}",
}


@pytest.mark.parametrize("forgery", ID_ROWS)
@pytest.mark.parametrize(
    ("within", "forged"), [({"run": "mon"}, "order-1"), ({"turn": "t"}, "order-1"), ({"turn": "t"}, "order-2")]
)
async def test_the_row_of_a_call_id_that_was_deleted_edited_or_invented_is_found(
    durable_url: str, edit: Edit, made: list[int], within: dict[str, Any], forged: str, forgery: str
) -> None:
    async with running(paying(made, once_per="run"), url=durable_url) as runtime:
        for _ in range(2):
            assert (await runtime.call("pay", {"amount": 5}, actor="ann", call_id="order-1", **within)).ok
        # Answered from the first one: its row stands for that from then on.
        assert (await runtime.call("pay", {"amount": 5}, actor="ann", call_id="order-2", **within)).repeats == 2
        async with runtime.lock("shelf/a"):
            assert await problems(runtime) == ""
        edit(ID_ROWS[forgery].format(ids=f"tool = 'interlock.lock' AND keys = '[]' AND call = '{forged}'"), ())
        assert "call id" in await problems(runtime)


async def test_a_call_id_that_was_used_for_two_changes_stays_in_the_report(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made, once_per="run"), url=durable_url) as runtime:
        call: dict[str, Any] = {"actor": "ann", "call_id": "order-1"}
        assert (await runtime.call("pay", {"amount": 5}, **call, run="mon")).ok
        (row,) = [claim for claim in await runtime.store.claims(ChangeFilter()) if claim.is_call_id]
        edit("DELETE FROM claims WHERE name = ?", (row.name,))
        assert (await runtime.call("pay", {"amount": 5}, **call, run="tue")).ok
        edit("UPDATE claims SET request = ? WHERE name = ?", (row.request, row.name))
        assert made == [5, 5]
        said = "begins a change under call id 'order-1', which record 1 had used for another one"
        assert said in await problems(runtime)


@pytest.mark.parametrize("redact", [frozenset[str](), frozenset({"id"})])
async def test_tokens_of_leases_and_claims_that_were_edited_are_found(
    durable_url: str, edit: Edit, redact: frozenset[str]
) -> None:
    shelf, made = Shelf(), list[Any]()
    async with running(retitle(shelf, made, redact=redact), url=durable_url) as runtime:
        for n in range(2):
            assert (await runtime.call("title", {"id": "a", "title": f"t{n}"}, actor="ann", call_id=f"c{n}")).ok
        assert await problems(runtime) == ""
        (lease,) = [lease for lease in await runtime.store.leases(("shelf/a",)) if lease.key == "shelf/a"]
        where = "key of shelf" if redact else "key shelf/a"
        for column, value, sentence in (
            ("token", 1, f"{where}: its lease has the token 1, and {lease.token} was granted"),
            ("changed", lease.token + 1, f"{where}: its lease says that it was changed under token {lease.token + 1}"),
            ("holder", "nobody", f"{where}: is held in the store for a change that nobody is making"),
        ):
            edit(f"UPDATE leases SET {column} = ? WHERE key = 'shelf/a'", (value,))
            assert sentence in await problems(runtime)
            edit(f"UPDATE leases SET {column} = ? WHERE key = 'shelf/a'", (getattr(lease, column),))
        assert await problems(runtime) == ""
        edit("UPDATE claims SET tokens = ? WHERE call = 'c1'", ("[0]",))
        assert "names other keys or tokens in the store" in await problems(runtime)
        edit("UPDATE claims SET tokens = ? WHERE call = 'c1'", (f"[{lease.token}]",))
        edit("DELETE FROM leases WHERE key = ?", ("shelf/a",))
        assert f"{where}: its lease has the token 0" in await problems(runtime)


async def test_a_change_that_was_made_again_after_its_lease_was_edited_stays_in_the_report(
    durable_url: str, edit: Edit
) -> None:
    shelf, made = Shelf(), list[Any]()
    async with running(retitle(shelf, made, once_per="ever"), url=durable_url) as runtime:
        call: dict[str, Any] = {"arguments": {"id": "a", "title": "t"}, "actor": "ann"}
        assert (await runtime.call("title", **call, call_id="1")).ok
        edit("UPDATE leases SET changed = changed + ? WHERE key = 'shelf/a'", (1,))
        assert "and no change was" in await problems(runtime)
        assert (await runtime.call("title", **call, call_id="2")).ok
        assert len(made) == 2, "found, and not prevented"
        said = "makes a change again that record 2 had made, and nothing was changed since"
        assert said in await problems(runtime)


async def test_the_key_of_a_change_in_doubt_that_was_freed_is_found_and_stays_in_the_report(
    durable_url: str, edit: Edit
) -> None:
    shelf = Shelf()

    @tool(effect="write", key="{id}", resource=shelf)
    async def put(id: str, text: str) -> str:
        if text == "lost":
            raise InDoubt("the answer was lost")
        shelf.items[id] = {"text": text}
        return text

    async with running(put, url=durable_url) as runtime:
        lost = await runtime.call("put", {"id": "a", "text": "lost"}, actor="ann", call_id="1")
        assert lost.status is Status.UNKNOWN
        assert await problems(runtime) == ""
        edit("UPDATE leases SET holder = '', expires_us = ? WHERE key = 'shelf/a'", (0,))
        assert "key shelf/a: is free in the store, while the change of record 1 is not over" in await problems(runtime)
        assert (await runtime.call("put", {"id": "a", "text": "over it"}, actor="ann", call_id="2")).ok
        assert "begins a change of shelf/a, which the change of record 1 still held" in await problems(runtime)


async def test_calls_that_are_answered_meanwhile_raise_no_alarm(durable_url: str, made: list[int]) -> None:
    pay = paying(made, once_per="ever")
    async with running(pay, url=durable_url) as runtime, running(pay, url=durable_url) as other:

        async def write() -> None:
            for n in range(60):
                assert (await other.call("pay", {"amount": n % 3}, actor="ann", call_id=f"w{n}")).ok

        await verify_beside(runtime, write())
    assert made == [0, 1, 2]  # all others came to stand for one of these


async def test_locks_that_come_and_go_meanwhile_raise_no_alarm(durable_url: str) -> None:
    shelf = Shelf()
    async with (
        running(retitle(shelf, []), url=durable_url) as runtime,
        running(retitle(shelf, []), url=durable_url) as other,
    ):
        await runtime.call("title", {"id": "a", "title": "t"}, actor="ann", call_id="first")

        async def write() -> None:
            for n in range(40):
                async with other.lock("shelf/a", "shelf/b", wait_s=30):
                    pass
                await other.call("title", {"id": "a", "title": f"t{n}"}, actor="ann", call_id=f"w{n}")

        await verify_beside(runtime, write())
    assert shelf.items["a"] == {"title": "t39"}  # there was something to be alarmed by


async def test_a_halt_that_was_deleted_or_invented_is_found(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        await runtime.operations.halt("all", reason="stop")
        await runtime.operations.halt("tool:pay", reason="stop")
        await runtime.operations.unhalt("tool:pay")
        assert await problems(runtime) == ""
        edit("DELETE FROM halts WHERE scope = ?", ("all",))
        assert "halt all: stands in the ledger, and not in the store" in await problems(runtime)
        edit("INSERT INTO halts (scope, by_whom, reason, at_us) VALUES (?, '', '', 0)", ("actor:bob",))
        assert "halt actor:bob: stands in the store" in await problems(runtime)


async def test_a_change_that_was_begun_while_it_was_halted_stays_in_the_report(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    clock = ManualClock(time.time())
    async with running(paying(made), url=durable_url, clock=clock) as runtime:
        await runtime.operations.halt("tool:pay", reason="stop")
        (halt,) = await runtime.store.halts()
        clock.advance(600)
        edit("DELETE FROM halts WHERE scope = ?", ("tool:pay",))
        assert (await runtime.call("pay", {"amount": 1}, actor="ann", call_id="1")).ok
        edit(
            "INSERT INTO halts (scope, by_whom, reason, at_us) VALUES (?, ?, ?, ?)",
            (halt.scope, halt.by, halt.reason, halt.at_us),
        )
        assert await problems(runtime) == "record 2: begins a change, while tool:pay was halted"
        await runtime.operations.unhalt("tool:pay")
        assert (await runtime.call("pay", {"amount": 2}, actor="ann", call_id="2")).ok
        assert await problems(runtime) == "record 2: begins a change, while tool:pay was halted"


async def test_a_budget_that_was_set_back_is_found(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), policy=BUDGET, url=durable_url) as runtime:
        for n in range(3):
            assert (await runtime.call("pay", {"amount": n}, actor="ann", call_id=f"c{n}")).ok
        assert await problems(runtime) == ""
        (scope,) = await runtime.store.all_spent()
        spent = await runtime.store.spent(scope, 0)
        for column, value in (("calls", spent.calls), ("ms", spent.ms)):
            edit(f"UPDATE accounts SET {column} = ?", (value - 1,))
            assert "has spent less than the ledger says" in await problems(runtime)
            edit(f"UPDATE accounts SET {column} = ?", (value,))
        assert await problems(runtime) == ""


async def test_a_record_in_an_invented_lane_is_found(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        assert (await runtime.call("pay", {"amount": 5}, actor="ann", call_id="1")).ok
        ledger, lane, number = runtime.store.identity.ledger, 17, 900
        import hashlib

        start = hashlib.sha256(f"interlock ledger {ledger} lane {lane}".encode()).hexdigest()
        body = '{"principal":"os:ceo","started_us":1,"duration_us":1}'
        columns = (number, lane, 1, "call", "c", None, "ceo", "pay", "ok")
        text = link(start, columns, body.encode())
        edit(
            "INSERT INTO records (id, lane, hash, at_us, kind, call, turn, actor, tool, status, body)"
            " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (number, lane, text, *columns[2:], body),
        )
        edit("INSERT INTO lanes (lane, id, count, hash) VALUES (?, ?, 1, ?)", (lane, number, text))
        assert "lane 17: this ledger has" in await problems(runtime)


async def test_a_backdated_record_is_found(tmp_path: Path, made: list[int]) -> None:
    class Yesterday(SystemClock):
        def now_us(self) -> int:
            return super().now_us() - 86_400_000_000

    url, key = f"sqlite:///{tmp_path / 'l.db'}", load_or_make_key(tmp_path / "audit.key")
    async with running(paying(made), url=url) as runtime:
        await runtime.call("pay", {"amount": 1}, actor="ann", call_id="1")
        await anchor(runtime.store, key, SystemClock())
        await runtime.call("pay", {"amount": 2}, actor="ann", call_id="2")
        assert await problems(runtime) == ""
    async with running(paying(made), url=url, clock=Yesterday()) as runtime:
        await runtime.call("pay", {"amount": 3}, actor="ann", call_id="3")
        assert "2 records of lane 0, from 5 to 6: say that they are older" in await problems(runtime)
    async with running(paying(made), url=url) as runtime:
        await anchor(runtime.store, key, SystemClock())  # by whoever does so every hour, and has seen nothing
        assert "2 records of lane 0, from 5 to 6: say that they are older" in await problems(runtime)


async def test_a_clock_that_was_ahead_is_named_as_a_reason_with_what_to_do(tmp_path: Path, made: list[int]) -> None:
    class Ahead(SystemClock):
        by_us = 600_000_000

        def now_us(self) -> int:
            return super().now_us() + self.by_us

    clock, key = Ahead(), load_or_make_key(tmp_path / "audit.key")
    async with running(paying(made), url=f"sqlite:///{tmp_path / 'l.db'}", clock=clock) as runtime:
        await runtime.call("pay", {"amount": 1}, actor="ann", call_id="1")
        await anchor(runtime.store, key, clock)
        clock.by_us = 0
        assert await problems(runtime) == ""
        denied = await runtime.call("pay", {"amount": 2}, actor="ann", call_id="1")  # one record, and no intent
        assert denied.status is Status.DENIED
        (problem,) = (await verify(runtime.store)).problems
        assert problem.startswith("record 3: says that it is older (")
        for sentence in (
            "a clock was ahead when that was signed",
            "interlock audit anchor",
            "verify goes on to say so",
        ):
            assert sentence in problem
        await anchor(runtime.store, key, clock)
        await runtime.call("pay", {"amount": 3}, actor="ann", call_id="3")
        assert (await verify(runtime.store)).problems == (problem,), "of what came after nothing is said"


async def test_an_ordinary_history_raises_no_alarm(durable_url: str, made: list[int]) -> None:
    shelf = Shelf()
    policy = REVIEWED.replace('["pay"]', '["pay", "title"]').replace("args.amount > 1000", "tool == 'pay'")
    async with running(paying(made), retitle(shelf, []), policy=policy, url=durable_url) as runtime:
        for n in range(3):
            await runtime.call("title", {"id": "a", "title": f"t{n}"}, actor="ann", run="r", turn=f"t{n}")
        await runtime.operations.undo(run="r")
        await runtime.operations.replay("r")
        yes, no, waits = [await ask(runtime, amount) for amount in (1, 2, 3)]
        await runtime.operations.decide(yes, approve=True, by="user:boss")
        await runtime.operations.decide(no, approve=False, by="user:boss")
        assert (await runtime.operations.resume(yes)).ok
        await runtime.operations.resume(no)
        await runtime.call("title", {"id": "b"}, actor="ann", run="r")
        await runtime.operations.recover()
        assert expect(await runtime.store.ticket(waits)).state is TicketState.OPEN
        assert await problems(runtime) == ""


async def test_a_change_that_was_made_again_after_a_forgery_stays_in_the_report(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        call: dict[str, Any] = {"actor": "ann", "call_id": "order-1"}
        await runtime.call("pay", {"amount": 5}, **call)
        edit("DELETE FROM claims WHERE state = ?", ("done",))
        await runtime.call("pay", {"amount": 5}, **call)
        assert "begins a change that record 2 had made already" in await problems(runtime)


async def test_a_ticket_that_was_denied_or_spent_and_is_used_again_stays_in_the_report(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made), policy=REVIEWED, url=durable_url) as runtime:
        ticket = await ask(runtime)
        await runtime.operations.decide(ticket, approve=False, by="user:boss")
        await _forge(runtime, edit, ticket, state="open", decided_by="", decided_us=0)
        assert "was denied or has expired" in await problems(runtime)
        with pytest.raises(NotAllowed, match="record 2 says that it was denied"):
            await runtime.operations.decide(ticket, approve=True, by="user:boss")
        assert "was denied or has expired" in await problems(runtime)
        other = await ask(runtime, 2000)
        await runtime.operations.decide(other, approve=True, by="user:boss")
        assert (await runtime.operations.resume(other)).ok
        await _forge(runtime, edit, other, state="approved")
        edit("DELETE FROM claims WHERE state = ?", ("done",))
        again: dict[str, Any] = {"actor": "ann", "turn": "t", "call_id": "again", "ticket": other}
        assert (await runtime.call("pay", {"amount": 2000}, **again)).ok
        assert f"spends ticket {other}, which was spent before" in await problems(runtime)


async def test_a_ticket_that_was_denied_after_an_approval_is_not_reopened(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    both = REVIEWED.replace('decision = "review"', 'decision = "review"\nquorum = 2')
    async with running(paying(made), policy=both, url=durable_url) as runtime:
        ticket = await ask(runtime)
        await runtime.operations.decide(ticket, approve=True, by="user:kim")
        await runtime.operations.decide(ticket, approve=False, by="user:lee")
        assert await problems(runtime) == ""
        whole = msgspec.to_builtins(expect(await runtime.store.ticket(ticket)))
        await _forge(runtime, edit, ticket, state="open", decided_by="", decided_us=0, reason="")
        assert f"ticket {ticket}: was denied or has expired, and is open" in await problems(runtime)
        with pytest.raises(NotAllowed, match="record 3 says that it was denied"):
            await runtime.operations.decide(ticket, approve=True, by="user:boss")
        yes = {"by": "user:lee", "voice": "user:lee", "at_us": 1, "record": 2}
        await _forge(runtime, edit, ticket, state="approved", approvals=[*whole["approvals"], yes])
        outcome = await runtime.operations.resume(ticket)
        assert (error(outcome), made) == ("not_approved", [])


async def test_two_who_approve_in_one_group_have_each_their_record(durable_url: str, made: list[int]) -> None:
    both = REVIEWED.replace('decision = "review"', 'decision = "review"\nquorum = 3')
    async with running(paying(made), policy=both, url=durable_url) as runtime:
        ticket, names = await ask(runtime), ("user:kim", "user:lee", "user:max")
        await asyncio.gather(*(runtime.operations.decide(ticket, approve=True, by=name) for name in names))
        approvals = expect(await runtime.store.ticket(ticket)).approvals
        assert {said.record for said in approvals} == {2, 3, 4}
        assert await problems(runtime) == ""
        assert (await runtime.operations.resume(ticket)).ok


async def test_a_claim_that_was_reset_behind_a_copy_of_it_is_found(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        await runtime.call("pay", {"amount": 5}, actor="ann", call_id="1")
        columns = (
            "request, state, generation, holder, call, tool, keys, tokens, expires_us, intent, record, turn, run, at_us"
        )
        edit(f"INSERT INTO claims (name, {columns}) SELECT name || ?, {columns} FROM claims", ("#x",))
        assert "the ledger knows of no intent" in await problems(runtime)
        edit("UPDATE claims SET state = 'undone' WHERE name NOT LIKE ?", ("%#x",))
        assert "is undone in the store, and done in the ledger" in await problems(runtime)
        edit("DELETE FROM claims WHERE name LIKE ?", ("%#x",))
        edit("UPDATE claims SET state = 'done', generation = ?", (7,))
        assert "names other records" in await problems(runtime)


@pytest.mark.parametrize(("column", "value"), [("tool", "ping"), ("call", ""), ("holder", "x"), ("turn", "t2")])
async def test_recovery_settles_nothing_by_a_row_that_its_intent_does_not_bear_out(
    durable_url: str, edit: Edit, made: list[int], column: str, value: str
) -> None:
    async def never(_arguments: Any, _context: Context) -> bool:
        return False

    @tool(effect="send", probe=never)
    async def ping(amount: int) -> str:
        return "harmless"

    async with running(paying(made, InDoubt("lost")), ping, url=durable_url) as runtime:
        call: dict[str, Any] = {"actor": "ann", "turn": "t", "call_id": "1"}
        assert (await runtime.call("pay", {"amount": 5}, **call)).status is Status.UNKNOWN
        assert await problems(runtime) == ""
        edit(f"UPDATE claims SET {column} = ?", (value,))
        (found,) = await runtime.operations.recover()
        assert (found.state, found.ticket) == ("asked", None)
        assert "its row in the store is not what record 1 has begun" in found.how
        assert "are not those that record 1 has begun" in await problems(runtime)
        claim = next(row for row in await runtime.store.claims(ChangeFilter()) if row.keys or row.state != "failed")
        assert claim.state is ClaimState.UNKNOWN, "and not made again"


@pytest.mark.parametrize("column", ["request", "call", "turn", "run", "tool", "holder", "keys"])
@pytest.mark.parametrize("redact", [frozenset[str](), frozenset({"id"})])
async def test_what_a_claim_was_opened_with_cannot_be_edited_unseen(
    durable_url: str, edit: Edit, column: str, redact: frozenset[str]
) -> None:
    async with running(retitle(Shelf(), [], redact=redact), url=durable_url) as runtime:
        await runtime.call("title", {"id": "a", "title": "t"}, actor="ann", turn="t", run="r", call_id="1")
        assert await problems(runtime) == ""
        edit(f"UPDATE claims SET {column} = ?", ('["shelf/b"]' if column == "keys" else "x",))
        assert "claim " in await problems(runtime)


async def test_a_record_that_a_claim_names_instead_of_its_own_answers_nobody(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        for n in (1, 2):
            await runtime.call("pay", {"amount": n}, actor="ann", call_id=f"c{n}")
        edit("UPDATE claims SET record = ? WHERE call = 'c1'", (4,))
        outcome = await runtime.call("pay", {"amount": 1}, actor="ann", call_id="c1")
        assert (error(outcome), made) == ("store_unavailable", [1, 2])
        assert "record 4, which a claim names, is about another change" in outcome.summary


async def test_a_ticket_that_is_hidden_from_the_list_is_found(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), policy=REVIEWED, url=durable_url) as runtime:
        ticket = await ask(runtime)
        edit("UPDATE tickets SET state = ?", ("x",))
        assert f"ticket {ticket}: is not found where it should be" in await problems(runtime)


async def test_when_a_key_was_changed_cannot_be_edited_unseen(durable_url: str, edit: Edit) -> None:
    async with running(retitle(Shelf(), []), url=durable_url) as runtime:
        await runtime.call("title", {"id": "a", "title": "t"}, actor="ann", call_id="1")
        edit("UPDATE leases SET changed_us = ? WHERE key = 'shelf/a'", (0,))
        assert "key shelf/a: was changed at another time" in await problems(runtime)


async def test_when_another_run_has_changed_a_key_cannot_be_edited_unseen(durable_url: str, edit: Edit) -> None:
    async with running(retitle(Shelf(), []), url=durable_url) as runtime:
        for run in ("monday", "tuesday", "tuesday"):
            await runtime.call("title", {"id": "a", "title": run}, actor="ann", run=run)
        assert await problems(runtime) == ""
        edit("UPDATE leases SET others_us = ? WHERE key = 'shelf/a'", (0,))
        assert "key shelf/a: was changed at another time" in await problems(runtime)


async def test_by_whom_and_why_something_is_halted_cannot_be_edited_unseen(
    durable_url: str, edit: Edit, made: list[int]
) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        await runtime.operations.halt("all", reason="stop")
        edit("UPDATE halts SET reason = ?", ("a drill; carry on",))
        assert "halt all: the store says by whom, when or why otherwise" in await problems(runtime)


async def test_claims_that_point_to_other_records_are_found(durable_url: str, edit: Edit, made: list[int]) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        for n in (1, 2):
            await runtime.call("pay", {"amount": n}, actor="ann", call_id=f"c{n}")
        edit("UPDATE claims SET record = ? WHERE record = 4", (2,))
        assert "names other records in the store" in await problems(runtime)


async def test_a_call_with_a_ticket_that_there_is_not_poisons_nothing(durable_url: str, made: list[int]) -> None:
    async with running(paying(made), url=durable_url) as runtime:
        denied = await runtime.call("pay", {"amount": 1}, actor="ann", call_id="1", ticket="nope")
        assert denied.status is Status.DENIED
        assert await problems(runtime) == ""


async def test_writers_beside_it_raise_no_alarm(durable_url: str, made: list[int]) -> None:
    async with running(paying(made), url=durable_url) as runtime, running(paying(made), url=durable_url) as other:

        async def write() -> None:
            for n in range(60):
                await other.call("pay", {"amount": n}, actor="ann", call_id=f"w{n}")
                if n % 5 == 0:
                    await other.operations.halt("run:x", reason="now and then")
                    await other.operations.unhalt("run:x")

        await verify_beside(runtime, write())
    assert len(made) == 60  # there was something to be alarmed by


# Keys


async def test_a_key_is_rotated_and_either_key_verifies(tmp_path: Path, made: list[int]) -> None:
    url, first = f"sqlite:///{tmp_path / 'l.db'}", load_or_make_key(tmp_path / "1.key")
    make_key(tmp_path / "2.key")
    second = load_key(tmp_path / "2.key")
    async with running(paying(made), url=url) as runtime:
        await runtime.call("pay", {"amount": 1}, actor="ann", call_id="1")
        kept = [await anchor(runtime.store, first, SystemClock())]
        with pytest.raises(ConfigError, match="use interlock audit rotate"):
            await anchor(runtime.store, second, SystemClock())
        kept.append(await rotate(runtime.store, first, second, SystemClock()))
        with pytest.raises(ConfigError, match="use interlock audit rotate"):
            await anchor(runtime.store, first, SystemClock())
        kept.append(await anchor(runtime.store, second, SystemClock()))
        for public in (first.public, second.public):
            assert (await verify(runtime.store, public_key=public, anchors=tuple(kept))).problems == ()
        other = load_or_make_key(tmp_path / "3.key").public
        assert "signed by another key" in "".join((await verify(runtime.store, public_key=other)).problems)


async def test_a_lost_key_is_said_to_be_lost(tmp_path: Path, made: list[int]) -> None:
    url, first = f"sqlite:///{tmp_path / 'l.db'}", load_or_make_key(tmp_path / "1.key")
    second = load_or_make_key(tmp_path / "2.key")
    async with running(paying(made), url=url) as runtime:
        with pytest.raises(ConfigError, match="nothing was signed yet"):
            await rotate(runtime.store, None, second, SystemClock())
        await anchor(runtime.store, first, SystemClock())
        await rotate(runtime.store, None, second, SystemClock())
        assert (await verify(runtime.store, public_key=second.public)).problems == ()
        old = "".join((await verify(runtime.store, public_key=first.public)).problems)
    assert "checkpoint 2: signed by another key" in old


def test_a_key_may_be_encrypted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ConfigError, match="put a passphrase into"):
        make_key(tmp_path / "k", encrypted=True)
    monkeypatch.setenv("INTERLOCK_KEY_PASSPHRASE", "horse battery")
    make_key(tmp_path / "k", encrypted=True)
    public = load_key(tmp_path / "k").public
    assert b"ENCRYPTED" in (tmp_path / "k").read_bytes()
    monkeypatch.setenv("INTERLOCK_KEY_PASSPHRASE", "wrong")
    with pytest.raises(ConfigError, match="does not open it"):
        load_key(tmp_path / "k")
    monkeypatch.delenv("INTERLOCK_KEY_PASSPHRASE")
    with pytest.raises(ConfigError, match="the key is encrypted"):
        load_key(tmp_path / "k")
    assert load_public_key(tmp_path / "k") == public, "to verify, nobody needs the passphrase"


# Publishing


class _Log(BaseHTTPRequestHandler):
    taken: list[tuple[str, bytes]]

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        self.taken.append((self.path, body))
        if self.path in ("/drip", "/bomb"):
            self._answer_badly()
            return
        self.send_response(403 if self.path == "/full" else 200)
        self.end_headers()
        self.wfile.write(b"\xf0proof" if self.path == "/digest" else b'{"entry": 7}')

    def _answer_badly(self) -> None:
        """Byte by byte, none of which comes late; or 1 kB that unpack to a megabyte."""
        packed = gzip.compress(b"0" * 1_000_000)
        self.send_response(200)
        self.send_header("content-length", "40" if self.path == "/drip" else str(len(packed)))
        if self.path == "/bomb":
            self.send_header("content-encoding", "gzip")
        self.end_headers()
        with contextlib.suppress(OSError):
            for piece in [packed] if self.path == "/bomb" else [b" "] * 40:
                self.wfile.write(piece)
                self.ended.wait(0.1)

    ended = threading.Event()

    def log_message(self, *_arguments: Any) -> None: ...


@pytest.fixture
def log() -> Iterator[tuple[str, list[tuple[str, bytes]]]]:
    taken: list[tuple[str, bytes]] = []
    server = ThreadingHTTPServer(("127.0.0.1", 0), type("Log", (_Log,), {"taken": taken}))
    threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
    yield f"http://127.0.0.1:{server.server_address[1]}", taken
    server.shutdown()
    server.server_close()


@pytest.mark.slow
async def test_anchors_are_published_where_others_hold_them(
    tmp_path: Path, log: tuple[str, list[tuple[str, bytes]]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"):
        monkeypatch.setenv(name, "log@example.org")
    repository, (base, taken) = tmp_path / "anchors", log
    subprocess.run(["git", "init", "--quiet", str(repository)], check=True)
    async with running(paying([]), url=f"sqlite:///{tmp_path / 'l.db'}") as runtime:
        signed = await anchor(runtime.store, load_or_make_key(tmp_path / "k"), SystemClock())
        ledger = runtime.store.identity.ledger
    receipt = publish(f"git:{repository}", signed)
    shown = ["git", "-C", str(repository), "show", f"{receipt.receipt}:{ledger}.anchors.jsonl"]
    kept = subprocess.run(shown, capture_output=True, check=True).stdout
    assert msgspec.json.decode(kept, type=type(signed)) == signed
    assert publish(f"{base}/log", signed).receipt == '{"entry": 7}'
    assert msgspec.json.decode(taken[-1][1])["checkpoint"]["signature"] == signed.signature
    calendar = publish(f"{base}/digest", signed)
    assert (len(taken[-1][1]), calendar.receipt) == (32, "8HByb29m")
    for target, sentence in (
        (f"{base}/full", "HTTP 403"),
        ("http://127.0.0.1:9/", "could not be published"),
        (f"git:{tmp_path / 'nowhere'}", "cannot be written there"),
        (f"git:{tmp_path}", "git add"),
        ("ftp://x", "anchors go to"),
    ):
        with pytest.raises(ConfigError, match=sentence):
            publish(target, signed)
    with pytest.raises(ConfigError, match=r"may have been taken, and there is no receipt: .* unpacks to more than"):
        publish(f"{base}/bomb", signed)
    monkeypatch.setattr("interlock.audit.publish._TIMEOUT_S", 0.5)
    with pytest.raises(ConfigError, match=r"there is no receipt: no whole answer within 0\.5 s"):
        publish(f"{base}/drip", signed)

"""One contract for the three twins: memory, SQLite, PostgreSQL."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import ConfigError, StoreError
from interlock.ports import Query, Spent, Store, genesis, link
from interlock.state import ChangeFilter, ClaimState, Ticket, TicketState
from interlock.stores import MemoryStore, open_store
from interlock.transitions import (
    Append,
    Batch,
    CloseClaim,
    Committed,
    DecideTicket,
    EscalateTicket,
    Halt,
    Lift,
    MarkUndone,
    OpenClaim,
    OpenTicket,
    Refused,
    RenewClaim,
    RequireNotHalted,
    Reserve,
    ResolveClaim,
    Seal,
    Settle,
    SpendTicket,
    TakeToken,
)
from interlock.values import Budget
from interlock.records import Checkpoint, Content, Record

T0 = 1_000_000_000_000_000


def entry(n: int = 0, **columns: Any) -> Append:
    given_columns = {"turn": None, "actor": "a", "tool": "t", "status": "ok", **columns}
    payload = given_columns.pop("payload", None)
    content = Content(
        principal="p",
        started_us=T0 + n,
        duration_us=1,
        arguments={"n": n},
        said='é \u2028 \x7f "quoted"\n',
    )
    record = Record(at_us=T0 + n, kind="call", call=f"c{n}", content=content, **given_columns)
    return Append(record=record, payload=payload)


def batch(*transitions: Any, at: int = T0) -> Batch:
    return Batch(now_us=at, transitions=transitions)


async def ids(store: Store, **query: Any) -> list[int]:
    return [record.id async for record in store.records(Query(**query))]


def reserve(
    call: str = "c",
    scope: str = "s",
    *,
    calls: int = 1,
    limit: int | None = 3,
    expires: int = T0 + 10,
    **more: Any,
) -> Reserve:
    budget = Budget(
        id="b",
        per="actor",
        calls=limit,
        cost_micros=more.pop("limit_cost", None),
        ms=more.pop("limit_ms", None),
    )
    return Reserve(call=call, scope=scope, budget=budget, expires_us=expires, calls=calls, **more)


def take(bucket: str = "k", per_s: float = 1.0, burst: int = 2) -> TakeToken:
    return TakeToken(bucket=bucket, rate="r", per_s=per_s, burst=burst)


async def test_records_get_growing_ids_and_a_chain_that_starts_at_genesis(store: Store) -> None:
    receipts = [await store.commit(batch(entry(n), entry(100 + n))) for n in range(3)]
    assert [receipt.ids for receipt in receipts if isinstance(receipt, Committed)] == [(1, 2), (3, 4), (5, 6)]
    previous: dict[int, str] = {}
    counts: dict[int, int] = {}
    async for record in store.records(Query()):
        before = previous.get(record.lane, genesis(store.identity.ledger, record.lane))
        columns = (
            record.id,
            record.lane,
            record.at_us,
            record.kind,
            record.call,
            record.turn,
            record.actor,
            record.tool,
            record.status,
        )
        assert record.hash == link(before, columns, record.body.encode())
        previous[record.lane] = record.hash
        counts[record.lane] = counts.get(record.lane, 0) + 1
    heads = {head.lane: head for head in await store.heads() if head.count}
    assert {lane: (head.hash, head.count) for lane, head in heads.items()} == {
        lane: (previous[lane], counts[lane]) for lane in previous
    }


async def test_content_reads_back_as_it_was_written(store: Store) -> None:
    written = entry(7, turn="t1")
    await store.commit(batch(written))
    stored = [record async for record in store.records(Query())][0]
    assert stored.content() == written.record.content
    assert (stored.turn, stored.call, stored.actor) == ("t1", "c7", "a")


async def test_reads_filter_by_every_column(store: Store) -> None:
    await store.commit(
        batch(
            entry(0),
            entry(1, actor="b"),
            entry(2, tool="u"),
            entry(3, status="denied", turn="t1"),
            entry(4, turn="t1"),
        )
    )
    lane = [record.lane async for record in store.records(Query())][0]
    expected: list[tuple[dict[str, Any], list[int]]] = [
        ({}, [1, 2, 3, 4, 5]),
        ({"actor": "b"}, [2]),
        ({"tool": "u"}, [3]),
        ({"status": "denied"}, [4]),
        ({"turn": "t1"}, [4, 5]),
        ({"turn": "t1", "status": "ok"}, [5]),
        ({"call": "c2"}, [3]),
        ({"since_us": T0 + 3}, [4, 5]),
        ({"before_us": T0 + 2}, [1, 2]),
        ({"after": 3}, [4, 5]),
        ({"until": 2}, [1, 2]),
        ({"lane": lane}, [1, 2, 3, 4, 5]),
        ({"lane": lane + 1}, []),
        ({"newest": 2}, [5, 4]),
        ({"newest": 2, "turn": "t1"}, [5, 4]),
        ({"newest": 9, "call": "c0"}, [1]),
        ({"newest": 0}, []),
        ({"turn": "none"}, []),
    ]
    for query, found in expected:
        assert await ids(store, **query) == found, query


async def test_many_records_are_streamed_in_pages(store: Store) -> None:
    for start in range(0, 4500, 1500):
        await store.commit(batch(*(entry(n) for n in range(start, start + 1500))))
    assert await ids(store) == list(range(1, 4501))
    assert await ids(store, newest=4100) == list(range(4500, 400, -1))


async def test_payloads_lie_beside_the_records(store: Store) -> None:
    await store.commit(batch(entry(1, payload=b"\x00\xff full"), entry(2)))
    assert await store.payload(1) == b"\x00\xff full"
    assert await store.payload(2) is None
    assert await store.payload(99) is None


async def test_a_reservation_is_refused_when_it_does_not_fit_and_the_batch_lands_whole_or_not(
    store: Store,
) -> None:
    assert isinstance(await store.commit(batch(reserve("a", calls=2))), Committed)
    refused = await store.commit(batch(reserve("b", "other"), reserve("b", calls=2), entry(1)))
    assert isinstance(refused, Refused)
    assert (refused.kind, refused.limit) == ("budget", "b")
    assert "has 1 of 3 calls left, and this call needs 2" in refused.message
    assert await ids(store) == []
    assert (await store.spent("other", T0)).reserved_calls == 0
    assert isinstance(await store.commit(batch(reserve("b", calls=1))), Committed)


@pytest.mark.parametrize(
    ("limits", "what"),
    [({"limit_cost": 5, "cost_micros": 6}, "micro-dollars"), ({"limit_ms": 5, "ms": 6}, "milliseconds")],
)
async def test_money_and_time_are_limited_too(store: Store, limits: dict[str, int], what: str) -> None:
    refused = await store.commit(batch(reserve(limit=None, **limits)))
    assert isinstance(refused, Refused)
    assert what in refused.message


async def test_settling_replaces_the_reservation_by_what_was_spent(store: Store) -> None:
    await store.commit(batch(reserve("a", ms=900, limit=9), reserve("b", ms=50, limit=9)))
    assert await store.spent("s", T0) == Spent(reserved_calls=2, reserved_ms=950)
    await store.commit(batch(Settle(call="a", scope="s", calls=1, cost_micros=7, ms=12)))
    assert await store.spent("s", T0) == Spent(calls=1, cost_micros=7, ms=12, reserved_calls=1, reserved_ms=50)
    await store.commit(batch(Settle(call="b", scope="s")))
    assert await store.spent("s", T0) == Spent(calls=1, cost_micros=7, ms=12)


async def test_reserving_and_settling_in_one_batch_leaves_only_what_was_spent(store: Store) -> None:
    await store.commit(batch(reserve("a"), Settle(call="a", scope="s", calls=1)))
    assert await store.spent("s", T0) == Spent(calls=1)
    assert await store.scopes() == ("s",)
    assert await store.spent("never seen", T0) == Spent()


async def test_reservations_of_the_dead_expire(store: Store) -> None:
    await store.commit(batch(reserve("a", calls=3, expires=T0 + 10)))
    assert isinstance(await store.commit(batch(reserve("b"), at=T0 + 9)), Refused)
    assert isinstance(await store.commit(batch(reserve("b", expires=T0 + 99), at=T0 + 10)), Committed)
    assert (await store.spent("s", T0 + 10)).reserved_calls == 1


async def test_a_bucket_gives_its_burst_then_refills(store: Store) -> None:
    taken = [await store.commit(batch(take(), at=T0 + offset)) for offset in (0, 0, 0, 500_000, 1_000_000)]
    assert [isinstance(receipt, Committed) for receipt in taken] == [True, True, False, False, True]
    refused = taken[2]
    assert isinstance(refused, Refused)
    assert (refused.kind, refused.retry_after_s) == ("rate", 1.0)
    assert (await store.buckets()).get("k") == 0.0
    assert (await store.buckets()).get("none") is None


async def test_a_bucket_never_holds_more_than_its_burst_and_a_clock_that_steps_back_is_harmless(
    store: Store,
) -> None:
    await store.commit(batch(take(), at=T0))
    await store.commit(batch(take(), at=T0 + 3_600_000_000))
    assert (await store.buckets()).get("k") == 1.0
    assert isinstance(await store.commit(batch(take(), at=T0)), Committed)
    assert isinstance(await store.commit(batch(take(), at=T0)), Refused)


async def test_checkpoints_are_kept_in_order_and_a_rival_is_refused(store: Store) -> None:
    def seal(n: int) -> Seal:
        return Seal(checkpoint=Checkpoint(n=n, body=f"b{n}", signature="s", public_key="k"))

    assert isinstance(await store.commit(batch(seal(1))), Committed)
    refused = await store.commit(batch(seal(1)))
    assert isinstance(refused, Refused)
    assert refused.kind == "conflict"
    assert isinstance(await store.commit(batch(seal(3))), Refused)
    assert isinstance(await store.commit(batch(seal(2))), Committed)
    assert [checkpoint.n for checkpoint in await store.checkpoints()] == [1, 2]


async def test_one_members_conflict_fails_only_that_member(store: Store) -> None:
    work = [store.commit(batch(reserve(f"c{n}", limit=5), entry(n))) for n in range(20)]
    receipts = await asyncio.gather(*work)
    assert sum(isinstance(receipt, Committed) for receipt in receipts) == 5
    assert len(await ids(store)) == 5


async def test_everything_is_there_after_it_is_opened_again(durable_url: str) -> None:
    first = open_store(durable_url)
    await first.commit(batch(entry(1, payload=b"p"), reserve("a"), take()))
    identity = first.identity
    await first.close()
    again = open_store(durable_url)
    assert again.identity == identity
    assert await ids(again) == [1]
    assert await again.payload(1) == b"p"
    assert (await again.spent("s", T0)).reserved_calls == 1
    assert (await again.buckets()).get("k") == 1.0
    await again.commit(batch(entry(2)))
    assert await ids(again) == [1, 2]
    await again.close()


async def test_a_closed_store_says_so(durable_url: str) -> None:
    store = open_store(durable_url)
    await store.close()
    with pytest.raises(StoreError, match="the store is closed"):
        await store.commit(batch(entry(1)))
    with pytest.raises(StoreError, match="the store is closed"):
        await store.heads()
    await store.close()


async def test_two_open_stores_share_one_ledger(durable_url: str) -> None:
    one, two = open_store(durable_url), open_store(durable_url)
    await asyncio.gather(*(store.commit(batch(entry(n))) for n in range(30) for store in (one, two)))
    assert await ids(one) == await ids(two) == list(range(1, 61))
    heads = await one.heads()
    assert sum(head.count for head in heads) == 60
    await one.close()
    await two.close()


async def test_a_batch_that_cannot_be_written_fails_alone(durable_url: str) -> None:
    store = open_store(durable_url)
    bad = entry(1)
    bad = Append(
        record=Record(
            at_us=T0,
            kind="call",
            call="c",
            turn=None,
            actor="a",
            tool="t",
            status=None,
            content=bad.record.content,
        )
    )  # type: ignore[arg-type]
    receipts = await asyncio.gather(
        *(store.commit(batch(item)) for item in (entry(0), bad, entry(2))), return_exceptions=True
    )
    assert [isinstance(receipt, StoreError) for receipt in receipts] == [False, True, False]
    assert len(await ids(store)) == 2
    await store.close()


async def test_what_is_not_data_at_all_fails_with_a_store_error(durable_url: str) -> None:
    store = open_store(durable_url)
    odd = Append(
        record=Record(at_us=T0, kind="call", call="c", turn=None, actor="a", tool="t", status="ok", content=object())
    )  # type: ignore[arg-type]
    with pytest.raises(StoreError, match="could not be written"):
        await store.commit(batch(odd))
    assert isinstance(await store.commit(batch(entry(1))), Committed)
    await store.close()


async def test_whoever_is_cancelled_learns_of_it_after_the_batch_has_landed(durable_url: str) -> None:
    store = open_store(durable_url)
    tasks = [asyncio.create_task(store.commit(batch(entry(n)))) for n in range(5)]
    await asyncio.sleep(0)
    for task in tasks:
        task.cancel()
    done = await asyncio.gather(*tasks, return_exceptions=True)
    assert all(isinstance(item, asyncio.CancelledError) for item in done)
    assert len(await ids(store)) == 5
    await store.close()


@pytest.mark.parametrize(
    "url", ["redis://x", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///x?cache=shared"]
)
def test_a_url_that_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        open_store(url)


steps = st.lists(
    st.one_of(
        st.tuples(st.just("reserve"), st.integers(0, 4), st.integers(1, 3), st.integers(1, 30)),
        st.tuples(st.just("settle"), st.integers(0, 4), st.integers(0, 3), st.just(0)),
        st.tuples(st.just("take"), st.integers(0, 1), st.just(0), st.just(0)),
        st.tuples(st.just("append"), st.integers(0, 9), st.just(0), st.just(0)),
    ),
    max_size=25,
)


@given(steps)
def test_the_durable_twin_does_what_the_memory_twin_does(written: list[tuple[str, int, int, int]]) -> None:
    import tempfile
    from pathlib import Path

    async def play(store: Store) -> list[Any]:
        seen: list[Any] = []
        for at, (kind, who, amount, life) in enumerate(written):
            made: Any = {
                "reserve": lambda who=who, amount=amount, life=life, at=at: reserve(
                    f"c{who}", calls=amount, limit=6, expires=T0 + at + life
                ),
                "settle": lambda who=who, amount=amount: Settle(call=f"c{who}", scope="s", calls=amount),
                "take": lambda who=who: take(f"k{who}", per_s=200_000.0, burst=2),
                "append": lambda who=who: entry(who),
            }[kind]()
            receipt = await store.commit(batch(made, at=T0 + at))
            seen.append(receipt)
            seen.append(await store.spent("s", T0 + at))
        await store.close()
        return seen

    with tempfile.TemporaryDirectory() as folder:
        durable = asyncio.run(play(open_store(f"sqlite:///{Path(folder) / 'x.db'}")))
    assert durable == asyncio.run(play(MemoryStore()))


# Claims, leases, tickets, halts

names, holders = st.sampled_from(["n1", "n2"]), st.sampled_from(["h1", "h2"])
keys = st.sampled_from([(), ("r/a",), ("r/a", "r/b"), ("r/*",), ("q/a",)])
states = st.sampled_from([ClaimState.DONE, ClaimState.FAILED, ClaimState.UNKNOWN])
tickets = st.sampled_from(["t1", "t2"])
moves = st.lists(
    st.one_of(
        st.builds(
            lambda name, holder, chosen, generation: OpenClaim(
                name, "request", generation, holder, "call", "tool", chosen, T0 + 30, "turn", "run"
            ),
            names,
            holders,
            keys,
            st.integers(1, 3),
        ),
        st.builds(lambda name, holder: RenewClaim(name, holder, T0 + 60), names, holders),
        st.builds(CloseClaim, names, holders, states),
        st.builds(ResolveClaim, names, holders, states),
        st.builds(MarkUndone, names, st.integers(1, 2)),
        st.builds(
            lambda name, binding: OpenTicket(
                Ticket(
                    name,
                    "change",
                    TicketState.OPEN,
                    binding,
                    "tool",
                    "ann",
                    "p",
                    "c",
                    None,
                    "why",
                    T0,
                    T0 + 40,
                    T0 + 20,
                )
            ),
            tickets,
            st.sampled_from(["x", "y"]),
        ),
        st.builds(
            lambda name, state: DecideTicket(name, state, "boss", "so"),
            tickets,
            st.sampled_from([TicketState.APPROVED, TicketState.DENIED, TicketState.EXPIRED]),
        ),
        st.builds(EscalateTicket, tickets),
        st.builds(SpendTicket, tickets, st.sampled_from(["x", "y"])),
        st.builds(lambda scope: Halt(scope, "boss", "why"), st.sampled_from(["all", "tool:t"])),
        st.builds(Lift, st.sampled_from(["all", "tool:t"])),
        st.builds(RequireNotHalted, st.just(("all", "tool:t"))),
    ),
    max_size=30,
)


async def played(store: Store, made: list[Any]) -> list[Any]:
    """Every receipt, and all that stands in the end."""
    seen: list[Any] = []
    for at, move in enumerate(made):
        seen.append(await store.commit(batch(entry(at), move, at=T0 + 2 * at)))
    for name in ("n1", "n2"):
        seen.append(await store.claim(name))
    seen.append(sorted(await store.claims(ChangeFilter(run="run")), key=lambda claim: claim.name))
    seen.append(sorted(await store.claims(ChangeFilter(key="r/a")), key=lambda claim: claim.name))
    seen.append(sorted(await store.unsettled(T0 + 50), key=lambda claim: claim.name))
    leases = [lease for lease in await store.leases(("r/a", "r/*", "q/a")) if lease.token]
    seen.append(sorted(leases, key=lambda lease: lease.key))
    seen.append(sorted(await store.tickets(), key=lambda ticket: ticket.id))
    seen.append([await store.ticket(name) for name in ("t1", "t2")])
    seen.append(await store.halts())
    await store.close()
    return seen


@given(moves)
def test_the_durable_twin_claims_asks_and_halts_as_the_memory_twin_does(made: list[Any]) -> None:
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        durable = asyncio.run(played(open_store(f"sqlite:///{Path(folder) / 'x.db'}"), made))
    assert durable == asyncio.run(played(MemoryStore(), made))


async def test_claims_tickets_and_halts_are_the_same_on_every_store(store: Store) -> None:
    claim = OpenClaim("n", "request", 1, "h", "c", "t", ("r/a",), T0 + 100, "turn", "run")
    first = await store.commit(batch(entry(1), claim))
    assert first == Committed(ids=(1,), tokens=(1,))
    for other, kind in (
        (claim, "claimed"),
        (OpenClaim("n", "another", 1, "h2", "c2", "t", (), T0 + 100), "reused"),
        (OpenClaim("m", "request", 1, "h2", "c2", "t", ("r/a",), T0 + 100), "leased"),
        (OpenClaim("m", "request", 1, "h2", "c2", "t", ("r/*",), T0 + 100), "leased"),
        (CloseClaim("n", "h2", ClaimState.DONE), "lost"),
        (RenewClaim("n", "h2", T0 + 900), "lost"),
        (ResolveClaim("n", "h", ClaimState.DONE), "settled"),
        (MarkUndone("n", 1), "undone"),
        (DecideTicket("no", TicketState.APPROVED, "b", ""), "ticket"),
        (Lift("all"), "halt"),
    ):
        refused = await store.commit(batch(entry(2), other, at=T0 + 1))
        assert isinstance(refused, Refused), other
        assert refused.kind == kind
    assert len([record async for record in store.records(Query())]) == 1  # a refused batch leaves nothing
    assert isinstance(await store.commit(batch(entry(3), CloseClaim("n", "h", ClaimState.DONE))), Committed)
    held = await store.claim("n")
    assert held is not None
    assert (held.state, held.intent, held.record) == (ClaimState.DONE, 1, 2)
    assert [lease.changed for lease in await store.leases(("r/a",)) if lease.key == "r/a"] == [1]

"""The contract of a store, for whoever writes one: a class of tests that pytest runs against it.

    from interlock.testing.store_contract import DurableStoreContract

    class TestMyStore(DurableStoreContract):
        @pytest.fixture
        def open_store(self, tmp_path):
            return lambda: MyStore(tmp_path / "ledger")

`open_store` opens the store, empty at the start of each test; called again it opens the same ledger. A store that
forgets when it is closed takes `StoreContract` instead. Nothing but pytest is needed; put
`pytest.register_assert_rewrite("interlock.testing.store_contract")` into conftest.py to see values where a test fails.
"""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

from interlock.errors import StoreError
from interlock.ports import Query, Spent, Store, genesis, link
from interlock.reasons import RefusalKind
from interlock.records import Checkpoint, Record
from interlock.state import Halted
from interlock.stores import MemoryStore
from interlock.testing.claim_contract import ClaimContract
from interlock.testing.contract_checks import OpenStore, on_a_ledger, on_one_store, open_ledger, refuses
from interlock.testing.store_moves import (
    T0,
    batch,
    entry,
    random_moves,
    read_everything,
    record_ids,
    reserve,
    take,
    walk,
    without_words,
)
from interlock.transitions import (
    Append,
    Committed,
    DropPayload,
    Halt,
    Lift,
    OpenClaim,
    Refused,
    RenewClaim,
    RequireNotHalted,
    Seal,
    Settle,
)


class StoreContract(ClaimContract):
    """What every store does. A refusal is told by its kind and limit; it has a sentence, in the store's own words.

    The suite moves the time: a store with a clock of its own has to go by that of whoever asks.
    """

    steps = 300
    """How long the walk is that the store and the in-memory twin make together."""
    seed = 1
    """Another number is another walk."""

    @on_one_store
    async def test_records_get_growing_ids_and_a_chain_that_starts_at_genesis(self, store: Store) -> None:
        receipts = [await store.commit(batch(entry(n), entry(100 + n))) for n in range(3)]
        assert [receipt.ids for receipt in receipts if isinstance(receipt, Committed)] == [(1, 2), (3, 4), (5, 6)]
        previous: dict[int, str] = {}
        counts: dict[int, int] = {}
        names = ("id", "lane", "at_us", "kind", "call", "turn", "actor", "tool", "status")
        async for record in store.records(Query()):
            before = previous.get(record.lane, genesis(store.identity.ledger, record.lane))
            columns = tuple(getattr(record, name) for name in names)
            assert record.hash == link(before, columns, record.body.encode())
            previous[record.lane] = record.hash
            counts[record.lane] = counts.get(record.lane, 0) + 1
        heads = {head.lane: (head.hash, head.count) for head in await store.heads() if head.count}
        assert heads == {lane: (previous[lane], counts[lane]) for lane in previous}

    @on_one_store
    async def test_content_reads_back_as_it_was_written(self, store: Store) -> None:
        written = entry(7, turn="t1")
        await store.commit(batch(written))
        (stored,) = [record async for record in store.records(Query())]
        assert stored.content() == written.record.content
        assert (stored.turn, stored.call, stored.actor) == ("t1", "c7", "a")

    @on_one_store
    async def test_reads_filter_by_every_column(self, store: Store) -> None:
        others = (entry(1, actor="b"), entry(2, tool="u"), entry(3, status="denied", turn="t1"), entry(4, turn="t1"))
        await store.commit(batch(entry(0), *others))
        (lane,) = {record.lane async for record in store.records(Query())}
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
            assert await record_ids(store, **query) == found, query

    @on_one_store
    async def test_many_records_are_streamed_in_pages(self, store: Store) -> None:
        for start in range(0, 4500, 1500):
            await store.commit(batch(*(entry(n) for n in range(start, start + 1500))))
        assert await record_ids(store) == list(range(1, 4501))
        assert await record_ids(store, newest=4100) == list(range(4500, 400, -1))

    @on_one_store
    async def test_payloads_lie_beside_the_records(self, store: Store) -> None:
        await store.commit(batch(entry(1, payload=b"\x00\xff full"), entry(2)))
        assert await store.payload(1) == b"\x00\xff full"
        assert await store.payload(2) is None
        assert [record async for record in store.payload_ids()] == [1]

    @on_one_store
    async def test_a_payload_is_deleted_with_the_record_that_says_so_and_with_nothing_else(self, store: Store) -> None:
        await store.commit(batch(entry(1, payload=b"a"), entry(2, payload=b"b"), entry(3, payload=b"c")))
        before = [record async for record in store.records(Query())]
        assert isinstance(await store.commit(batch(entry(4), DropPayload(2), Lift("all"))), Refused)
        assert await store.payload(2) == b"b", "a refused batch deletes nothing"
        assert isinstance(await store.commit(batch(entry(4), DropPayload(2), DropPayload(99))), Committed)
        assert [await store.payload(number) for number in (1, 2, 3)] == [b"a", None, b"c"]
        assert [record async for record in store.records(Query())][:3] == before

    @on_one_store
    async def test_nothing_lingers_of_a_deleted_payload_where_nobody_else_reads(self, store: Store) -> None:
        await store.commit(batch(entry(1, payload=b"a")))
        await store.commit(batch(entry(2), DropPayload(1)))
        assert await store.wipe() is True

    @on_one_store
    async def test_a_reservation_that_does_not_fit_is_refused_and_the_batch_lands_whole_or_not(
        self, store: Store
    ) -> None:
        assert isinstance(await store.commit(batch(reserve("a", calls=2))), Committed)
        refused = await store.commit(batch(reserve("b", "other"), reserve("b", calls=2), entry(1)))
        assert isinstance(refused, Refused)
        assert (refused.kind, refused.limit) == (RefusalKind.BUDGET, "b")
        assert refused.message, "people are told why"
        assert await record_ids(store) == []
        assert (await store.spent("other", T0)).reserved_calls == 0
        assert isinstance(await store.commit(batch(reserve("b", calls=1))), Committed)

    @on_one_store
    async def test_money_and_time_are_limited_too(self, store: Store) -> None:
        for scope, limit, amount in (("money", "limit_cost", "cost_micros"), ("time", "limit_ms", "ms")):
            limited: dict[str, Any] = {"limit": None, limit: 5}
            refused = await store.commit(batch(reserve("a", scope, **limited, **{amount: 6})))
            assert isinstance(refused, Refused)
            assert (refused.kind, refused.limit) == (RefusalKind.BUDGET, "b")
            assert isinstance(await store.commit(batch(reserve("a", scope, **limited, **{amount: 5}))), Committed)
            assert isinstance(await store.commit(batch(reserve("b", scope, **limited, **{amount: 1}))), Refused)

    @on_one_store
    async def test_settling_replaces_the_reservation_by_what_was_spent(self, store: Store) -> None:
        await store.commit(batch(reserve("a", ms=900, limit=9), reserve("b", ms=50, limit=9)))
        assert await store.spent("s", T0) == Spent(reserved_calls=2, reserved_ms=950)
        await store.commit(batch(Settle(call="a", scope="s", calls=1, cost_micros=7, ms=12)))
        assert await store.spent("s", T0) == Spent(calls=1, cost_micros=7, ms=12, reserved_calls=1, reserved_ms=50)
        await store.commit(batch(Settle(call="b", scope="s")))
        assert await store.spent("s", T0) == Spent(calls=1, cost_micros=7, ms=12)

    @on_one_store
    async def test_what_a_call_holds_is_told_until_it_is_settled(self, store: Store) -> None:
        await store.commit(batch(reserve("a", calls=2, cost_micros=7, ms=900), reserve("a", "other"), reserve("b")))
        held = sorted(await store.reservations("a"), key=lambda item: item.scope)
        assert held == [Settle("a", "other", 1), Settle("a", "s", 2, 7, 900)]
        await store.commit(batch(*held))
        assert await store.reservations("a") == ()
        assert await store.spent("s", T0) == Spent(calls=2, cost_micros=7, ms=900, reserved_calls=1)
        assert await store.reservations("b") == (Settle("b", "s", 1),)

    @on_one_store
    async def test_reserving_and_settling_in_one_batch_leaves_only_what_was_spent(self, store: Store) -> None:
        await store.commit(batch(reserve("a"), Settle(call="a", scope="s", calls=1)))
        assert await store.spent("s", T0) == Spent(calls=1)

    @on_one_store
    async def test_a_claim_is_renewed_from_another_thread_by_its_holder_alone(self, store: Store) -> None:
        await store.commit(batch(OpenClaim("n", "request", 1, "h", "c", "t", ("r/a",), 100)))
        claims = [RenewClaim("n", "h", 900), RenewClaim("n2", "h", 900)]
        assert await asyncio.to_thread(store.renew, claims, T0 + 50) == ("n2",)
        assert await asyncio.to_thread(store.renew, [RenewClaim("n", "other", 5000)], T0 + 60) == ("n",)
        assert await store.now_us(T0 + 949) == T0 + 949
        assert await store.unsettled_claims(T0 + 949) == ()
        assert [claim.name for claim in await store.unsettled_claims(T0 + 950)] == ["n"]

    @on_one_store
    async def test_looking_at_a_scope_does_not_open_it(self, store: Store) -> None:
        await store.commit(batch(reserve("a", "t"), Settle("a", "t", 1, 7, 12), Settle("b", "s", 2), reserve("c", "u")))
        assert await store.spent("never seen", T0) == Spent()
        told = await store.all_spent()  # and what is set aside is told scope by scope
        assert list(told.items()) == [("s", Spent(2)), ("t", Spent(1, 7, 12)), ("u", Spent())]

    @on_one_store
    async def test_reservations_of_the_dead_expire(self, store: Store) -> None:
        await store.commit(batch(reserve("a", calls=3, expires=T0 + 10)))
        assert isinstance(await store.commit(batch(reserve("b"), at=T0 + 9)), Refused)
        assert isinstance(await store.commit(batch(reserve("b", expires=T0 + 99), at=T0 + 10)), Committed)
        assert (await store.spent("s", T0 + 10)).reserved_calls == 1

    @on_one_store
    async def test_a_bucket_gives_its_burst_then_refills(self, store: Store) -> None:
        taken = [await store.commit(batch(take(), at=T0 + offset)) for offset in (0, 0, 0, 500_000, 1_000_000)]
        assert [isinstance(receipt, Committed) for receipt in taken] == [True, True, False, False, True]
        refused = taken[2]
        assert isinstance(refused, Refused)
        assert (refused.kind, refused.retry_after_s) == ("rate", 1.0)
        assert (await store.buckets()).get("k") == 0.0
        assert (await store.buckets()).get("none") is None

    @on_one_store
    async def test_a_bucket_never_holds_more_than_its_burst_and_a_clock_that_steps_back_is_harmless(
        self, store: Store
    ) -> None:
        await store.commit(batch(take(), at=T0))
        await store.commit(batch(take(), at=T0 + 3_600_000_000))
        assert (await store.buckets()).get("k") == 1.0
        assert isinstance(await store.commit(batch(take(), at=T0)), Committed)
        assert isinstance(await store.commit(batch(take(), at=T0)), Refused)

    @on_one_store
    async def test_checkpoints_are_kept_in_order_and_a_rival_is_refused(self, store: Store) -> None:
        def seal(n: int) -> Seal:
            return Seal(checkpoint=Checkpoint(n=n, body=f"b{n}", signature="s", public_key="k"))

        assert isinstance(await store.commit(batch(seal(1))), Committed)
        refused = await store.commit(batch(seal(1)))
        assert isinstance(refused, Refused)
        assert refused.kind == "conflict"
        assert isinstance(await store.commit(batch(seal(3))), Refused)
        assert isinstance(await store.commit(batch(seal(2))), Committed)
        assert [checkpoint.n for checkpoint in await store.checkpoints()] == [1, 2]

    @on_one_store
    async def test_one_members_conflict_fails_only_that_member(self, store: Store) -> None:
        work = [store.commit(batch(reserve(f"c{n}", limit=5), entry(n))) for n in range(20)]
        receipts = await asyncio.gather(*work)
        assert sum(isinstance(receipt, Committed) for receipt in receipts) == 5
        assert len(await record_ids(store)) == 5

    @on_one_store
    async def test_what_is_halted_is_told_until_it_is_lifted(self, store: Store) -> None:
        """The kill switch reads this in every process, and a change asks it in its own transaction."""
        await store.commit(batch(Halt("tool:t", "boss", "why")))
        await store.commit(batch(Halt("all", "lead", "a drill"), at=T0 + 5))
        halted = [Halted("all", "lead", "a drill", T0 + 5), Halted("tool:t", "boss", "why", T0)]
        assert sorted(await store.halts(), key=lambda item: item.scope) == halted
        refused = await store.commit(batch(entry(1), RequireNotHalted(("all", "actor:a"))))
        assert isinstance(refused, Refused)
        assert refused.kind == RefusalKind.HALTED
        assert isinstance(await store.commit(batch(Lift("all"))), Committed)
        assert await store.halts() == (halted[1],)
        assert isinstance(await store.commit(batch(entry(1), RequireNotHalted(("all", "actor:a")))), Committed)
        await store.commit(batch(Lift("tool:t")))
        assert await store.halts() == ()

    @on_one_store
    async def test_it_does_what_the_in_memory_twin_does(self, store: Store) -> None:
        moves, twin = list(random_moves(Random(self.seed), self.steps)), MemoryStore()
        for ours, theirs in zip(await walk(store, moves), await walk(twin, moves), strict=True):
            assert without_words(ours) == without_words(theirs)
        assert await read_everything(store) == await read_everything(twin)


class DurableStoreContract(StoreContract):
    """What a store does that is there again when it is opened again, and that several may have open at once."""

    @on_a_ledger
    async def test_everything_is_there_after_it_is_opened_again(self, open_store: OpenStore) -> None:
        first = await open_ledger(open_store)
        await first.commit(batch(entry(1, payload=b"p"), reserve("a"), take()))
        identity = first.identity
        await first.close()
        again = await open_ledger(open_store)
        assert again.identity == identity
        assert await record_ids(again) == [1]
        assert await again.payload(1) == b"p"
        assert (await again.spent("s", T0)).reserved_calls == 1
        assert (await again.buckets()).get("k") == 1.0
        await again.commit(batch(entry(2)))
        assert await record_ids(again) == [1, 2]
        await again.close()

    @on_a_ledger
    async def test_a_walk_goes_on_where_it_was_after_it_is_opened_again(self, open_store: OpenStore) -> None:
        moves, twin = list(random_moves(Random(self.seed + 1), self.steps)), MemoryStore()
        half = self.steps // 2
        first = await open_ledger(open_store)
        assert without_words(await walk(first, moves[:half])) == without_words(await walk(twin, moves[:half]))
        await first.close()
        again = await open_ledger(open_store)
        ours, theirs = [await walk(store, moves[half:], first=half) for store in (again, twin)]
        assert without_words(ours) == without_words(theirs)
        assert await read_everything(again) == await read_everything(twin)
        await again.close()

    @on_a_ledger
    async def test_a_closed_store_says_so(self, open_store: OpenStore) -> None:
        store = await open_ledger(open_store)
        await store.close()
        assert await refuses(store.commit(batch(entry(1))))
        assert await refuses(store.heads())
        await store.close()

    @on_a_ledger
    async def test_two_open_stores_share_one_ledger(self, open_store: OpenStore) -> None:
        one, two = await open_ledger(open_store), await open_ledger(open_store)
        await asyncio.gather(*(store.commit(batch(entry(n))) for n in range(30) for store in (one, two)))
        assert await record_ids(one) == await record_ids(two) == list(range(1, 61))
        assert sum(head.count for head in await one.heads()) == 60
        await one.close()
        await two.close()

    @on_one_store
    async def test_a_batch_that_cannot_be_written_fails_alone(self, store: Store) -> None:
        work = [store.commit(batch(item)) for item in (entry(0), entry(1, status=None), entry(2))]
        receipts = await asyncio.gather(*work, return_exceptions=True)
        assert [isinstance(receipt, StoreError) for receipt in receipts] == [False, True, False]
        assert len(await record_ids(store)) == 2

    @on_one_store
    async def test_what_is_not_data_at_all_fails_with_a_store_error(self, store: Store) -> None:
        odd: Any = object()
        record = Record(at_us=T0, kind="call", call="c", turn=None, actor="a", tool="t", status="ok", content=odd)
        assert await refuses(store.commit(batch(Append(record=record))))
        assert isinstance(await store.commit(batch(entry(1))), Committed)

    @on_one_store
    async def test_whoever_is_cancelled_learns_of_it_after_the_batch_has_landed(self, store: Store) -> None:
        tasks = [asyncio.create_task(_finish_commit(store, n)) for n in range(5)]
        await asyncio.sleep(0)
        for task in tasks:
            task.cancel()
        done = await asyncio.gather(*tasks, return_exceptions=True)
        assert all(isinstance(item, asyncio.CancelledError) for item in done)
        assert len(await record_ids(store)) == 5


async def _finish_commit(store: Store, n: int) -> object:
    return await store.commit(batch(entry(n)))

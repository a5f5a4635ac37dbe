"""Memory, SQLite and PostgreSQL under the contract that every store keeps, and twins that do the same for any moves."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from interlock import ConfigError, StoreError
from interlock.ports import Spent, Store
from interlock.stores import MemoryStore, open_store
from interlock.testing.store_contract import DurableStoreContract, StoreContract
from interlock.testing.store_moves import batch, entry, random_moves, read_everything, reserve, walk
from interlock.testing.store_moves import record_ids as ids
from interlock.transitions import Batch, Receipt, Refused, RenewClaim

__all__ = ["batch", "entry", "ids", "reserve"]  # for the tests of each store


class TestMemory(StoreContract):
    @pytest.fixture
    def open_store(self) -> Callable[[], Store]:
        return MemoryStore


class TestSqlite(DurableStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: open_store(f"sqlite:///{tmp_path / 'ledger.db'}", own_clock=False)  # the suite moves the time


class TestPostgres(DurableStoreContract):
    @pytest.fixture
    def open_store(self, postgres: str) -> Callable[[], Store]:
        return lambda: open_store(postgres, own_clock=False)  # the suite moves the time


class TestOpenedAsynchronously(StoreContract):
    """A store may need to await something before it is open."""

    steps = 20

    @pytest.fixture
    def open_store(self) -> Callable[[], object]:
        async def connect() -> Store:
            await asyncio.sleep(0)
            return MemoryStore()

        return connect


EMPTY: dict[str, object] = {
    "payload": None,
    "wipe": False,
    "heads": (),
    "checkpoints": (),
    "spent": Spent(),
    "reservations": (),
    "all_spent": {},
    "buckets": {},
    "claim": None,
    "claims": (),
    "unsettled_claims": (),
    "now_us": 0,
    "leases": (),
    "ticket": None,
    "tickets": (),
    "halts": (),
}
"""What each read of a store answers where there is nothing."""


def broken_by(store: type[Store]) -> list[str]:
    """The tests of the contract that a store does not pass, without the longest."""
    found = []
    for name in vars(StoreContract):
        if name.startswith("test_") and "many_records" not in name:
            try:
                getattr(StoreContract(), name)(store)
            except (AssertionError, StoreError, TypeError, ValueError):
                found.append(name)
    return found


@pytest.mark.parametrize("read", EMPTY)
def test_the_contract_finds_a_store_with_one_read_that_finds_nothing(read: str) -> None:
    async def nothing(self: Store, *_arguments: object) -> object:
        return EMPTY[read]

    assert broken_by(type("Forgetful", (MemoryStore,), {read: nothing})) != []


@pytest.mark.parametrize("read", ["records", "payload_ids"])
def test_the_contract_finds_a_store_that_streams_nothing(read: str) -> None:
    async def nothing(self: Store, *_arguments: object) -> AsyncIterator[object]:
        for item in list[object]():
            yield item

    assert broken_by(type("Forgetful", (MemoryStore,), {read: nothing})) != []


def test_the_contract_finds_a_store_that_renews_nothing() -> None:
    class Forgetful(MemoryStore):
        def renew(self, claims: Sequence[RenewClaim], here_us: int) -> tuple[str, ...]:
            return ()

    assert broken_by(Forgetful) != []


def test_every_read_of_a_store_is_among_those_that_are_broken_here() -> None:
    reads = {name for part in Store.__mro__ for name in vars(part) if not name.startswith("_")}
    assert reads - {"commit", "close", "identity", "missing"} == {*EMPTY, "records", "payload_ids", "renew"}


def test_a_store_says_why_it_refuses_in_words_of_its_own() -> None:
    class Foreign(MemoryStore):
        async def commit(self, batch: Batch) -> Receipt:
            receipt = await super().commit(batch)
            return replace(receipt, message="nein") if isinstance(receipt, Refused) else receipt

    assert broken_by(Foreign) == []


@given(st.randoms(use_true_random=False), st.integers(1, 60))
@pytest.mark.slow
def test_the_durable_twin_does_what_the_memory_twin_does(random: Random, count: int) -> None:
    moves = list(random_moves(random, count))

    async def play(store: Store) -> object:
        seen = await walk(store, moves), await read_everything(store)
        await store.close()
        return seen

    with tempfile.TemporaryDirectory() as folder:
        durable = asyncio.run(play(open_store(f"sqlite:///{Path(folder) / 'x.db'}", own_clock=False)))
    assert durable == asyncio.run(play(MemoryStore()))


async def test_a_closed_store_says_so_in_words(durable_url: str) -> None:
    store = open_store(durable_url)
    await store.close()
    with pytest.raises(StoreError, match="the store is closed"):
        await store.commit(batch(entry(1)))


async def test_what_cannot_be_written_is_said_in_words(durable_url: str) -> None:
    store = open_store(durable_url)
    with pytest.raises(StoreError, match="could not be written"):
        await store.commit(batch(entry(1, turn=object())))
    await store.close()


@pytest.mark.parametrize(
    "url", ["redis://x", "sqlite://", "sqlite:///", "sqlite:///:memory:", "sqlite:///x?cache=shared"]
)
def test_a_url_that_is_no_store_is_refused(url: str) -> None:
    with pytest.raises(ConfigError):
        open_store(url)

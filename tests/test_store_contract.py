"""Memory, SQLite and PostgreSQL under the contract that every store keeps, and twins that do the same for any moves."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from interlock import ConfigError, StoreError
from interlock.ports import Store
from interlock.stores import MemoryStore, open_store
from interlock.testing.store_contract import DurableStoreContract, StoreContract
from interlock.testing.store_moves import batch, entry, random_moves, read_everything, reserve, walk
from interlock.testing.store_moves import record_ids as ids

__all__ = ["batch", "entry", "ids", "reserve"]  # for the tests of each store


class TestMemory(StoreContract):
    @pytest.fixture
    def open_store(self) -> Callable[[], Store]:
        return MemoryStore


class TestSqlite(DurableStoreContract):
    @pytest.fixture
    def open_store(self, tmp_path: Path) -> Callable[[], Store]:
        return lambda: open_store(f"sqlite:///{tmp_path / 'ledger.db'}")


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


def test_the_contract_finds_a_store_that_does_not_keep_it() -> None:
    class Forgetful(MemoryStore):
        async def payload(self, record: int) -> bytes | None:
            return None

    contract = StoreContract()
    with pytest.raises(AssertionError):
        contract.test_payloads_lie_beside_the_records(Forgetful)
    contract.test_content_reads_back_as_it_was_written(Forgetful)


@given(st.randoms(use_true_random=False), st.integers(1, 60))
@pytest.mark.slow
def test_the_durable_twin_does_what_the_memory_twin_does(random: Random, count: int) -> None:
    moves = list(random_moves(random, count))

    async def play(store: Store) -> object:
        seen = await walk(store, moves), await read_everything(store)
        await store.close()
        return seen

    with tempfile.TemporaryDirectory() as folder:
        durable = asyncio.run(play(open_store(f"sqlite:///{Path(folder) / 'x.db'}")))
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

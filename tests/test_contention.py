"""A disk that fills up under a group of callers, a file that others hold, keys that many want: each hears the truth,
nothing acknowledged is lost, nobody waits for ever, and each effect is made once."""

from __future__ import annotations

import json
import os
import random
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from interlock.audit import verify
from interlock.ports import Query
from interlock.resources import Documents
from interlock.stores import open_store
from tests.contending import (
    deliver_impatiently,
    fill_in_groups,
    hold_file,
    key_beside,
    pay_on_a_full_disk,
    swap_keys,
)
from tests.forked import FORKED

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROUNDS = 10 if os.environ.get("TORTURE") else 2
PROCESSES = 4


def in_processes(*work: tuple[Any, tuple[Any, ...]]) -> None:
    """Run each in a process of its own; all end by themselves, and in peace."""
    children = [FORKED.Process(target=function, args=arguments) for function, arguments in work]
    for child in children:
        child.start()
    for child in children:
        child.join(240)
    ends = [child.exitcode for child in children]
    for child in children:
        child.kill()
    assert ends == [0] * len(children)


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_a_disk_that_fills_up_under_a_group_tells_each_caller_the_truth(tmp_path: Path, round_: int) -> None:
    url, answers = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "answers"
    in_processes((fill_in_groups, (url, answers)))
    heard = json.loads(answers.read_text())
    assert len(heard["full"]) == len(heard["afterwards"]) == 24
    assert len(heard["acknowledged"]) > 24
    store = open_store(url, payload_key=key_beside(url))
    kept = {(record.id, record.call) async for record in store.records(Query())}
    assert kept == {tuple(item) for item in heard["acknowledged"] + heard["afterwards"]}
    assert (await verify(store)).intact
    await store.close()


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_calls_on_a_disk_that_fills_up_are_made_once_and_named_rightly(tmp_path: Path, round_: int) -> None:
    url, answers = f"sqlite:///{tmp_path / 'ledger.db'}", tmp_path / "answers"
    in_processes((pay_on_a_full_disk, (url, answers)))
    heard = json.loads(answers.read_text())
    paid = Counter(heard["paid first"])
    assert set(heard["first"].values()) >= {"ok", "failed"}
    for order, status in heard["first"].items():
        assert paid[order] <= 1
        assert status in ("ok", "unknown") if paid[order] else status in ("failed", "unknown"), (order, status)
    assert set(heard["again"]) == {"ok"}, Counter(heard["again"])
    assert Counter(heard["made"]) == dict.fromkeys(heard["first"], 1)
    store = open_store(url, payload_key=key_beside(url))
    assert (await verify(store)).intact
    await store.close()


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_processes_with_little_patience_on_one_file_make_each_effect_once(tmp_path: Path, round_: int) -> None:
    calls, file, paid = 30, tmp_path / "ledger.db", tmp_path / "paid"
    await open_store(f"sqlite:///{file}").close()
    until = FORKED.Event()
    hog = FORKED.Process(target=hold_file, args=(str(file), until))
    hog.start()
    try:
        answers = [tmp_path / f"answers{n}" for n in range(PROCESSES)]
        url = f"sqlite:///{file}"
        in_processes(*((deliver_impatiently, (url, paid, calls, answer, n)) for n, answer in enumerate(answers)))
    finally:
        until.set()
        hog.join(30)
    heard = [json.loads(answer.read_text()) for answer in answers]
    assert [item["left"] for item in heard] == [[]] * PROCESSES
    assert sum(item["busy"] for item in heard) > 0, "nobody had to wait: nothing was tried"
    assert Counter(paid.read_text().split()) == {f"o{n}": 1 for n in range(calls)}


@pytest.mark.parametrize("round_", range(ROUNDS))
async def test_overlapping_keys_in_any_order_do_not_deadlock(durable_url: str, tmp_path: Path, round_: int) -> None:
    calls, keys = 40, 5
    answers = [tmp_path / f"answers{n}" for n in range(PROCESSES)]
    work = [(swap_keys, (durable_url, calls, keys, answer, round_ * 10 + n)) for n, answer in enumerate(answers)]
    in_processes(*work)
    assert [json.loads(answer.read_text()) for answer in answers] == [["ok"] * calls] * PROCESSES
    choose = random.Random(7)
    wanted = [(n, choose.sample([f"k{k}" for k in range(keys)], 3)) for n in range(calls)]
    shelf = Documents(durable_url, "shelf")
    found = await shelf.snapshot()
    await shelf.close()
    for key in (f"k{k}" for k in range(keys)):
        assert sorted(found[key]["n"]) == [n for n, ids in wanted if key in ids]

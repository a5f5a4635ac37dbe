"""A change of a whole resource keeps what it changed, not what it did not: what was there is put together again."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime, Tool, tool
from interlock.operations.ledger_writer import record_with_payload
from interlock.testing import ManualClock
from interlock.values import Json

POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}],
}


class Table:
    """Rows that a tool may change without saying which."""

    name = "table"

    def __init__(self, rows: int) -> None:
        self.rows: dict[str, Json] = {f"r{n}": {"n": n, "note": "what stands here is long enough"} for n in range(rows)}

    async def snapshot(self) -> dict[str, Json]:
        return {key: dict(row) for key, row in self.rows.items()}

    async def read_state(self, key: str) -> Json:
        return self.rows.get(key)

    async def restore(self, key: str, state: Json) -> None:
        self.rows.pop(key, None) if state is None else self.rows.update({key: state})

    def tool(self, *, simulates: bool, beside: str = "") -> Tool:
        def simulate(state: Json, arguments: dict[str, Json]) -> Json:
            rows = {**state, arguments["row"]: {"n": arguments["n"]}}
            return {key: row for key, row in rows.items() if row["n"] is not None}

        @tool(effect="write", resource=self, simulate=simulate if simulates else None)
        async def put(row: str, n: int | bool | None) -> bool:
            """Put a figure into a row."""
            self.rows[row] = {"n": n}
            if n is None:
                del self.rows[row]
            if beside:
                self.rows[beside] = {"n": n}
            return True

        return put


async def sizes(runtime: Runtime) -> list[int]:
    return [len(await runtime.store.payload(number) or b"") async for number in runtime.store.payload_ids()]


@pytest.mark.parametrize("simulates", [True, False])
async def test_what_is_kept_is_what_changed_and_all_of_it_comes_back(simulates: bool, tmp_path: Path) -> None:
    table, store = Table(400), f"sqlite:///{tmp_path / 'l.db'}"
    first, seen = await table.snapshot(), list[tuple[int, Json, Json]]()
    steps = [("r1", 5), ("r1", True), ("new", 7), ("r2", None), ("new", None)]
    put = table.tool(simulates=simulates)
    async with Runtime.open(store, policy=POLICY, tools=[put]) as runtime:
        for number, (row, n) in enumerate(steps):
            before = await table.snapshot()
            done = await runtime.call("put", {"row": row, "n": n}, actor="a", run="a", call_id=f"c{number}")
            assert done.ok, done.problem
            assert done.record is not None
            seen.append((done.record, before, await table.snapshot()))
        kept = await sizes(runtime)
        assert kept[0] > 10_000, "the first one is kept in full,"
        assert max(kept[1:]) < 1_000, "the others by what is different"
        for record, before, after in seen:
            found, whole = await record_with_payload(runtime.store, record)
            assert found is not None
            change = found.content().change
            assert change is not None
            assert change.intent is not None
            intent = (await record_with_payload(runtime.store, change.intent))[1]
            assert (intent["before"], whole["after"]) == ([before], [after])
            assert type(whole["after"][0]["r1"]["n"]) is type(after["r1"]["n"]), "1 is not True"
    async with Runtime.open(store, policy=POLICY, tools=[put]) as runtime:  # by somebody who remembers nothing
        undone = await runtime.operations.undo(run="a")
        assert [(step.obstacle, outcome and outcome.status) for step, outcome in undone] == [("", "ok")] * len(steps)
    assert await table.snapshot() == first


async def test_what_was_planned_is_told_by_what_it_changes() -> None:
    table = Table(400)
    async with Runtime.open("memory://", policy=POLICY, tools=[table.tool(simulates=True, beside="r9")]) as runtime:
        planned = await runtime.call("put", {"row": "r1", "n": 5}, actor="a", mode="dry_run")
        assert planned.record is not None
        whole = (await record_with_payload(runtime.store, planned.record))[1]
        assert whole["before"] == [table.rows]
        assert whole["planned"] == [{**table.rows, "r1": {"n": 5}}]
        before = await table.snapshot()
        done = await runtime.call("put", {"row": "r1", "n": 5}, actor="a", run="a", call_id="c1")
        assert done.deviates, "what was not planned is said,"
        assert table.rows["r9"] == {"n": 5}
        ((step, outcome),) = await runtime.operations.undo(run="a")
        assert (step.obstacle, outcome and outcome.status) == ("", "ok")
        assert await table.snapshot() == before, "and comes back, too"


async def test_a_purge_keeps_what_others_are_told_by() -> None:
    table, clock = Table(400), ManualClock()
    tools = [table.tool(simulates=False)]
    async with Runtime.open("memory://", policy=POLICY, tools=tools, clock=clock) as runtime:
        await runtime.call("put", {"row": "r1", "n": 5}, actor="a", run="a", call_id="c1")
        clock.advance(60)
        await runtime.call("put", {"row": "r2", "n": 6}, actor="b", run="b", call_id="c2")
        clock.advance(86_400 - 30)
        gone = await runtime.operations.purge(older_than=timedelta(days=1))
        assert [kept.why for kept in gone.kept] == ["record 3 tells by it what was there before"]
        ((step, outcome),) = await runtime.operations.undo(run="b")
        assert (step.obstacle, outcome and outcome.status, table.rows["r2"]["n"]) == ("", "ok", 2)


async def test_after_something_was_deleted_everything_is_kept_anew() -> None:
    table = Table(400)
    async with Runtime.open("memory://", policy=POLICY, tools=[table.tool(simulates=False)]) as runtime:
        first = await runtime.call("put", {"row": "r1", "n": 5}, actor="a", run="a", call_id="c1")
        assert first.record is not None
        await runtime.operations.forget(record=first.record, reason="asked to")
        await runtime.call("put", {"row": "r2", "n": 6}, actor="b", run="b", call_id="c2")
        ((step, outcome),) = await runtime.operations.undo(run="b")
        assert (step.obstacle, outcome and outcome.status, table.rows["r2"]["n"]) == ("", "ok", 2)


async def test_where_what_it_is_told_by_was_deleted_nothing_is_made_up() -> None:
    table = Table(400)
    async with Runtime.open("memory://", policy=POLICY, tools=[table.tool(simulates=False)]) as runtime:
        first = await runtime.call("put", {"row": "r1", "n": 5}, actor="a", run="a", call_id="c1")
        await runtime.call("put", {"row": "r2", "n": 6}, actor="b", run="b", call_id="c2")
        assert first.record is not None
        await runtime.operations.forget(record=first.record, reason="asked to")
        ((step, outcome),) = await runtime.operations.undo(run="b")
        assert (outcome, table.rows["r2"]) == (None, {"n": 6})
        assert "deleted" in step.obstacle or "not there" in step.obstacle, step.obstacle

"""The HTTP client of the catalog, over good wires and faulty ones; and the whole schema of the server."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

from catalog_testing import (
    PRESS,
    TOKENS,
    clean_families,
    faulty_families,
    fill_catalog,
    open_steps,
    prepare_home,
    read_catalog,
    run_all,
)
from chaos import free_port, run_proxy, run_server
from interlock import Context, Runtime, Status
from interlock.errors import Conflict, Forbidden
from interlock_catalog.backends.http import HttpBackend
from interlock_catalog.backends.port import Write
from interlock_catalog.resource import Catalog
from interlock_catalog.runner.records import RunRequest
from interlock_catalog.server.app import build_server
from interlock_catalog.server.tokens import create_token
from interlock_catalog.settings import Settings
from interlock_catalog.tools import build_write_tools


async def test_the_client_reads_and_writes_what_the_database_does(tmp_path: Path, url: str) -> None:
    app = build_server(url, TOKENS)
    async with app.router.lifespan_context(app):
        backend = HttpBackend("http://catalog", Settings(token="editor"), httpx.ASGITransport(app))
        from interlock_catalog.backends.embedded import DatabaseBackend

        direct = DatabaseBackend(url)
        ids = [key[9:] for key in await direct.exercises(family="bench-press")]
        keys = [f"exercise:{identity}" for identity in ids] + [
            "alias:bench-press",
            "family:bench-press",
            "exercise:none",
        ]
        assert await backend.read_many(keys) == await direct.read_many(keys)
        await backend.fence({"exercise:none": 9}, "one")
        late = Context(call_id="late", actor="x", attempt=1, tokens={"exercise:none": 8}, ledger="one")
        with pytest.raises(Conflict, match="too old"):
            await direct.write(Write("restore", {"exercise:none": None}), late)
        assert await backend.families() == await direct.families()
        assert await backend.exercises(limit=3) == await direct.exercises(limit=3)
        assert await backend.exercises(family="bench-press") == await direct.exercises(family="bench-press")
        assert await backend.aliases_of(ids, ["bench-press"]) == await direct.aliases_of(ids, ["bench-press"])
        assert await backend.aliases(limit=4) == await direct.aliases(limit=4)
        assert await backend.find_by_name(["bench-press-barbell"]) == await direct.find_by_name(["bench-press-barbell"])
        assert await backend.searches() == await direct.searches()
        context = Context(
            call_id="c", actor="a", attempt=1, idempotency_key="k.1", tokens={"lease:bench-press": 3}, ledger="l"
        )
        doc = (await direct.read_many([f"exercise:{PRESS}"]))[f"exercise:{PRESS}"]
        write = Write(
            "upsert_exercise",
            {f"exercise:{PRESS}": {**doc.value, "category": "core"}},
            {f"exercise:{PRESS}": doc.version},
        )
        await backend.write(write, context)
        await backend.write(write, context)  # its answer was lost: the key knows it
        assert (await direct.read_many([f"exercise:{PRESS}"]))[f"exercise:{PRESS}"].version == "2"
        stale = Write("upsert_exercise", {f"exercise:{PRESS}": doc.value}, {f"exercise:{PRESS}": "1"})
        with pytest.raises(Conflict):
            await backend.write(stale)
        reader = HttpBackend("http://catalog", Settings(token="reader"), httpx.ASGITransport(app))
        with pytest.raises(Forbidden):
            await reader.write(stale)
        for connection in (backend, reader):
            await connection.close()
        await direct.close()


class _Deaf(httpx.ASGITransport):
    """A wire on which what changes something is lost before it arrives."""

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        if request.method == "POST" and not request.url.path.endswith("/fence"):
            raise httpx.ReadError("no answer", request=request)
        return await super().handle_async_request(request)


async def test_a_write_that_never_arrived_is_settled_by_the_catalog_itself(url: str) -> None:
    app = build_server(url, TOKENS)
    async with app.router.lifespan_context(app):
        backend = HttpBackend("http://catalog", Settings(token="editor", attempts=1), _Deaf(app))
        tools, rule = build_write_tools(Catalog(backend)), {"id": "all", "tools": ["*"], "decision": "allow"}
        policy = {"version": 1, "rule": [rule], "actor": {"ann": {"capabilities": ["catalog:admin"]}}}
        async with Runtime.open("memory:", policy=policy, tools=tools) as runtime:
            found = await runtime.call(
                "restore_document", {"key": f"exercise:{PRESS}", "state": None}, actor="ann", call_id="c", mode="apply"
            )
            assert found.status is Status.UNKNOWN, found
            assert [(one.state, one.how) for one in await runtime.operations.recover()] == [
                ("failed", "the resource shows it")
            ]
        await backend.close()


async def test_a_run_over_a_faulty_wire_ends_as_over_a_good_one(tmp_path: Path) -> None:
    docs = faulty_families("bench-press", "squat", "front-raise")
    calm = prepare_home(tmp_path / "calm")
    await fill_catalog(calm, docs)
    async with open_steps(calm) as steps:
        await run_all(steps, RunRequest(run="r1", mode="apply", scout=False))
    store = prepare_home(tmp_path / "server")
    await fill_catalog(store, docs)
    token, port = create_token(store.folder / "tokens.toml", "auto", "editor"), free_port()
    async with run_server(store.folder, port), run_proxy(port, 0.3, seed=11) as proxy:
        loaded = prepare_home(
            tmp_path / "home",
            backend=f"http://127.0.0.1:{proxy.port}",
            token=token,
            attempts=12,
            backoff_s=0.01,
            backoff_cap_s=0.1,
            timeout_s=60.0,
        )
        async with open_steps(loaded) as steps:
            run, _results = await run_all(steps, RunRequest(run="r1", mode="apply", scout=False))
            assert set(run.counts) == {"ok"}, run
            after = await read_catalog(store)
            assert after == await read_catalog(calm)
            done = await steps.app.runtime.operations.undo(run="r1")
            assert all(outcome is not None and outcome.ok for _step, outcome in done)
        assert sum(count for kind, count in proxy.counts.items() if kind != "fine") > 20
    assert await read_catalog(store) == docs


# The whole schema


def test_the_schema_is_kept(tmp_path: Path) -> None:
    """Schemathesis: whatever fits the schema or does not, the server never fails."""
    import schemathesis
    from schemathesis.checks import not_a_server_error
    from schemathesis.core.result import Ok

    loaded = prepare_home(tmp_path / "home")
    asyncio.run(fill_catalog(loaded, clean_families("t-bar-row")))
    app = build_server(loaded.settings.backend, TOKENS)
    schema = schemathesis.openapi.from_asgi("/openapi.json", app)
    seen: list[int] = []
    sent: set[str] = set()
    for found in schema.get_all_operations():
        assert isinstance(found, Ok)
        operation = found.ok()

        @given(case=operation.as_strategy())
        @settings(max_examples=12, deadline=None, suppress_health_check=list(HealthCheck), database=None)
        def probe(case: Any) -> None:
            answer = case.call(headers={"Authorization": "Bearer admin"})
            seen.append(answer.status_code)
            sent.update(name.lower() for name in case.headers or ())
            case.validate_response(answer, checks=(not_a_server_error,))

        probe()
    assert len(seen) > 200
    assert sent >= {"idempotency-key", "if-match", "x-fencing-tokens", "x-fencing-ledger"}
    assert {status for status in seen if status >= 500} == set()

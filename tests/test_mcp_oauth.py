"""Who calls over HTTP is who the token says: signed by the right key, for this gateway, and not over."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import httpx2
import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import rsa
from jwt.algorithms import RSAAlgorithm
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types import ElicitResult

from interlock import Runtime, tool
from interlock.adapters.mcp.http import HttpTerms, serve_http
from interlock.adapters.mcp.oauth import JwksVerifier, OAuthTerms
from interlock.errors import ConfigError
from interlock.ports import Query

ISSUER = "https://login.example"
KEY, OTHER = (rsa.generate_private_key(65537, 2048) for _ in range(2))
POLICY: dict[str, Any] = {
    "version": 1,
    "mode": "apply",
    "rule": [{"id": "desk", "tools": ["*"], "decision": "allow", "when": "actor == 'desk'"}],
}


MADE: list[str] = []


@tool(effect="read")
async def look(key: str) -> str:
    """Look."""
    return f"seen {key}"


@tool(effect="send")
async def pay(to: str) -> str:
    """Pay."""
    MADE.append(to)
    return f"paid {to}"


def _jwks(folder: Path) -> str:
    key = json.loads(RSAAlgorithm.to_jwk(KEY.public_key()))
    file = folder / "jwks.json"
    file.write_text(json.dumps({"keys": [{**key, "kid": "one", "use": "sig", "alg": "RS256"}]}))
    return str(file)


def _token(audience: str, *, key: Any = KEY, algorithm: str = "RS256", **claims: Any) -> str:
    said = {"iss": ISSUER, "aud": audience, "sub": "ann", "client_id": "desk", "exp": int(time.time()) + 60, **claims}
    said = {name: value for name, value in said.items() if value is not None}
    return jwt.encode(said, key, algorithm=algorithm, headers={"kid": "one"})


@asynccontextmanager
async def _served(folder: Path, policy: Any = POLICY) -> AsyncIterator[tuple[str, Runtime]]:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    audience = f"http://{address}/mcp"
    terms = HttpTerms(address=address, oauth=OAuthTerms(ISSUER, audience, _jwks(folder)))
    async with Runtime.open("memory://", policy=policy, tools=[look, pay]) as runtime:
        serving = asyncio.create_task(serve_http(runtime, terms, say=lambda _text: None))
        try:
            async with httpx.AsyncClient() as client:
                for _try in range(500):
                    try:
                        await client.get(audience)
                        break
                    except httpx.TransportError:
                        await asyncio.sleep(0.02)
            yield audience, runtime
        finally:
            serving.cancel()
            await asyncio.gather(serving, return_exceptions=True)


@asynccontextmanager
async def _client(audience: str, token: str, mode: str = "auto", **options: Any) -> AsyncIterator[Client]:
    async with (
        httpx2.AsyncClient(headers={"Authorization": f"Bearer {token}"}) as http,
        Client(streamable_http_client(audience, http_client=http), mode=mode, cache=None, **options) as client,
    ):
        yield client


@pytest.mark.parametrize("mode", ["auto", "legacy"])
async def test_the_subject_is_the_principal_and_the_client_the_actor(tmp_path: Path, mode: str) -> None:
    async with _served(tmp_path) as (audience, runtime), _client(audience, _token(audience), mode) as client:
        assert [one.name for one in (await client.list_tools()).tools] == ["look", "pay"]
        found = await client.call_tool("look", {"key": "k"})
        assert not found.is_error
        (record,) = [one async for one in runtime.store.records(Query())]
        assert (record.actor, record.content().principal) == ("desk", "oauth:ann")
        async with _client(audience, _token(audience, client_id="other"), mode) as other:
            assert (await other.call_tool("look", {"key": "k"})).is_error


async def test_a_token_that_is_not_good_here_lets_nobody_in(tmp_path: Path) -> None:
    async with _served(tmp_path) as (audience, _runtime), httpx.AsyncClient() as client:
        for token in (
            "nonsense",
            _token("https://elsewhere.example/mcp"),
            _token(audience, key=OTHER),
            _token(audience, exp=int(time.time()) - 10),
            _token(audience, iss="https://evil.example"),
            _token(audience, sub=None),
            _token(audience, exp=None),
            _token(audience, client_id=None),
            _token(audience, key="a secret that both sides know, of some length", algorithm="HS256"),
            jwt.encode({"iss": ISSUER, "aud": audience, "sub": "ann"}, "", algorithm="none"),
        ):
            found = await client.post(audience, json={}, headers={"Authorization": f"Bearer {token}"})
            assert found.status_code == 401
            assert "resource_metadata" in found.headers["WWW-Authenticate"]
        told = await client.get(audience.replace("/mcp", "/.well-known/oauth-protected-resource/mcp"))
        assert told.json()["authorization_servers"] == [ISSUER]
        assert told.json()["resource"] == audience


async def test_a_session_is_its_principals_alone(tmp_path: Path) -> None:
    begin = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "c", "version": "1"}},
    }
    listing = {"jsonrpc": "2.0", "id": 2, "method": "tools/list"}
    headers = {"Accept": "application/json, text/event-stream"}
    async with _served(tmp_path) as (audience, _runtime), httpx.AsyncClient(headers=headers) as client:
        ann, eve = ({"Authorization": f"Bearer {_token(audience, sub=name)}"} for name in ("ann", "eve"))
        begun = await client.post(audience, json=begin, headers=ann)
        session = {"Mcp-Session-Id": begun.headers["Mcp-Session-Id"], "MCP-Protocol-Version": "2025-11-25"}
        started = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        await client.post(audience, json=started, headers={**ann, **session})
        assert (await client.post(audience, json=listing, headers={**eve, **session})).status_code == 404
        assert (await client.post(audience, json=listing, headers={**ann, **session})).status_code == 200
        foreign = {**ann, **session, "Host": "evil.example"}
        assert (await client.post(audience, json=listing, headers=foreign)).status_code == 421
        elsewhere = {**ann, **session, "Origin": "https://evil.example"}
        assert (await client.post(audience, json=listing, headers=elsewhere)).status_code == 403


REVIEWED = {"version": 1, "mode": "apply", "rule": [{"id": "ask", "tools": ["*"], "decision": "review"}]}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("review", "paid"),
    [
        ({"self_approval": True, "vouched": ["oauth"]}, True),
        ({"self_approval": True}, False),
        ({"self_approval": True, "vouched": ["oauth"], "approvers": ["oauth:boss"]}, False),
    ],
)
async def test_whoever_a_token_names_decides_in_that_name_or_not_at_all(
    tmp_path: Path, mode: str, review: dict[str, Any], paid: bool
) -> None:
    async def elicit(context: Any, params: Any) -> ElicitResult:
        del context, params
        return ElicitResult(action="accept", content={"approve": True})

    async with (
        _served(tmp_path, {**REVIEWED, "review": review}) as (audience, runtime),
        _client(audience, _token(audience, sub="eve"), mode, elicitation_callback=elicit) as client,
    ):
        assert (await client.call_tool("pay", {"to": "eve"})).is_error != paid
        assert {ticket.decided_by for ticket in await runtime.store.tickets()} == {"oauth:eve" if paid else ""}


async def test_names_that_two_callers_give_are_not_the_same(tmp_path: Path) -> None:
    key: Any = {"interlock/idempotency-key": "k"}
    allow = {**REVIEWED, "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
    MADE.clear()
    async with _served(tmp_path, allow) as (audience, _runtime):
        for said in ({"sub": "a", "client_id": "b.c"}, {"sub": "a.b", "client_id": "c"}):
            async with _client(audience, _token(audience, **said)) as client:
                for meta in (None, key, key):
                    assert "paid ann" in str((await client.call_tool("pay", {"to": "ann"}, meta=meta)).content)
    assert MADE == ["ann"] * 4, "each once by itself, and once under that name"


def test_terms_that_cannot_be_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="are addresses"):
        OAuthTerms("x", "y", "z").settings()
    (tmp_path / "none.json").write_text("{}")
    for file in ("none.json", "not-there.json"):
        with pytest.raises(ConfigError, match="no keys"):
            JwksVerifier(OAuthTerms(ISSUER, "https://a.example", str(tmp_path / file)))

"""A server is told what the client behind the gateway can, and does not get it to do more."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import mcp_types as types
import pytest
from mcp import Client
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPDeprecationWarning

from interlock.adapters.mcp.terms import ServerTerms
from tests.mcp_gateway import heard_by, raw_gateway


async def _elicit(context: Any, params: Any) -> types.ElicitResult:
    del context, params
    return types.ElicitResult(action="decline")


async def _sample(context: Any, params: Any) -> types.CreateMessageResult:
    del context, params
    return types.CreateMessageResult(role="assistant", content=types.TextContent(text="s"), model="m")


def _can(monkeypatch: pytest.MonkeyPatch, **abilities: Any) -> None:
    """What the client says of itself; those of the gateway say what they would."""
    can = types.ClientCapabilities.model_validate(abilities)
    build = ClientSession._build_capabilities

    def say(session: ClientSession, version: str) -> types.ClientCapabilities:
        is_client = session._elicitation_callback is _elicit
        return can if is_client else build(session, version)

    monkeypatch.setattr(ClientSession, "_build_capabilities", say)


@pytest.mark.parametrize(
    "abilities",
    [
        {"sampling": {"tools": {}, "context": {}}, "elicitation": {"form": {}}},
        {"sampling": {}, "elicitation": {}, "roots": {}},
        {"elicitation": {"url": {}}, "roots": {"listChanged": True}},
    ],
)
async def test_a_server_is_told_what_the_client_can(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abilities: dict[str, Any]
) -> None:
    _can(monkeypatch, **abilities)
    async with (
        raw_gateway(tmp_path, "aaa") as server,
        Client(server, mode="legacy", cache=None, elicitation_callback=_elicit) as client,
    ):
        await client.call_tool("aaa_go", {"x": "hello"})
    begun = [one for one in heard_by(tmp_path, "aaa") if one.get("method") == "initialize"]
    assert begun[-1]["params"]["capabilities"] == abilities


@pytest.mark.parametrize(
    ("abilities", "refused"),
    [
        ({"sampling": {}, "elicitation": {"form": {}}}, {"url", "tools"}),
        ({"sampling": {}, "elicitation": {}}, {"url", "tools"}),
        ({"sampling": {"tools": {}}, "elicitation": {"url": {}}}, {"form"}),
        ({"sampling": {"tools": {}}, "elicitation": {"url": {}, "form": {}}}, set()),
    ],
)
async def test_a_client_is_not_asked_for_what_it_cannot(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abilities: dict[str, Any], refused: set[str]
) -> None:
    _can(monkeypatch, **abilities)

    async with (
        raw_gateway(tmp_path, "aaa") as server,
        Client(server, mode="legacy", cache=None, elicitation_callback=_elicit, sampling_callback=_sample) as one,
    ):
        answers: dict[str, Any] = {}
        for what in ("form", "url", "tools"):
            (part,) = (await one.call_tool("aaa_go", {"x": what})).content
            assert isinstance(part, types.TextContent)
            answers[what] = json.loads(part.text).get("code")
        assert answers == {what: -32602 if what in refused else None for what in answers}


@pytest.mark.parametrize("roots", [True, False])
async def test_an_operator_says_whether_a_server_is_told_the_folders_of_its_clients(
    tmp_path: Path, roots: bool
) -> None:
    async def folders(context: Any) -> types.ListRootsResult:
        del context
        return types.ListRootsResult(roots=[types.Root(uri="file:///elsewhere")])

    async with (
        raw_gateway(tmp_path, "aaa", roots=roots) as server,
        Client(server, mode="legacy", cache=None, list_roots_callback=folders) as client,
    ):
        await client.call_tool("aaa_go", {"x": "hello"})
        with pytest.warns(MCPDeprecationWarning):  # for clients of the older revision it is what there is
            await client.session.send_roots_list_changed()
        await client.call_tool("aaa_go", {"x": "again"})
    told = heard_by(tmp_path, "aaa")
    begun = [one["params"]["capabilities"] for one in told if one.get("method") == "initialize"]
    assert ("roots" in begun[-1]) is roots
    changed = [one for one in told if one.get("method") == "notifications/roots/list_changed"]
    assert bool(changed) is roots


def test_a_profile_may_keep_a_server_where_its_operator_has_put_it() -> None:
    assert not ServerTerms(command=("x",), profile="filesystem").hears_roots
    assert ServerTerms(command=("x",), profile="filesystem", roots=True).hears_roots
    assert ServerTerms(command=("x",), profile="git").hears_roots
    assert ServerTerms(command=("x",)).hears_roots

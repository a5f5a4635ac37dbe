"""What is no call of a tool goes to the server that offers it, and to no other that would answer it as well."""

from __future__ import annotations

from pathlib import Path

import mcp_types as types
import pytest
from mcp import Client, MCPError
from mcp_types import PromptReference, ResourceTemplateReference

from interlock.adapters.mcp.offers import Offers
from tests.mcp_gateway import ALLOW, POLICY, heard_by, raw_gateway

MODES = pytest.mark.parametrize("mode", ["legacy", "auto"])


async def _read(client: Client, uri: str) -> str:
    (part,) = (await client.read_resource(uri)).contents
    assert isinstance(part, types.TextResourceContents)
    return part.text


@MODES
async def test_an_address_that_fits_a_template_is_read_from_the_server_of_the_template(
    tmp_path: Path, mode: str
) -> None:
    async with raw_gateway(tmp_path, "aaa", "bbb") as server, Client(server, mode=mode, cache=None) as client:
        assert await _read(client, "bbb://lamp") == "from bbb"
        assert await _read(client, "aaa://lamp") == "from aaa"
        await client.list_resources()
        assert await _read(client, "bbb://listed") == "from bbb"
        assert await _read(client, "bbb://lamp") == "from bbb"
    assert "bbb://lamp" not in str(heard_by(tmp_path, "aaa"))


async def test_the_rule_for_a_server_is_asked_about_what_fits_its_templates(tmp_path: Path) -> None:
    rules = [ALLOW, {"id": "no", "tools": ["bbb.resources.read"], "decision": "deny", "reason": "not that"}]
    policy = {**POLICY, "rule": rules}
    async with raw_gateway(tmp_path, "aaa", "bbb", policy=policy) as server, Client(server, cache=None) as client:
        with pytest.raises(MCPError, match="not that"):
            await _read(client, "bbb://lamp")
        assert await _read(client, "aaa://lamp") == "from aaa"


async def test_an_address_that_fits_nothing_is_tried_one_after_the_other(tmp_path: Path) -> None:
    async with raw_gateway(tmp_path, "aaa", "bbb") as server, Client(server, cache=None) as client:
        assert await _read(client, "other://lamp") == "from aaa"


async def test_a_subscription_goes_to_the_server_of_the_template(tmp_path: Path) -> None:
    async with (
        raw_gateway(tmp_path, "aaa", "bbb") as server,
        Client(server, mode="legacy", cache=None) as client,
    ):
        on = types.SubscribeRequest(params=types.SubscribeRequestParams(uri="bbb://lamp"))
        off = types.UnsubscribeRequest(params=types.UnsubscribeRequestParams(uri="bbb://lamp"))
        for request in (on, off):
            await client.session.send_request(request, types.EmptyResult)
    asked = {"resources/subscribe", "resources/unsubscribe"}
    heard = {name: asked & {one.get("method") for one in heard_by(tmp_path, name)} for name in ("aaa", "bbb")}
    assert heard == {"aaa": set(), "bbb": asked}


@MODES
async def test_what_is_completed_is_completed_by_the_server_that_offers_it(tmp_path: Path, mode: str) -> None:
    refs: list[ResourceTemplateReference | PromptReference] = [
        ResourceTemplateReference(uri="bbb://{item}"),
        ResourceTemplateReference(uri="bbb://lamp"),
        ResourceTemplateReference(uri="bbb://listed"),
        PromptReference(name="bbb_p"),
    ]
    unknown: list[ResourceTemplateReference | PromptReference] = [
        ResourceTemplateReference(uri="other://{item}"),
        PromptReference(name="bbb_other"),
        PromptReference(name="other"),
    ]
    async with raw_gateway(tmp_path, "aaa", "bbb") as server, Client(server, mode=mode, cache=None) as client:
        for ref in refs:
            found = await client.complete(ref, {"name": "item", "value": "l"})
            assert found.completion.values == ["bbb"], ref
        for ref in unknown:
            with pytest.raises(MCPError) as refused:
                await client.complete(ref, {"name": "item", "value": "l"})
            assert refused.value.code == types.INVALID_PARAMS, ref
    assert "completion/complete" not in str(heard_by(tmp_path, "aaa"))


def _offers(**templates: str) -> Offers:
    made = Offers(list(templates))
    for name, text in templates.items():
        made.list_templates(name, [types.ResourceTemplate(name="t", uri_template=text)])
    return made


def test_who_lists_an_address_has_it_and_nobody_takes_it_away() -> None:
    offers = _offers(aaa="bbb://{item}", bbb="x://{item}")
    assert offers.servers_of("bbb://lamp") == ["aaa"]
    assert offers.list_resource("bbb", "bbb://lamp")
    assert not offers.list_resource("aaa", "bbb://lamp")
    assert offers.servers_of("bbb://lamp") == ["bbb"]


def test_a_flood_of_addresses_takes_away_nobody_elses() -> None:
    offers = _offers(aaa="a://{item}", bbb="b://{item}")
    assert offers.list_resource("bbb", "bbb://lamp")
    for n in range(100_001):
        assert offers.list_resource("aaa", f"aaa://{n}")
    assert offers.servers_of("bbb://lamp") == ["bbb"]
    assert not offers.is_listed("aaa://0")  # its own oldest
    assert offers.servers_of("aaa://100000") == ["aaa"]


def test_the_closest_template_goes_first_and_a_gap_ends_at_a_slash() -> None:
    offers = _offers(aaa="{+anything}", bbb="bbb://{item}", ccc="bbb://{", ddd="bbb://{item}")
    assert offers.servers_of("bbb://lamp") == ["bbb", "ddd", "aaa"]
    assert offers.servers_of("bbb://lamp/price") == ["aaa"]
    assert _offers(bbb="bbb://{item}").servers_of("bbb://lamp/price") == []

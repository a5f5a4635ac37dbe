"""Things of a server that have several names: a look and a way back are given each of them as it was."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from interlock import Runtime, Status
from interlock.adapters.mcp import ToolTerms, mcp_tools
from interlock.adapters.mcp.key_parts import KeyParts
from interlock.canonical import Refusal
from tests.conftest import expect

SERVER = str(Path(__file__).with_name("mcp_shelf_server.py"))
POLICY = {"version": 1, "mode": "apply", "rule": [{"id": "all", "tools": ["*"], "decision": "allow"}]}
TERMS = {
    "get_price": ToolTerms(effect="read"),
    "set_price": ToolTerms(
        effect="write",
        key="{shop}/{number}",
        look={"tool": "get_price", "shop": "{shop}", "number": "{number}"},
        take="result",
        put_back={"tool": "set_price", "shop": "{shop}", "number": "{number}", "price": "{state}"},
    ),
}
SCHEMA: dict[str, Any] = {"properties": {"shop": {"type": "string"}, "number": {"type": "integer"}}}


async def test_a_thing_with_two_names_is_looked_at_and_put_back_under_both(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"north#7": 10, "south#7": 20}))
    async with (
        await mcp_tools("shelf", command=[sys.executable, SERVER, str(file)], terms=TERMS) as tools,
        Runtime.open(f"sqlite:///{tmp_path / 'ledger.db'}", policy=POLICY, tools=tools) as runtime,
    ):
        given = {"shop": "north", "number": 7, "price": 11}
        made = await runtime.call("shelf_set_price", given, actor="agent", run="r")
        assert made.status is Status.OK, made.problem
        assert expect(made.plan).keys == ("shelf.get_price/north/7",)
        assert json.loads(file.read_text()) == {"north#7": 11, "south#7": 20}
        ((_step, undone),) = await runtime.operations.undo(run="r")
        assert expect(undone).ok
        assert json.loads(file.read_text()) == {"north#7": 10, "south#7": 20}


async def test_names_that_would_be_one_key_with_others_are_refused(tmp_path: Path) -> None:
    file = tmp_path / "prices.json"
    file.write_text(json.dumps({"north/4#7": 10}))
    async with (
        await mcp_tools("shelf", command=[sys.executable, SERVER, str(file)], terms=TERMS) as tools,
        Runtime.open("memory://", policy=POLICY, tools=tools) as runtime,
    ):
        given = {"shop": "north/4", "number": 7, "price": 11}
        refused = await runtime.call("shelf_set_price", given, actor="agent", run="r")
        assert refused.status is Status.DENIED
        assert "does not say what of it is which argument" in expect(refused.problem).message
        assert json.loads(file.read_text()) == {"north/4#7": 10}


@pytest.mark.parametrize(
    ("template", "arguments", "key"),
    [
        ("{shop}/{number}", {"shop": "north", "number": 7}, "north/7"),
        ("{shop}", {"shop": "a/b c"}, "a/b c"),
        ("item-{number}", {"number": -3}, "item--3"),
        ("{shop}:{number}:{shop}", {"shop": "x", "number": 1}, "x:1:x"),
        ("{shop}-{shop}", {"shop": "a-b"}, "a-b-a-b"),
    ],
)
def test_a_key_is_read_as_what_it_was_made_of(template: str, arguments: dict[str, Any], key: str) -> None:
    parts = KeyParts(template, SCHEMA)
    assert parts.make(arguments) == key
    assert parts.read(key) == arguments


@pytest.mark.parametrize(
    ("template", "arguments"),
    [
        ("{shop}/{number}", {"shop": "a/1", "number": 2}),
        ("{shop}{number}", {"shop": "a1", "number": 2}),
        ("{shop}-{item}", {"shop": "a-b", "item": "c"}),
    ],
)
def test_a_key_that_could_be_of_others_is_refused(template: str, arguments: dict[str, Any]) -> None:
    with pytest.raises(Refusal, match="does not say what of it is which argument"):
        KeyParts(template, SCHEMA).make(arguments)


def test_a_key_of_another_making_is_refused() -> None:
    with pytest.raises(Refusal, match="does not fit the key"):
        KeyParts("{shop}/{number}", SCHEMA).read("north")


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"type": "integer"}, 5, True),
        ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, 5, True),
        ({"type": ["number", "null"]}, 2.5, True),
        ({"type": "string"}, "5", True),
        ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, 5, False),
        ({"type": ["integer", "string"]}, 5, False),
        ({"type": "array", "items": {"type": "string"}}, ["a"], False),
        ({}, 5, False),
    ],
)
@pytest.mark.parametrize("template", ["{id}", "n/{id}"])
def test_a_value_that_a_key_does_not_tell_from_another_makes_none(
    template: str, schema: dict[str, Any], value: Any, fits: bool
) -> None:
    parts = KeyParts(template, {"properties": {"id": schema}})
    if fits:
        assert parts.read(parts.make({"id": value})) == {"id": value}
        return
    with pytest.raises(Refusal, match="of which type"):
        parts.make({"id": value})
